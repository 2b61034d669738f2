/*
 * checkpoint.h: a whole job in a folder, and a job from it.
 *
 * FOLDER/000001 is the first checkpoint: a core file per process, and the file `job`, which says how the job was
 * started and where everything was loaded.  It is written under another name and renamed once all is on the disk, so
 * what has such a name is whole.
 */
#ifndef RANK_JOB_CHECKPOINT_H
#define RANK_JOB_CHECKPOINT_H

#include "job/control_frames.h"

#include <limits.h>
#include <stdint.h>

/* What a checkpoint says of its job.  Strings live as long as the process. */
struct checkpoint_job {
    char job_id[64];
    int ranks, processes, number;
    char method[16], rewrite[16];
    uint64_t stack_size, range_size;
    int share_code;
    uint64_t guards[2];  /* of stacks and of saved pointers, which the ranks' memory holds traces of */
    const char *program; /* path of its file */
    int argument_count;
    char **arguments; /* of the program, its name as it was given included */
};

struct checkpoint {
    struct checkpoint_job job;
    char path[PATH_MAX];
    int *statuses;  /* by rank: of those that had exited; -1 */
    char **objects; /* what was loaded, and where: a line each (loaded_files.h), then NULL */
    int object_count;
};

/* The newest whole checkpoint in a folder, or the one that the path itself is; ends the process (status 2) if there is
 * none that can be read. */
const struct checkpoint *checkpoint_open(const char *folder);

/* Once the program is loaded: ends the process (status 2) if anything lies elsewhere than it did; then takes over what
 * libc keeps in the ranks' stacks. */
void checkpoint_match(const struct checkpoint *checkpoint);

/* The exit status that a rank had, -1: none; also without a checkpoint. */
int checkpoint_status(const struct checkpoint *checkpoint, int rank);

/* Takes in ranks first .. end-1. */
void checkpoint_restore(const struct checkpoint *checkpoint, int first, int end);

/* In the launcher.  Each returns 0 or an errno value; `last`: the number of the newest. */
int checkpoint_last(const char *folder);
int checkpoint_try(const char *folder); /* whether one can be begun there; makes the folder */
int checkpoint_begin(const char *folder, int number, struct wire_save *save);
int checkpoint_end(const char *folder, int number, const struct checkpoint_job *job, const int *statuses,
                   int processes);
void checkpoint_give_up(void); /* removes what is begun and not ended */

/* In a process, before its transport starts: from now on it saves its ranks, which are paused, when the launcher says
 * so.
 */
void checkpoint_prepare(void);

/* libc's guards, as they are on this thread, and as they have to be where ranks of another process are taken in. Other
 * threads get them from the one that makes them. */
void checkpoint_guards(uint64_t guards[2]);
void checkpoint_set_guards(const uint64_t guards[2]);

#endif
