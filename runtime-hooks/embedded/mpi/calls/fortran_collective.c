/*
 * fortran_collective.c: Fortran bindings of the collectives.  See fortran.h for the conventions.
 */
#include "mpi/calls/fortran.h"

#define BIND(name, call, ...)                                                                                          \
    void name(__VA_ARGS__, fint *error);                                                                               \
    void name(__VA_ARGS__, fint *error) {                                                                              \
        *error = call;                                                                                                 \
    }

#define SEND fortran_buffer(send)
#define RECV fortran_buffer(recv)

BIND(mpi_barrier_, MPI_Barrier(*comm), fint *comm)
BIND(mpi_bcast_, MPI_Bcast(fortran_buffer(buffer), *count, *type, *root, *comm), void *buffer, fint *count, fint *type,
     fint *root, fint *comm)
BIND(mpi_reduce_, MPI_Reduce(SEND, RECV, *count, *type, *op, *root, *comm), void *send, void *recv, fint *count,
     fint *type, fint *op, fint *root, fint *comm)
BIND(mpi_allreduce_, MPI_Allreduce(SEND, RECV, *count, *type, *op, *comm), void *send, void *recv, fint *count,
     fint *type, fint *op, fint *comm)
BIND(mpi_gather_, MPI_Gather(SEND, *send_count, *send_type, RECV, *recv_count, *recv_type, *root, *comm), void *send,
     fint *send_count, fint *send_type, void *recv, fint *recv_count, fint *recv_type, fint *root, fint *comm)
BIND(mpi_gatherv_, MPI_Gatherv(SEND, *send_count, *send_type, RECV, counts, offsets, *recv_type, *root, *comm),
     void *send, fint *send_count, fint *send_type, void *recv, fint *counts, fint *offsets, fint *recv_type,
     fint *root, fint *comm)
BIND(mpi_scatter_, MPI_Scatter(SEND, *send_count, *send_type, RECV, *recv_count, *recv_type, *root, *comm), void *send,
     fint *send_count, fint *send_type, void *recv, fint *recv_count, fint *recv_type, fint *root, fint *comm)
BIND(mpi_scatterv_, MPI_Scatterv(SEND, counts, offsets, *send_type, RECV, *recv_count, *recv_type, *root, *comm),
     void *send, fint *counts, fint *offsets, fint *send_type, void *recv, fint *recv_count, fint *recv_type,
     fint *root, fint *comm)
BIND(mpi_allgather_, MPI_Allgather(SEND, *send_count, *send_type, RECV, *recv_count, *recv_type, *comm), void *send,
     fint *send_count, fint *send_type, void *recv, fint *recv_count, fint *recv_type, fint *comm)
BIND(mpi_allgatherv_, MPI_Allgatherv(SEND, *send_count, *send_type, RECV, counts, offsets, *recv_type, *comm),
     void *send, fint *send_count, fint *send_type, void *recv, fint *counts, fint *offsets, fint *recv_type,
     fint *comm)
BIND(mpi_alltoall_, MPI_Alltoall(SEND, *send_count, *send_type, RECV, *recv_count, *recv_type, *comm), void *send,
     fint *send_count, fint *send_type, void *recv, fint *recv_count, fint *recv_type, fint *comm)
BIND(mpi_alltoallv_,
     MPI_Alltoallv(SEND, send_counts, send_offsets, *send_type, RECV, recv_counts, recv_offsets, *recv_type, *comm),
     void *send, fint *send_counts, fint *send_offsets, fint *send_type, void *recv, fint *recv_counts,
     fint *recv_offsets, fint *recv_type, fint *comm)
BIND(mpi_reduce_scatter_, MPI_Reduce_scatter(SEND, RECV, counts, *type, *op, *comm), void *send, void *recv,
     fint *counts, fint *type, fint *op, fint *comm)
BIND(mpi_reduce_scatter_block_, MPI_Reduce_scatter_block(SEND, RECV, *count, *type, *op, *comm), void *send, void *recv,
     fint *count, fint *type, fint *op, fint *comm)
BIND(mpi_scan_, MPI_Scan(SEND, RECV, *count, *type, *op, *comm), void *send, void *recv, fint *count, fint *type,
     fint *op, fint *comm)
BIND(mpi_exscan_, MPI_Exscan(SEND, RECV, *count, *type, *op, *comm), void *send, void *recv, fint *count, fint *type,
     fint *op, fint *comm)
