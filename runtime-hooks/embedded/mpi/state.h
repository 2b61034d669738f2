/*
 * state.h: what the MPI library keeps per rank, and what its files offer each other.
 *
 * All of it lies in host memory, or, where ranks may move, in the rank's heap, so that it goes with it.  A rank's inbox
 * (lock, messages, posted receives, `done` of its requests) is touched by other ranks under the inbox's lock;
 * everything else only by the rank itself, so it needs no lock.  A rank's buffers are never touched by another rank:
 * senders pack, receivers unpack.
 */
#ifndef RANK_MPI_STATE_H
#define RANK_MPI_STATE_H

#include "mpi.h"
#include "ranks/scheduler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* rank_debug.h: "any" and "none" for a peer or a tag. */
#define PUBLISH_ANY (-1)
#define PUBLISH_NONE (-2)

/* A run of bytes within a datatype. */
struct type_block {
    ptrdiff_t offset;
    size_t bytes;
};

/* A datatype, flattened: the blocks of one element in the order of its type map. */
struct datatype {
    int references;
    bool resized; /* bounds were set by the user, and stick to what is built of it */
    size_t size;  /* bytes of data */
    size_t alignment;
    ptrdiff_t lower;
    ptrdiff_t upper;
    size_t block_count;
    struct type_block *blocks;
};

struct group {
    int references;
    int size;
    int members[]; /* ranks of MPI_COMM_WORLD */
};

/* One direction of a grid of ranks. */
struct axis {
    int size;
    bool is_periodic;
};

struct cartesian {
    int count;
    struct axis axes[];
};

struct communicator {
    int references;
    uint64_t context; /* equal on all members, and no other communicator's */
    int rank;
    int collective; /* how many collectives have begun: the tag of their messages */
    MPI_Errhandler handler;
    struct group *group;
    struct cartesian *cartesian; /* its own; NULL: its ranks are in no grid */
};

struct operation {
    MPI_User_function *function;
};

enum channel { CHANNEL_USER, CHANNEL_COLLECTIVE };

struct request;

/* A message on its way: packed data, owned by the inbox and then by the request that it matched. */
struct message {
    struct message *next;
    uint64_t context;
    enum channel channel;
    int source; /* rank in the communicator */
    int tag;
    int origin;        /* the same rank in MPI_COMM_WORLD */
    uint32_t sequence; /* how many messages that one had sent to this rank before: ways differ where ranks move */
    size_t bytes;
    struct request *sender; /* a synchronous send of `origin` that waits for the match, or NULL */
    unsigned char data[];
};

/* A communication that was begun.  `done` and `message` belong to the owner's inbox lock. */
struct request {
    struct request *next;          /* in the inbox's posted receives */
    struct request *detached_next; /* in the owner's detached requests: MPI_Request_free, nobody will wait for it */
    int owner;                     /* rank in MPI_COMM_WORLD */
    bool receives;
    bool done;
    bool persistent;  /* MPI_Start begins it, any number of times */
    bool active;      /* begun, and not completed since; always so if it is not persistent */
    bool synchronous; /* how a persistent send is begun */
    enum channel channel;
    uint64_t context;
    int peer;
    int tag;
    struct message *message; /* what it received */
    void *buffer;
    int count;
    struct datatype *type;
    struct communicator *comm;
};

/* What other ranks may touch of a rank. */
struct inbox {
    pthread_mutex_t lock;
    struct message *first_message, **last_message;
    struct request *first_posted, **last_posted;
    /* Where ranks may move: */
    bool is_away;          /* the rank is in another process */
    struct message *early; /* overtook one that is still on its way */
    uint32_t *expected;    /* by origin: the next sequence number; NULL: all 0 */
};

/* Handle table: index is the handle, NULL is free; 0 is never given out. */
struct table {
    void **slots;
    int size;
    int used;
    int last; /* handle given out last: the next search begins behind it, so that a freed one stays bad for long */
};

/*
 * Of one rank alone, and reached by its attachment.  With a rank that moves goes this, all that the tables hold, and
 * the inbox's messages and requests (mobility.c); the inbox itself and the predefined datatypes are every process's
 * own.
 */
