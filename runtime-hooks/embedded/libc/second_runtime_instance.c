/*
 * second_runtime_instance.c: finds the first instance of this library, and rewrites a namespace's words that name
 * another one.
 */
#define _GNU_SOURCE
#include "libc/second_runtime_instance.h"
#include "libc/process_allocations.h"
#include "machine/machine.h"
#include "rank_debug.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static intptr_t distance; /* from this instance to the first */
static enum { UNKNOWN, HERE, ELSEWHERE } place;

/* The link map that holds an address: the one with the highest base below it. */
static const struct link_map *holder(const struct link_map *first, uintptr_t address) {
    const struct link_map *nearest = NULL;
    for (const struct link_map *map = first; map; map = map->l_next)
        if (map->l_addr <= address && (!nearest || map->l_addr > nearest->l_addr))
            nearest = map;
    return nearest;
}

static bool is_same_file(const struct link_map *first, const struct link_map *second) {
    const char *a = strrchr(first->l_name, '/'), *b = strrchr(second->l_name, '/');
    return a && b && !strcmp(a, b);
}

/*
 * The loader is one for all namespaces, and its _r_debug lists the first one's objects.  This library is there, since
 * rankrun itself needs it.
 */
static void find(void) {
    extern ElfW(Dyn) _DYNAMIC[];
    const struct r_debug_extended {
        struct r_debug base;
        const struct r_debug_extended *next;
    } *space = (const void *)&_r_debug;
    __asm__("" : "+r"(space)); /* link.h declares the first part of it alone; r_version tells whether there is more */
    place = HERE;
    for (space = space->base.r_version >= 2 ? space->next : NULL; space; space = space->next)
        for (const struct link_map *mine = space->base.r_map; mine; mine = mine->l_next)
            if (mine->l_ld == _DYNAMIC)
                for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
                    if (is_same_file(mine, map)) {
                        distance = (intptr_t)(map->l_addr - mine->l_addr);
                        place = ELSEWHERE;
                    }
}

bool is_second_instance(void) {
    if (place == UNKNOWN)
        find();
    return place == ELSEWHERE;
}

void *first_instance_function(void *function) {
    return (char *)function + distance;
}

struct span {
    uintptr_t start, end;
};

/* From the lowest to the highest PT_LOAD of the object that a link map describes. */
static struct span span_of(const struct link_map *map) {
    const ElfW(Ehdr) *header = (const void *)map->l_addr;
    struct span span = {map->l_addr, map->l_addr};
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return span;
    const ElfW(Phdr) *program = (const void *)(map->l_addr + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (program[i].p_type == PT_LOAD && map->l_addr + program[i].p_vaddr + program[i].p_memsz > span.end)
            span.end = map->l_addr + program[i].p_vaddr + program[i].p_memsz;
    return span;
}

static uint64_t dynamic_value(const struct link_map *map, int64_t tag) {
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_val;
    return 0;
}

/* The words are in pages that the loader has made read-only after relocation (RELRO). */
static int store(uint64_t *word, uint64_t value, bool is_relro) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)word & ~(page - 1);
    size_t length = (uintptr_t)word + sizeof *word - start;
    if (is_relro && mprotect((void *)start, length, PROT_READ | PROT_WRITE))
        return errno;
    *word = value;
    return is_relro && mprotect((void *)start, length, PROT_READ) ? errno : 0;
}

static struct span relro_of(const struct link_map *map) {
    const ElfW(Ehdr) *header = (const void *)map->l_addr;
    const ElfW(Phdr) *program = (const void *)(map->l_addr + header->e_phoff);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < header->e_phnum; i++)
        if (program[i].p_type == PT_GNU_RELRO)
            return (struct span){(map->l_addr + program[i].p_vaddr) & ~(page - 1),
                                 (map->l_addr + program[i].p_vaddr + program[i].p_memsz) & ~(page - 1)};
    return (struct span){0, 0};
}

/* A namespace has a libc of its own, and these are calls of it. */
static bool is_for_its_libc(const char *function) {
    return function >= __start_rank_process_heap && function < __stop_rank_process_heap;
}

static int bind_table(const struct link_map *map, uint64_t table, uint64_t size, struct span idle, intptr_t to_here) {
    struct span relro = relro_of(map);
    const ElfW(Rela) *entry = (const void *)table;
    for (uint64_t i = 0; i < size / sizeof *entry; i++) {
        uint64_t *word = (uint64_t *)(map->l_addr + entry[i].r_offset);
        uint32_t type = ELF64_R_TYPE(entry[i].r_info);
        if ((type != MACHINE_R_GLOB_DAT && type != MACHINE_R_JUMP_SLOT && type != MACHINE_R_ABSOLUTE) ||
            *word < idle.start || *word >= idle.end || is_for_its_libc((const char *)*word + to_here))
            continue;
        bool is_relro = (uintptr_t)word >= relro.start && (uintptr_t)word < relro.end;
        int error = store(word, *word + (uint64_t)to_here, is_relro);
        if (error)
            return error;
    }
    return 0;
}

int second_instance_bind(const struct link_map *map) {
    extern ElfW(Dyn) _DYNAMIC[];
    const struct link_map *here = holder(_r_debug.r_map, (uintptr_t)_DYNAMIC), *idle = map;
    while (idle && !is_same_file(idle, here))
        idle = idle->l_next;
    if (!idle)
        return 0; /* the program does not use this library */
    struct span span = span_of(idle);
    for (const struct link_map *object = map; object; object = object->l_next) {
        /* The loader itself is listed in every namespace, and is the same. */
        if (object == idle || object->l_addr == _r_debug.r_ldbase || object->l_addr == 0 ||
            !strstr(object->l_name, "/"))
            continue;
        intptr_t to_here = (intptr_t)(here->l_addr - idle->l_addr);
        int error = bind_table(object, dynamic_value(object, DT_RELA), dynamic_value(object, DT_RELASZ), span, to_here);
        if (!error)
            error =
                bind_table(object, dynamic_value(object, DT_JMPREL), dynamic_value(object, DT_PLTRELSZ), span, to_here);
        if (error)
            return error;
    }
    return 0;
}
