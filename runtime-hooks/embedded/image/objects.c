/*
 * objects.c: finds the originals, and describes them in the registry.
 */
#define _GNU_SOURCE
#include "image/objects.h"
#include "machine/machine.h"
#include "rank_hooks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The loader's, as "ELF Handling For Thread-Local Storage" has it. */
struct tls_index {
    unsigned long module, offset;
};
extern void *__tls_get_addr(struct tls_index *index);

uint64_t tls_block(unsigned long module) {
    return (uintptr_t)__tls_get_addr(&(struct tls_index){module, 0});
}

static void measure(struct object *object) {
    uint64_t low = UINT64_MAX, high = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    object->alignment = page;
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        if (header->p_type == PT_GNU_EH_FRAME)
            object->frame_header = object->bias + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC)
            object->dynamic = (const void *)(object->bias + header->p_vaddr);
        if (header->p_type == PT_TLS) {
            object->tls_size = header->p_memsz;
            object->tls_align = header->p_align;
        }
        if (header->p_type != PT_LOAD)
            continue;
        low = header->p_vaddr < low ? header->p_vaddr : low;
        high = header->p_vaddr + header->p_memsz > high ? header->p_vaddr + header->p_memsz : high;
        object->alignment = header->p_align > object->alignment ? header->p_align : object->alignment;
    }
    object->base = (object->bias + low) & ~(page - 1);
    object->span = object->bias + high - object->base;
}

/*
 * The distance to the thread pointer, if the loader gave every thread a block beside it; negative where it lies above.
 * The loader fills in this thread's own only when it is asked for.
 */
static int64_t static_tls_offset(const struct dl_phdr_info *info, const struct object *object) {
    uint64_t block = (uintptr_t)info->dlpi_tls_data, pointer = machine_thread_pointer();
    if (!block && (!MACHINE_MARKS_STATIC_TLS || object_dynamic_value(object, DT_FLAGS) & DF_STATIC_TLS))
        block = tls_block(info->dlpi_tls_modid);
    void (*static_info)(size_t * size, size_t * alignment);
    *(void **)&static_info = dlvsym(RTLD_DEFAULT, "_dl_get_tls_static_info", "GLIBC_PRIVATE");
    size_t size = 1 << 20, alignment;
    if (static_info)
        static_info(&size, &alignment);
    uint64_t distance = MACHINE_TLS_IS_ABOVE ? block - pointer : pointer - block;
    if (!block || !distance || distance >= size)
        return 0;
    return MACHINE_TLS_IS_ABOVE ? -(int64_t)distance : (int64_t)distance;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct object_list *list = argument;
    list->items = realloc(list->items, (size_t)(list->count + 1) * sizeof *list->items);
    struct object *object = &list->items[list->count++];
    char resolved[PATH_MAX];
    const char *path = realpath(info->dlpi_name, resolved) ? resolved : info->dlpi_name;
    *object = (struct object){.path = strdup(path), .bias = info->dlpi_addr, .header = info->dlpi_phdr};
    object->header_count = info->dlpi_phnum;
    object->tls_module = info->dlpi_tls_modid;
    measure(object);
    object->tls_offset = info->dlpi_tls_modid ? static_tls_offset(info, object) : 0;
    return 0;
}

bool object_at(struct object *object, const char *path, uint64_t bias) {
    const ElfW(Ehdr) *file = (const void *)bias;
    if (!bias || memcmp(file->e_ident, ELFMAG, SELFMAG) || file->e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    char resolved[PATH_MAX];
    *object = (struct object){.path = strdup(realpath(path, resolved) ? resolved : path), .bias = bias};
    object->header = (const void *)(bias + file->e_phoff);
    object->header_count = file->e_phnum;
    measure(object);
    return true;
}

struct object_list objects_loaded(void) {
    struct object_list list = {0};
    dl_iterate_phdr(add_object, &list);
    return list;
}

static bool contains(const struct object_list *list, const struct object *object) {
    for (int i = 0; i < list->count; i++)
        if (list->items[i].base == object->base)
            return true;
    return false;
}

struct object_list objects_new(const struct object_list *before, const struct object_list *after) {
    struct object_list list = {calloc((size_t)after->count, sizeof *list.items), 0};
    for (int i = 0; i < after->count; i++)
        if (!contains(before, &after->items[i]))
            list.items[list.count++] = after->items[i];
    if (list.count)
        list.items[0].is_program = true;
    return list;
}

int object_of(const struct object_list *list, uint64_t address) {
    for (int i = 0; i < list->count; i++)
        if (address >= list->items[i].base && address <= list->items[i].base + list->items[i].span)
            return i;
    return -1;
}

uint64_t object_dynamic_value(const struct object *object, int64_t tag) {
    for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_val;
    return 0;
}

/* glibc relocates most addresses in .dynamic in place, but not all of them in all versions. */
uint64_t object_dynamic_address(const struct object *object, int64_t tag) {
    uint64_t value = object_dynamic_value(object, tag);
    return value && value < object->base ? value + object->bias : value;
}

#define MOST_BUILD_ID sizeof((struct rank_debug_object *)0)->build_id

size_t object_build_id(const struct object *object, const unsigned char **build_id) {
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        if (header->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(object->bias + header->p_vaddr), *end = at + header->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note, *text = name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4) &&
                note->n_descsz <= MOST_BUILD_ID) {
                *build_id = (const unsigned char *)text;
                return note->n_descsz;
            }
            at = text + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 0;
}

static void register_object(const struct object *object) {
    struct rank_debug_object record = {
        .base = object->base,
        .load_bias = object->bias,
        .span = object->span,
        .dynamic = (uintptr_t)object->dynamic,
        .tls_module_id = object->tls_module,
        .tls_size = object->tls_size,
        .tls_align = object->tls_align,
        .tls_offset = object->tls_offset,
        .path = rank_hooks_string(object->path),
        .flags = RANK_DEBUG_OBJECT_PRIVATIZED | (object->is_program ? RANK_DEBUG_OBJECT_PROGRAM : 0),
    };
    const unsigned char *build_id;
    record.build_id_size = (uint32_t)object_build_id(object, &build_id);
    if (record.build_id_size)
        memcpy(record.build_id, build_id, record.build_id_size);
    struct rank_debug_segment segments[64];
    for (int i = 0; i < object->header_count && record.segment_count < 64; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        if (header->p_type == PT_LOAD)
            segments[record.segment_count++] = (struct rank_debug_segment){
                .offset = object->bias + header->p_vaddr - object->base,
                .memory_size = header->p_memsz,
                .file_size = header->p_filesz,
                .protection = header->p_flags,
            };
    }
    rank_hooks_add_object(&record, segments);
}

void objects_register(const struct object_list *list) {
    for (int i = 0; i < list->count; i++)
        register_object(&list->items[i]);
}
