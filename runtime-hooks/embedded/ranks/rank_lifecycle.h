/*
 * rank_lifecycle.h: the ranks that are in this process: their images, their records in the registry, their mains.
 *
 * Takes the plan of how images are made; knows nothing of how a rank's memory comes from another process.
 */
#ifndef RANK_RANK_LIFECYCLE_H
#define RANK_RANK_LIFECYCLE_H

#include "image/image.h"
#include "ranks/user_level_threads.h"

/* `argv` is the program's, its name included. */
void lifecycle_prepare(const struct image_plan *plan, int argc, char **argv);

/* Makes the images of ranks first .. end-1 and enters them everywhere; ends the job if that can't be. */
void lifecycle_make_ranks(int first, int end);

/* Once no rank is left: ends what they had in common. */
void lifecycle_end(int status);

/*
 * Takes in a rank from elsewhere: makes room, calls `content` to have it filled, and enters the rank everywhere; it
 * runs once ranks_resume() is called.  `needs_first_content`: what `content` leaves out is as before the rank ran.
 */
void lifecycle_take_in(const struct rank_ticket *ticket, bool needs_first_content,
                       void (*content)(void *context, const struct image *image), void *context);

/* Its image's memory is given back; the record stays, and says where it went. */
void lifecycle_give_up(int rank);

/* On each processing element's kernel thread, before ranks run on it, where ranks may come. */
void lifecycle_element_starts(uint32_t element);

#endif
