/*
 * object_byte_copies.h: an original's copy within a rank's range, byte by byte.
 *
 * What a method does that copies code and data (pie, hls).  It knows nothing of which words must be rewritten.
 */
#ifndef RANK_OBJECT_BYTE_COPIES_H
#define RANK_OBJECT_BYTE_COPIES_H

#include "image/image.h"

#include <stdbool.h>

/* Gives the image a copy of every original, each word as in the original still; 0, or an errno value. */
int byte_copies_make(struct image *image, const struct image_plan *plan, uint64_t *cursor);

/* How many bytes of a range the copies may need. */
uint64_t byte_copies_room(const struct image_plan *plan);

/* The two halves of it: room for the copies, and what stands in them. */
int byte_copies_place(struct image *image, const struct image_plan *plan, uint64_t *cursor);
int byte_copies_fill(struct image *image, const struct image_plan *plan);

/* Whether a part of a copy, of a page at most, is still what these and the rewriting made it. */
bool byte_copies_are_first_content(const struct image *image, const struct image_plan *plan, int object,
                                   uint64_t address, uint64_t size);

/* The originals' writable segments as they are now, for image_plan.pristine. */
const unsigned char *const *byte_copies_pristine(const struct originals *originals);

/* A number that is another where an original's writable segments were another's when they were loaded (almost surely:
 * FNV-1a, 64 bits). */
uint64_t byte_copies_digest(const struct image_plan *plan, int object);

/* Undoes what byte_copies_protect() registered; the copies are still there. */
void byte_copies_unregister(const struct image *image, const struct image_plan *plan);

/* Rewrites what must name the copies; then protects them and registers their frames.  0, or an errno value. */
int byte_copies_rewrite(struct image *image, const struct image_plan *plan, int rank);
int byte_copies_protect(struct image *image, const struct image_plan *plan);

/* Refuses a program whose thread-local variables byte copies can't make private (method.h, refuses). */
bool byte_copies_refuse(const struct image_plan *plan, char *why, size_t room);

#endif
