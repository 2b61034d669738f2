/*
 * describe_object.c: describes a loaded ELF file to the registry by the program headers that it has in memory.
 *
 * Takes any address inside of the file; asks the dynamic loader which file that is.  It opens no file.
 */
#define _GNU_SOURCE
#include "rank_hooks.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_SEGMENTS 64

struct loaded_file {
    const ElfW(Phdr) * headers;
    int count;
    const struct link_map *map;
};

static uint64_t up_to_word(uint64_t size) {
    return (size + 3) & ~UINT64_C(3);
}

/* Notes of one PT_NOTE segment: a size that does not fit ends the walk. */
static void copy_build_id(struct rank_debug_object *object, const char *note, uint64_t size) {
    ElfW(Nhdr) head;
    while (size >= sizeof head) {
        memcpy(&head, note, sizeof head);
        uint64_t text = sizeof head + up_to_word(head.n_namesz), end = text + up_to_word(head.n_descsz);
        if (end > size)
            return;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && !memcmp(note + sizeof head, "GNU", 4) &&
            head.n_descsz <= sizeof object->build_id) {
            object->build_id_size = head.n_descsz;
            memcpy(object->build_id, note + text, head.n_descsz);
            return;
        }
        note += end;
        size -= end;
    }
}

/* The name of the program itself is empty in the loader's list. */
static uint32_t add_path(const struct link_map *map) {
    char path[PATH_MAX];
    if (map->l_name[0])
        return rank_hooks_string(realpath(map->l_name, path) ? path : map->l_name);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return rank_hooks_string(path);
}

static uint64_t lowest_page(const struct loaded_file *file) {
    uint64_t lowest = UINT64_MAX;
    for (int i = 0; i < file->count; i++)
        if (file->headers[i].p_type == PT_LOAD && file->headers[i].p_vaddr < lowest)
            lowest = file->headers[i].p_vaddr;
    return lowest & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static void add_tls(struct rank_debug_object *object, const struct loaded_file *file, const ElfW(Phdr) * header) {
    size_t module = 0;
    if (dlinfo((void *)(uintptr_t)file->map, RTLD_DI_TLS_MODID, &module) == 0)
        object->tls_module_id = module;
    object->tls_size = header->p_memsz;
    object->tls_align = header->p_align;
}

static uint32_t add_file(const struct loaded_file *file, uint32_t flags) {
    struct rank_debug_segment segments[MOST_SEGMENTS];
    uint64_t bias = file->map->l_addr, lowest = lowest_page(file);
    struct rank_debug_object object = {
        .base = bias + lowest,
        .load_bias = bias,
        .dynamic = (uint64_t)(uintptr_t)file->map->l_ld,
        .flags = flags,
    };
    for (int i = 0; i < file->count; i++) {
        const ElfW(Phdr) *header = &file->headers[i];
        if (header->p_type == PT_NOTE && !object.build_id_size)
            copy_build_id(&object, (const char *)(uintptr_t)(bias + header->p_vaddr), header->p_memsz);
        if (header->p_type == PT_TLS)
            add_tls(&object, file, header);
        if (header->p_type != PT_LOAD)
            continue;
        if (object.segment_count == MOST_SEGMENTS)
            return RANK_DEBUG_NONE;
        uint64_t offset = header->p_vaddr - lowest;
        segments[object.segment_count++] = (struct rank_debug_segment){
            .offset = offset,
            .memory_size = header->p_memsz,
            .file_size = header->p_filesz,
            .protection = header->p_flags,
        };
        if (offset + header->p_memsz > object.span)
            object.span = offset + header->p_memsz;
    }
    object.path = add_path(file->map);
    return object.path == RANK_DEBUG_NONE ? RANK_DEBUG_NONE : rank_hooks_add_object(&object, segments);
}

uint32_t rank_hooks_add_program(const void *inside, uint32_t flags) {
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(inside, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return RANK_DEBUG_NONE;
    const char *start = info.dli_fbase;
    ElfW(Ehdr) head;
    memcpy(&head, start, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)))
        return RANK_DEBUG_NONE;
    const struct loaded_file file = {(const void *)(start + head.e_phoff), head.e_phnum, map};
    return add_file(&file, flags);
}
