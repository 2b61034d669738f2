/*
 * rewrite.h: which words of a copy must name the copy and not the original.
 *
 * The originals are pristine, so the words are found once and then written into every rank's copies.
 *   scan   every 8-byte-aligned word of a non-executable segment or of a constructor block whose value lies in an
 *          original or a block, ends included: what AMPI's PIEglobals does, false positives and all.
 *   exact  only what the object's relocations and its dynamic section say: nothing is guessed.
 */
#ifndef RANK_REWRITE_H
#define RANK_REWRITE_H

#include "image/objects.h"

#include <stdio.h>

enum rewrite_mode { REWRITE_SCAN, REWRITE_EXACT };

#define REWRITE_HEAP (-1) /* the constructor heap, where an object's index could stand */

struct rewrite {
    int place;       /* index of the object that holds the word, or REWRITE_HEAP */
    int target;      /* index of the object that it points into, or REWRITE_HEAP */
    uint64_t offset; /* of the word, from the place's start */
    uint64_t value;  /* in the original */
    const char *why;
};

struct rewrite_list {
    struct rewrite *items;
    size_t count, room;
};

/* What to look at: the objects, and the blocks that their constructors allocated. */
struct originals {
    struct object_list objects;
    uint64_t heap_start, heap_size;
    const struct rank_debug_block *blocks;
    size_t block_count;
    const struct exit_function *exit_functions; /* what they registered while they were loaded */
};

/* With `writable_only`, what no rank writes is left alone: it is shared with the file. */
struct rewrite_list rewrites_find(const struct originals *originals, enum rewrite_mode mode, bool writable_only);

/* Where one rank's copies are. */
struct copies {
    const uint64_t *objects; /* by object index: base of the copy */
    uint64_t heap;
};

/* What the word is in one rank's copies. */
uint64_t rewrite_value(const struct rewrite *rewrite, const struct originals *originals, const struct copies *copies);

/* Where what is at `address` in an original, or in a constructor block, is for one rank; any other address as it is. */
uint64_t rewrite_address(uint64_t address, const struct originals *originals, const struct copies *copies);

/* Writes the words into one rank's copies, and a line for each into `log` unless it is NULL. */
void rewrites_apply(const struct rewrite_list *list, const struct originals *originals, const struct copies *copies,
                    int rank, FILE *log);

#endif