struct mpi_rank {
    struct rank *rank;
    int world;
    struct inbox *inbox;
    bool initialized;
    bool finalized;
    int thread_level;
    struct table communicators, types, operations, requests, groups, handlers;
    struct request *detached;
    uint64_t contexts;      /* how many context numbers it has drawn */
    uint64_t cycles_before; /* of rank_cycles(), at the last MPIX_Migrate() */
    uint32_t *sent;         /* by receiver: messages so far, where ranks may move; NULL: none */
};

/* Calls that may block (or fail): MPI_##name. */
/* Laid out by hand: the formatter would indent each name deeper than the one before. */
/* clang-format off */
#define MPI_CALLS(X) \
    X(Init) X(Init_thread) X(Finalize) X(Abort) X(Comm_rank) X(Comm_size) X(Comm_dup) X(Comm_split) X(Comm_create) \
    X(Comm_free) X(Comm_compare) X(Comm_group) X(Group_rank) X(Group_size) X(Group_incl) X(Group_excl) \
    X(Group_translate_ranks) X(Group_compare) X(Group_free) X(Comm_set_errhandler) X(Comm_get_errhandler) \
    X(Comm_create_errhandler) X(Errhandler_free) X(Send) X(Ssend) X(Recv) X(Sendrecv) X(Sendrecv_replace) X(Isend) \
    X(Issend) X(Irecv) X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Probe) X(Iprobe) \
    X(Get_count) X(Request_free) X(Type_contiguous) X(Type_vector) X(Type_create_hvector) X(Type_indexed) \
    X(Type_create_hindexed) X(Type_create_struct) X(Type_create_resized) X(Type_commit) X(Type_free) X(Type_size) \
    X(Type_get_extent) X(Op_create) X(Op_free) X(Barrier) X(Bcast) X(Reduce) X(Allreduce) X(Gather) X(Gatherv) \
    X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) X(Alltoall) X(Alltoallv) X(Reduce_scatter) \
    X(Reduce_scatter_block) X(Scan) X(Exscan) X(Query_thread) X(Send_init) X(Rsend_init) X(Ssend_init) X(Recv_init) \
    X(Start) X(Startall) X(Cart_create) X(Cartdim_get) X(Cart_get) X(Cart_rank) X(Cart_coords) X(Cart_shift) \
    X(Cart_sub) X(Topo_test) X(Dims_create)
/* clang-format on */

/* Calls beyond the standard: MPIX_##name. */
#define MPIX_CALLS(X) X(Migrate) X(Migrate_to)

#define MPI_CALL_ENUM(name) CALL_##name,
enum call { MPI_CALLS(MPI_CALL_ENUM) MPIX_CALLS(MPI_CALL_ENUM) CALL_COUNT };
#undef MPI_CALL_ENUM

/* state.c */
void mpi_prepare(void); /* the runtime calls it once, before any rank runs */
const char *call_name(enum call call);
void call_publish(enum call call, int peer, int tag, const struct communicator *comm);
struct mpi_rank *mpi_rank_state(void);     /* the calling rank's, made when it is first asked for */
struct mpi_rank *mpi_self(enum call call); /* the same, between MPI_Init and MPI_Finalize; anything else is fatal */
struct inbox *inbox_of(int world);         /* exists before its rank calls MPI_Init */
/* The calling rank's memory of ours, never NULL: no memory ends the job. */
void *host_allocate(size_t bytes);
void *host_allocate_message(size_t bytes); /* whoever calls, the process's */
void host_release(void *memory);
int table_add(struct table *table, void *value); /* its handle */
static inline void *table_get(const struct table *table, int handle) {
    return handle > 0 && handle < table->size ? table->slots[handle] : NULL;
}
void table_remove(struct table *table, int handle);

/* environment.c: applies the communicator's (or, with NULL, MPI_COMM_WORLD's) error handler; returns code. */
int mpi_fail(struct mpi_rank *self, struct communicator *comm, enum call call, int code);
const char *error_text(int code);

/* message.c */
void message_deliver(int world, struct message *message); /* here, or where the rank has gone */
void request_acknowledge(int owner, struct request *sender);
int message_send(struct mpi_rank *self, struct communicator *comm, enum channel channel, const void *buffer, int count,
                 struct datatype *type, int dest, int tag, struct request *sender);
void message_post(struct mpi_rank *self, struct request *receive);
bool message_find(struct mpi_rank *self, struct communicator *comm, int source, int tag, bool wait, MPI_Status *status);
void status_set(MPI_Status *status, int source, int tag, size_t bytes);
void status_set_empty(MPI_Status *status);

