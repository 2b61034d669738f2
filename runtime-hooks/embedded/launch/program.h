/*
 * program.h: loading the user's program, once: the originals, and what their constructors allocated.
 */
#ifndef RANK_PROGRAM_H
#define RANK_PROGRAM_H

#include "image/heap.h"
#include "image/rewrite.h"

struct program {
    struct originals originals;
    struct rank_heap *constructor_heap;
    uint64_t main;    /* address of main in the original */
    const char *path; /* absolute, of its file */
};

/*
 * Loads the program with malloc served from a constructor heap in range `heap_range`.  Ends the process with one
 * sentence and status 2 if it can't be had or is not a program for ranks.
 */
struct program program_load(const char *name, uint32_t heap_range);

#endif
