/*
 * rank_state.h: what the library keeps for one rank.
 */
#ifndef RANK_MPI_RANK_STATE_H
#define RANK_MPI_RANK_STATE_H

#include "mpi/objects/call_names.h"
#include "mpi/objects/handle_table.h"

#include <stdbool.h>
#include <stdint.h>

struct inbox;
struct rank;
struct request;

/*
 * Of one rank alone, and reached by its attachment.  With a rank that moves goes this, all that the tables hold, and
 * the inbox's messages and requests (inbox_migration.c); the inbox itself and the predefined datatypes are every
 * process's own.
 */
struct mpi_rank {
    struct rank *rank;
    int world;
    struct inbox *inbox;
    bool initialized;
    bool finalized;
    int thread_level;
    int root; /* of the collective that it is in, as it gave it; NO_ROOT: in none that has a root */
    struct table communicators, types, operations, requests, groups, handlers;
    struct request *detached;
    uint64_t contexts;      /* how many context numbers it has drawn */
    uint64_t cycles_before; /* of rank_cycles(), at the last MPIX_Migrate() */
    uint32_t *sent;         /* by receiver: messages so far, where ranks may move; NULL: none */
};

/* The calling rank's, made when it is first asked for. */
struct mpi_rank *mpi_rank_state(void);

/* The same, between MPI_Init and MPI_Finalize; anything else is fatal.  What every call begins with. */
struct mpi_rank *mpi_self(enum call call);

/* What mpi_self() calls for a rank that has detached requests. */
void mpi_rank_on_detached(void (*sweep)(struct mpi_rank *self));

#endif
