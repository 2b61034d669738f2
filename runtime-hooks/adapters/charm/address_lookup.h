/*
 * address_lookup.h: finds, in a signal handler, the file, the function and the unwind table of an address.
 *
 * Everything is looked up and mapped beforehand; looking at it later calls nothing, allocates nothing and takes no
 * lock.
 */
#ifndef CHARM_ADDRESS_LOOKUP_H
#define CHARM_ADDRESS_LOOKUP_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

struct code {
    const char *path; /* as the system's loader knows it */
    uint64_t start, end;
    uint64_t bias;         /* added to its p_vaddr's */
    uint64_t frame_header; /* address of .eh_frame_hdr, 0 if none */
    const Elf64_Sym *symbols;
    uint64_t symbol_count;
    const char *strings;
    uint64_t strings_size;
};

/* Where an instruction is: `original` is the same one in the file that the system's loader has placed. */
struct place {
    const struct code *code; /* NULL: in no file */
    uint64_t original;
};

/* Looks at every file that is loaded now. */
void code_prepare(void);

/* Where an address is, in an original or in any rank's copy of one; safe in a signal handler, as the rest. */
struct place code_at(uint64_t address);

/* The function that an original's address lies in, and its start; NULL if no table of symbols has one. */
const char *code_function(const struct code *code, uint64_t original, uint64_t *start);

/* Copies memory of this process; false where there is none. */
bool code_read(uint64_t address, void *data, uint64_t size);

#endif
