/*
 * client.h: the functions that the library above ranks (MPI) registers, for ranks, jobs and checkpoints to call.
 *
 * A library whose calls ranks make (MPI) keeps something for each rank. What of it the runtime has to know, it asks
 * through these functions, so that ranks, jobs and checkpoints need not know which library it is.
 */
#ifndef RANK_CLIENT_H
#define RANK_CLIENT_H

#include <stdbool.h>

struct rank_client {
    /* Whether a rank that is here has begun to use the library and has not ended that (MPI_Init, MPI_Finalize). */
    bool (*is_unfinished)(int rank);
    /* The root of the collective call in which a rank that is here waits, as the rank gave it; -1: it has none. */
    int (*root)(int rank);
    /* Puts what waits for a rank into the rank's own memory, which goes elsewhere or into a checkpoint.  The rank is
     * off its stack.  Returns where it lies. */
    void *(*pack)(int rank);
    /* Takes it out again, where the rank is now. */
    void (*unpack)(int rank, void *content);
};

/* Once, before any rank runs. */
void rank_client_register(const struct rank_client *client);

const struct rank_client *rank_client(void);

#endif
