/*
 * image_table.h: the images of the ranks that are in this process, and whose an address is.
 *
 * Takes the plan of how images are made.  Knows nothing of what ranks do.
 */
#ifndef RANK_IMAGE_TABLE_H
#define RANK_IMAGE_TABLE_H

#include "image/image.h"

/* 0, or an errno value. */
int rank_images_prepare(const struct image_plan *plan);

struct image *rank_image(int rank);

/* The image whose copy of an object holds an address; NULL: it is in no copy that is here. */
struct image *rank_image_with_copy(const void *address);

/* Where the original has what a rank's byte copy has at an address; the address itself: it is in no byte copy. */
const void *rank_images_original(const void *address);

/* Notes that ranks have copies of an object of the plan's, given by its index; whether they have. */
void rank_images_note_copy(int object);
bool rank_images_have_copy(int object);

/* Whether an address is in an original; whether in one that ranks use as it is, having no copy. */
bool rank_images_is_original(const void *address);
bool rank_images_is_shared(const void *address);

/* Whether every rank's memory is its own process's. */
bool rank_images_have_private_pages(void);

#endif
