/*
 * images.h: what is private to each rank under AMPI's privatization methods, and its description in the registry.
 *
 * Knows the originals by what the system's loader loaded for the program, and copies by what lies in a rank's share of
 * addresses.  Never looks into AMPI's own variables.
 */
#ifndef CHARM_IMAGES_H
#define CHARM_IMAGES_H

#include "image/objects.h"

#include <stdbool.h>
#include <stdint.h>

#define MOST_OBJECTS 64 /* of one rank */

/* A rank's copies of the originals, by their index; 0 where it has none. */
struct copies {
    uint64_t bases[MOST_OBJECTS];
};

/* Before AMPI loads the program for `ranks` ranks. */
void images_before_load(int ranks);

/* AMPI has loaded it; tells the method ("pie", "pip", "fs", "tls", "none"). */
const char *images_after_load(void);

/* The system's loader has loaded the program once more, for the next rank (pip, fs). */
void images_loaded(void *handle);

/* Adds the originals to the registry (between begin and commit). */
void images_describe(void);

/* The copies that a rank has, in its share [start, end) or wherever the system's loader put them. */
struct copies images_of(int rank, uint64_t start, uint64_t end);

/* Bytes of a rank's block of thread-local variables and their alignment (tls), else false. */
bool images_tls_block(uint64_t *size, uint64_t *alignment);

/* Adds a rank's copies, where these share variables, and its TLS blocks to the registry (between begin and commit, on
 * the kernel thread that runs it); `pointer` is 0 without a thread pointer of its own. */
void images_add(int rank, const struct copies *copies, uint64_t pointer);

/* The end of the last copy, or `start` if there is none after it. */
uint64_t images_end(const struct copies *copies, uint64_t start, uint64_t end);

/* Whether copies are made byte by byte (pie), so that the system's loader knows nothing of them. */
bool images_are_bytes(void);

const struct object_list *images_originals(void);

#endif
