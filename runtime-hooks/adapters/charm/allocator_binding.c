/*
 * allocator_binding.c: overwrites the words through which the originals call libc's allocator; copies are made of
 * these.
 *
 * A program that brings an allocator of its own keeps it: only words that hold libc's own functions are overwritten.
 */
#define _GNU_SOURCE
#include "allocator_binding.h"

#include <dlfcn.h>
#include <elf.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the loader, which this file is linked into, has functions of its own for. */
static struct {
    const char *name;
    uint64_t loaders, libcs;
} functions[] = {
    {"malloc", (uintptr_t)malloc, 0},
    {"free", (uintptr_t)free, 0},
    {"calloc", (uintptr_t)calloc, 0},
    {"realloc", (uintptr_t)realloc, 0},
    {"memalign", (uintptr_t)memalign, 0},
    {"posix_memalign", (uintptr_t)posix_memalign, 0},
    {"aligned_alloc", (uintptr_t)aligned_alloc, 0},
    {"valloc", (uintptr_t)valloc, 0},
    {"pvalloc", (uintptr_t)pvalloc, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static bool find_libc(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    for (int i = 0; libc && i < FUNCTIONS; i++)
        functions[i].libcs = (uintptr_t)dlsym(libc, functions[i].name);
    return libc != NULL;
}

/* The loader's function for what a word holds; 0 if that is none of libc's allocator. */
static uint64_t instead_of(uint64_t held) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (held && held == functions[i].libcs)
            return functions[i].loaders;
    return 0;
}

static bool is_sealed(const struct object *object, uint64_t address) {
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        if (header->p_type == PT_GNU_RELRO && address - object->bias - header->p_vaddr < header->p_memsz)
            return true;
    }
    return false;
}

/* After relocation the system's loader seals whole pages (System V ABI, PT_GNU_RELRO); they are sealed again. */
static void overwrite(const struct object *object, uint64_t address, uint64_t value) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = address & ~(page - 1);
    bool sealed = is_sealed(object, address);
    if (sealed && mprotect((void *)start, page, PROT_READ | PROT_WRITE))
        return;
    memcpy((void *)address, &value, sizeof value);
    if (sealed)
        mprotect((void *)start, page, PROT_READ);
}

static void bind_table(const struct object *object, uint64_t table, uint64_t size) {
    const ElfW(Rela) *entries = (const void *)table;
    for (uint64_t i = 0; table && i < size / sizeof *entries; i++) {
        uint32_t type = ELF64_R_TYPE(entries[i].r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64)
            continue;
        uint64_t address = object->bias + entries[i].r_offset, held;
        memcpy(&held, (const void *)address, sizeof held);
        uint64_t wanted = instead_of(held);
        if (wanted && wanted != held)
            overwrite(object, address, wanted);
    }
}

void allocation_bind(const struct object_list *originals) {
    bool found = find_libc();
    for (int i = 0; found && i < originals->count; i++) {
        const struct object *one = &originals->items[i];
        bind_table(one, object_dynamic_address(one, DT_JMPREL), object_dynamic_value(one, DT_PLTRELSZ));
        bind_table(one, object_dynamic_address(one, DT_RELA), object_dynamic_value(one, DT_RELASZ));
    }
}
