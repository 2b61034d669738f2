/*
 * unique.c: finds each copy's instance of a unique variable by a relocated word that names it; the instance in use
 * may be another copy's.
 */
#define _GNU_SOURCE
#include "image/unique.h"
#include "machine/machine.h"
#include "rank_hooks.h"

#include <elf.h>
#include <stdbool.h>

static bool is_unique(const ElfW(Rela) * one, const ElfW(Sym) * symbol) {
    uint32_t type = ELF64_R_TYPE(one->r_info);
    return (type == MACHINE_R_GLOB_DAT || type == MACHINE_R_ABSOLUTE) && symbol->st_shndx &&
           ELF64_ST_BIND(symbol->st_info) == STB_GNU_UNIQUE && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

void unique_describe(const struct object *object, uint32_t index, int rank, uint64_t copy) {
    const ElfW(Sym) *symbols = (const void *)object_dynamic_address(object, DT_SYMTAB);
    const ElfW(Rela) *table = (const void *)object_dynamic_address(object, DT_RELA);
    uint64_t count = object_dynamic_value(object, DT_RELASZ) / sizeof *table;
    uint64_t bias = copy - (object->base - object->bias);
    for (uint64_t i = 0; table && symbols && i < count; i++) {
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(table[i].r_info)];
        if (!is_unique(&table[i], symbol))
            continue;
        uint64_t slot = bias + table[i].r_offset;
        rank_hooks_add_redirection(&(struct rank_debug_redirection){
            .rank = rank,
            .object = index,
            .original = object->bias + symbol->st_value,
            .size = symbol->st_size,
            .storage = *(const uint64_t *)slot - (uint64_t)table[i].r_addend,
            .got_slot = ELF64_R_TYPE(table[i].r_info) == MACHINE_R_GLOB_DAT ? slot : 0,
        });
    }
}
