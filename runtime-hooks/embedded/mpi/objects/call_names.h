/*
 * call_names.h: the calls that may block or fail, and their names.
 */
#ifndef RANK_MPI_CALL_NAMES_H
#define RANK_MPI_CALL_NAMES_H

#include <stdint.h>

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

/* A collective as one member of the communicator calls it. */
struct collective_call {
    enum call call;
    int root; /* NO_ROOT: the call has none */
};
#define NO_ROOT (-1)

/* Enters the names in the registry, before any rank runs. */
void calls_register(void);

/* As in "MPI_Send". */
const char *call_name(enum call call);

/* Its number in the registry. */
uint32_t call_index(enum call call);

#endif
