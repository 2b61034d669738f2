/*
 * byte_copy.h: an original's copy within a rank's range, byte by byte.
 *
 * What a method does that copies code and data (pie, hls).  It knows nothing of which words must be rewritten.
 */
#ifndef RANK_BYTE_COPY_H
#define RANK_BYTE_COPY_H

#include "image.h"

#include <stdbool.h>

/* Gives the image a copy of every original, each word as in the original still; 0, or an errno value. */
int byte_copies_make(struct image *image, const struct image_plan *plan, uint64_t *cursor);

/* How many bytes of a range the copies may need. */
uint64_t byte_copies_room(const struct image_plan *plan);

/* Rewrites what must name the copies; then protects them and registers their frames.  0, or an errno value. */
int byte_copies_rewrite(struct image *image, const struct image_plan *plan, int rank);
int byte_copies_protect(struct image *image, const struct image_plan *plan);

/* Refuses a program whose thread-local variables byte copies can't make private (method.h, refuses). */
bool byte_copies_refuse(const struct image_plan *plan, char *why, size_t room);

#endif
