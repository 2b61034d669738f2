/*
 * migration.h: a rank's way to another process of the job.
 *
 * Everything that is the rank's lies in its address range, which is the same in every process: what moves is bytes.
 */
#ifndef RANK_JOB_MIGRATION_H
#define RANK_JOB_MIGRATION_H

#include "image/image.h"

#include <stdbool.h>

enum migration_mode {
    MIGRATE_WHOLE, /* all of the image, as PIEglobals' runtime does */
    MIGRATE_LEAN,  /* what is not zero, not as before the rank ran, and not unused stack */
};

/* `log`: a file descriptor that gets a line of JSON for each rank that has left, or -1. */
void migration_prepare(const struct image_plan *plan, enum migration_mode mode, int log);

/* Takes the calling rank to another process; returns there. False, with a sentence in `why`: it can't move. */
bool migration_start(int process, char *why, size_t room);

#endif