/* request.c */
struct request *request_new(struct mpi_rank *self, struct communicator *comm, bool receives, void *buffer, int count,
                            struct datatype *type, int peer, int tag);
struct request *request_receive(struct mpi_rank *self, struct communicator *comm, enum channel channel, void *buffer,
                                int count, struct datatype *type, int source, int tag);
int request_wait(struct mpi_rank *self, struct request *request, MPI_Status *status); /* and release it */
void request_release(struct request *request);
void request_sweep(struct mpi_rank *self); /* completes detached receives whose message has come */

/* point_to_point.c */
int check_message(struct communicator *comm, int count, struct datatype *type, int peer, int tag, bool receives);

/* datatype.c, datatype_build.c */
static inline struct datatype *type_get(struct mpi_rank *self, MPI_Datatype handle) { /* NULL: no such type */
    return table_get(&self->types, handle);
}
void type_hold(struct datatype *type);
void type_drop(struct datatype *type);
ptrdiff_t type_extent(const struct datatype *type);
/* False for a NULL buffer, unless the type itself has addresses (MPI_BOTTOM). */
bool type_fits_buffer(const struct datatype *type, size_t bytes, const void *buffer);
void type_pack(const struct datatype *type, int count, const void *from, void *bytes);
void type_unpack(const struct datatype *type, size_t bytes_limit, const void *bytes, void *to);
void types_prepare(void); /* once per job */
void types_initialize(struct mpi_rank *self);

/* op.c */
bool op_valid(struct mpi_rank *self, MPI_Op op, MPI_Datatype type);
/* inout[i] = in[i] op inout[i] */
void op_apply(struct mpi_rank *self, MPI_Op op, void *in, void *inout, int count, MPI_Datatype type);
bool op_reduce(MPI_Op op, MPI_Datatype type, const void *in, void *inout, size_t count); /* op_kernels.c */

/* communicator.c */
static inline struct communicator *comm_get(struct mpi_rank *self, MPI_Comm handle) { /* NULL: no such one */
    return table_get(&self->communicators, handle);
}
void comm_hold(struct communicator *comm);
void comm_drop(struct communicator *comm);
void comms_initialize(struct mpi_rank *self);
MPI_Comm comm_split(struct mpi_rank *self, struct communicator *comm, int color, int key); /* collective */

/* cartesian.c */
struct cartesian *cartesian_copy(const struct cartesian *grid); /* NULL of NULL */

/* group.c */
struct group *group_new(int size);
struct group *group_get(struct mpi_rank *self, MPI_Group handle);
void group_drop(struct group *group);
int group_find(const struct group *group, int world); /* MPI_UNDEFINED if it isn't a member */
int group_compare(const struct group *first, const struct group *second);

/* collective.c: what the collectives are built of; nothing here publishes a call. */
int comm_size(const struct communicator *comm);
int collective_begin(struct communicator *comm); /* the tag of this collective's messages */
int collective_send(struct mpi_rank *self, struct communicator *comm, const void *buffer, int count,
                    struct datatype *type, int dest, int tag);
int collective_recv(struct mpi_rank *self, struct communicator *comm, void *buffer, int count, struct datatype *type,
                    int source, int tag);
int collective_broadcast(struct mpi_rank *self, struct communicator *comm, void *buffer, int count,
                         struct datatype *type, int root);
int collective_barrier(struct mpi_rank *self, struct communicator *comm);
/* from and to may be the same buffer, but must not overlap otherwise */
void collective_copy(const void *from, int from_count, const struct datatype *from_type, void *to,
                     const struct datatype *to_type);
void *element_at(const void *buffer, ptrdiff_t index, const struct datatype *type);

/* A collective call between its checks and its end. */
struct collective {
    struct mpi_rank *self;
    struct communicator *comm;
    enum call call;
    int size, rank, tag;
    int code; /* not MPI_SUCCESS: the call ends with it */
};
/* Checks and publishes; `root` is 0 for collectives that have none. */
struct collective collective_enter(enum call call, MPI_Comm comm, int root);
/* The type, or NULL with code set. */
struct datatype *collective_type(struct collective *collective, int count, MPI_Datatype type);
int collective_leave(struct collective *collective);

#endif
