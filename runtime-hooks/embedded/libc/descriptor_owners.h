/*
 * descriptor_owners.h: which rank opened which file descriptor, where ranks can move.
 *
 * A process has one table of descriptors for all of its ranks, and descriptors do not move with a rank.
 */
#ifndef RANK_DESCRIPTOR_OWNERS_H
#define RANK_DESCRIPTOR_OWNERS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether one that the rank opened is still open; `text` then names it, as in "descriptor 5 (/tmp/x)". */
bool descriptors_of(int rank, char *text, size_t room);

#endif
