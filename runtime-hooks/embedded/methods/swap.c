/*
 * swap.c: the words of the global offset table that name the program's variables are exchanged at each switch
 * (Swapglobals).
 *
 * Only what the code reaches through that table becomes private: variables with external linkage in a program that was
 * linked with its names left open.  Static variables stay shared, and so does what an initializer points to.
 * Described in "globals 2011" (docs/references.md has the source, and what differs).
 */
#include "image/image.h"
#include "image/method.h"
#include "image/ranges.h"
#include "machine/machine.h"
#include "rank_hooks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct slot {
    uint64_t *word;
    uint64_t original, size;
    uint64_t place; /* of the variable in a rank's storage */
};

static struct slot *slots;
static int slot_count;
static uint64_t storage_size;

static bool is_writable(const struct object *object, uint64_t address) {
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        uint64_t start = object->bias + header->p_vaddr;
        if (header->p_type == PT_LOAD && header->p_flags & PF_W && address >= start &&
            address < start + header->p_memsz)
            return true;
    }
    return false;
}

/* Two words may name one variable: they share its storage. */
static uint64_t place_for(uint64_t original, uint64_t size) {
    for (int i = 0; i < slot_count; i++)
        if (slots[i].original == original)
            return slots[i].place;
    uint64_t place = align_up(storage_size, size >= 64 ? 64 : 16);
    storage_size = place + size;
    return place;
}

static void find_slots(const struct object *object) {
    const ElfW(Rela) *table = (const void *)object_dynamic_address(object, DT_RELA);
    const ElfW(Sym) *symbols = (const void *)object_dynamic_address(object, DT_SYMTAB);
    uint64_t count = object_dynamic_value(object, DT_RELASZ) / sizeof *table;
    for (uint64_t i = 0; table && i < count; i++) {
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(table[i].r_info)];
        uint64_t *word = (uint64_t *)(object->bias + table[i].r_offset), original = object->bias + symbol->st_value;
        if (ELF64_R_TYPE(table[i].r_info) != MACHINE_R_GLOB_DAT || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT ||
            !symbol->st_shndx || !symbol->st_size || *word != original || !is_writable(object, original))
            continue;
        slots = realloc(slots, (size_t)(slot_count + 1) * sizeof *slots);
        if (!slots)
            abort();
        slots[slot_count] = (struct slot){word, original, symbol->st_size, place_for(original, symbol->st_size)};
        slot_count++;
    }
}

/* The loader has made these words read-only; the switch writes them. */
static int unprotect(void) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < slot_count; i++)
        if (mprotect((void *)((uint64_t)slots[i].word & ~(page - 1)), page, PROT_READ | PROT_WRITE))
            return errno;
    return 0;
}

static bool has_data(const struct object *object) {
    for (int i = 0; i < object->header_count; i++)
        if (object->header[i].p_type == PT_LOAD && object->header[i].p_flags & PF_W)
            return object->header[i].p_memsz > 0;
    return false;
}

static bool refuses(const struct image_plan *plan, char *why, size_t size) {
    const struct object *program = &plan->originals.objects.items[0];
    if (plan->elements > 1) {
        snprintf(why, size, "method swap exchanges the words of one table, which %d processing elements can't share",
                 plan->elements);
        return true;
    }
    find_slots(program);
    if (slot_count == 0 && has_data(program)) {
        snprintf(why, size,
                 "%s reaches none of its variables through the global offset table: build it with rankcc --method swap",
                 program->path);
        return true;
    }
    return unprotect() != 0 && snprintf(why, size, "the global offset table can't be made writable") > 0;
}

static uint64_t room(const struct image_plan *plan) {
    (void)plan;
    return storage_size + (uint64_t)slot_count * sizeof(uint64_t) + 3 * PAGE;
}

/* A rank's storage: the values that the words take for it, then the variables. */
static int make(struct image *image, const struct image_plan *plan, int rank, uint64_t *cursor) {
    (void)plan, (void)rank;
    uint64_t *values = (uint64_t *)*cursor, words = align_up((uint64_t)slot_count * sizeof *values, 64);
    int error = range_commit(*cursor, words + storage_size + 1);
    image->token = *cursor;
    for (int i = 0; i < slot_count && !error; i++) {
        values[i] = *cursor + words + slots[i].place;
        memcpy((void *)values[i], (const void *)slots[i].original, slots[i].size);
    }
    *cursor = align_up(*cursor + words + storage_size + 1, PAGE) + PAGE;
    return error;
}

static void describe(const struct image *image, const struct image_plan *plan, int rank) {
    (void)plan;
    const uint64_t *values = (const uint64_t *)image->token;
    for (int i = 0; i < slot_count; i++)
        rank_hooks_add_redirection(&(struct rank_debug_redirection){
            .rank = rank,
            .original = slots[i].original,
            .size = slots[i].size,
            .storage = values[i],
            .got_slot = (uint64_t)slots[i].word,
        });
}

static void enter(uint64_t token) {
    const uint64_t *values = (const uint64_t *)token;
    for (int i = 0; values && i < slot_count; i++)
        *slots[i].word = values[i];
}

static const struct method swap = {
    .name = "swap",
    .summary = "exchange the words of the global offset table at each switch; statics stay shared",
    /* Its own versions of names: what libc exports under one of them for old programs (`step`) can't take its place. */
    .link = "-Wl,-z,norelro -Wl,--default-symver,-soname,rank.program",
    .is_preemptible = true,
    .refuses = refuses,
    .room = room,
    .make = make,
    .describe = describe,
    .enter = enter,
};
RANK_METHOD(swap);
