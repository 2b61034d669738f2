/*
 * inbox.c: the inboxes of all ranks of the job, of those in other processes as well.
 */
#include "mpi/objects/inbox.h"
#include "image/shared_memory.h"
#include "job/process.h"
#include "mpi/objects/library_memory.h"
#include "ranks/scheduler.h"

static struct inbox *inboxes; /* by rank */

void inboxes_make(void) {
    int ranks = rank_total();
    inboxes = host_allocate((size_t)ranks * sizeof *inboxes);
    for (int i = 0; i < ranks; i++) {
        struct inbox *inbox = &inboxes[i];
        shared_lock_init(&inbox->lock);
        inbox->first_message = NULL;
        inbox->last_message = &inbox->first_message;
        inbox->first_posted = NULL;
        inbox->last_posted = &inbox->first_posted;
        inbox->is_away = !process_has_rank(i);
    }
}

struct inbox *inbox_of(int world) {
    return &inboxes[world];
}
