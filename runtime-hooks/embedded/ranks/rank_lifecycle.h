/*
 * rank_lifecycle.h: the ranks that are in this process: their images, their records in the registry, their mains.
 *
 * Takes the plan of how images are made; knows nothing of how a rank's memory comes from another process.
 */
#ifndef RANK_RANK_LIFECYCLE_H
#define RANK_RANK_LIFECYCLE_H

#include "image/image.h"
#include "ranks/ranks.h"

/* `argv` is the program's, its name included. */
void residents_prepare(const struct image_plan *plan, int argc, char **argv);

/* Makes the images of ranks first .. end-1 and enters them everywhere; ends the job if that can't be. */
void residents_make(int first, int end);

const struct image *resident_image(int rank);

/* The rank whose copy of an object holds an address, of those that are here; NULL: it is in no copy. */
struct image *resident_with_copy(const void *address);
struct image *resident_with_number(int rank);
/* Whether an address is in an original; whether in one that ranks use as it is, having no copy. */
bool resident_is_original(const void *address);
bool resident_is_shared(const void *address);
bool residents_have_private_pages(void);

/* Once no rank is left: ends what they had in common. */
void residents_end(int status);

/*
 * Takes in a rank from elsewhere: makes room, calls `content` to have it filled, and enters the rank everywhere; it
 * runs once ranks_resume() is called.  `needs_first_content`: what `content` leaves out is as before the rank ran.
 */
void resident_take_in(const struct rank_ticket *ticket, bool needs_first_content,
                      void (*content)(void *context, const struct image *image), void *context);

/* Its image's memory is given back; the record stays, and says where it went. */
void resident_give_up(int rank);

/* On each processing element's kernel thread, before ranks run on it, where ranks may come. */
void residents_element_starts(uint32_t element);

#endif
