/*
 * collective_reduce.c: the collectives that combine: reduce, allreduce, reduce-scatter, scan.
 *
 * Operands are always combined in the order of ranks, so operations need not commute, and results are the same in
 * every run.
 */
#include "mpi/calls/collective_common.h"
#include "mpi/calls/op.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/library_memory.h"

#include <limits.h>
#include <string.h>

/* Memory for `count` elements as the type lays them out; `elements` is where the first one's offset 0 is. */
struct scratch {
    void *memory;
    void *elements;
};

static struct scratch scratch_new(int count, const struct datatype *type) {
    /* Up to the upper bound, not to the last byte of data: operations assign whole C structs, padding and all. */
    ptrdiff_t low = type->lower < 0 ? type->lower : 0, high = type->upper > 0 ? type->upper : 0;
    for (size_t b = 0; b < type->block_count; b++) {
        ptrdiff_t end = type->blocks[b].offset + (ptrdiff_t)type->blocks[b].bytes;
        low = type->blocks[b].offset < low ? type->blocks[b].offset : low;
        high = end > high ? end : high;
    }
    ptrdiff_t before = (-low + 15) / 16 * 16; /* keeps the allocation's alignment */
    ptrdiff_t more = count > 0 ? (count - 1) * type_extent(type) : 0;
    size_t bytes = (size_t)(before + more + high);
    struct scratch scratch = {.memory = host_allocate(bytes)};
    memset(scratch.memory, 0, bytes); /* gaps between blocks are copied with them by users' operations */
    scratch.elements = (char *)scratch.memory + before;
    return scratch;
}

/* A reduction's arguments. */
struct reduction {
    struct collective *call;
    int count;
    MPI_Datatype handle;
    struct datatype *type;
    MPI_Op op;
};

static struct reduction reduction_begin(struct collective *call, int count, MPI_Datatype type, MPI_Op op) {
    struct reduction reduction = {call, count, type, collective_type(call, count, type), op};
    if (!call->code && !op_valid(call->self, op, type))
        call->code = MPI_ERR_OP;
    return reduction;
}

static void note(struct collective *call, int code) {
    if (!call->code)
        call->code = code;
}

static void send_to(const struct reduction *r, const void *buffer, int dest) {
    note(r->call, collective_send(r->call->self, r->call->comm, buffer, r->count, r->type, dest, r->call->tag));
}

static void recv_from(const struct reduction *r, void *buffer, int source) {
    note(r->call, collective_recv(r->call->self, r->call->comm, buffer, r->count, r->type, source, r->call->tag));
}

static void combine(const struct reduction *r, void *lower, void *higher) {
    op_apply(r->call->self, r->op, lower, higher, r->count, r->handle);
}

/*
 * A binomial tree to rank 0: what comes from rank + mask covers the ranks just above those that we have, so combining
 * as it arrives keeps the order.  The result is in the returned scratch at rank 0.
 */
static struct scratch reduce_to_first(const struct reduction *r, const void *send) {
    struct scratch mine = scratch_new(r->count, r->type), other = scratch_new(r->count, r->type);
    collective_copy(send, r->count, r->type, mine.elements, r->type);
    int rank = r->call->rank, size = r->call->size;
    for (int mask = 1; mask < size; mask <<= 1) {
        if (rank & mask) {
            send_to(r, mine.elements, rank - mask);
            break;
        }
        if (rank + mask >= size)
            continue;
        recv_from(r, other.elements, rank + mask);
        combine(r, mine.elements, other.elements);
        struct scratch swap = mine;
        mine = other;
        other = swap;
    }
    host_release(other.memory);
    return mine;
}

static void reduce(const struct reduction *r, const void *send, void *recv, int root) {
    struct collective *call = r->call;
    struct scratch result = reduce_to_first(r, send == MPI_IN_PLACE ? recv : send);
    call->tag = collective_begin(call->comm); /* on every member: the way to the root is another message from 0 */
    if (call->rank == 0 && root == 0)
        collective_copy(result.elements, r->count, r->type, recv, r->type);
    else if (call->rank == 0)
        send_to(r, result.elements, root);
    else if (call->rank == root)
        recv_from(r, recv, 0);
    host_release(result.memory);
}

int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Reduce, comm, root);
    struct reduction r = reduction_begin(&call, count, type, op);
    if (!call.code)
        reduce(&r, send, recv, root);
    return collective_leave(&call);
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Allreduce, comm, NO_ROOT);
    struct reduction r = reduction_begin(&call, count, type, op);
    if (!call.code) {
        reduce(&r, send, recv, 0);
        note(&call, collective_broadcast(call.self, call.comm, recv, count, r.type, 0));
    }
    return collective_leave(&call);
}

/* Reduces everything at rank 0, which then deals out the parts. */
static void reduce_scatter(struct reduction *r, const void *send, void *recv, const int counts[], int count) {
    struct collective *call = r->call;
    struct scratch result = reduce_to_first(r, send == MPI_IN_PLACE ? recv : send);
    int mine = counts ? counts[call->rank] : count;
    call->tag = collective_begin(call->comm);
    r->count = mine;
    if (call->rank == 0) {
        ptrdiff_t index = mine;
        collective_copy(result.elements, mine, r->type, recv, r->type);
        for (int i = 1; i < call->size; i++) {
            r->count = counts ? counts[i] : count;
            send_to(r, element_at(result.elements, index, r->type), i);
            index += r->count;
        }
    } else {
        recv_from(r, recv, 0);
    }
    host_release(result.memory);
}

/* Of all ranks together; more elements than an int can count are refused. */
static int checked_count(struct collective *call, int64_t total) {
    if (total <= INT_MAX)
        return (int)total;
    note(call, MPI_ERR_COUNT);
    return 0;
}

int MPI_Reduce_scatter(const void *send, void *recv, const int recv_counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Reduce_scatter, comm, NO_ROOT);
    int64_t total = 0;
    for (int i = 0; i < call.size; i++) {
        if (recv_counts[i] < 0)
            note(&call, MPI_ERR_COUNT);
        else
            total += recv_counts[i];
    }
    struct reduction r = reduction_begin(&call, checked_count(&call, total), type, op);
    if (!call.code)
        reduce_scatter(&r, send, recv, recv_counts, 0);
    return collective_leave(&call);
}

int MPI_Reduce_scatter_block(const void *send, void *recv, int recv_count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Reduce_scatter_block, comm, NO_ROOT);
    int count = checked_count(&call, (int64_t)recv_count * call.size);
    struct reduction r = reduction_begin(&call, count, type, op);
    if (!call.code)
        reduce_scatter(&r, send, recv, NULL, recv_count);
    return collective_leave(&call);
}

/* A chain: each rank gets the prefix before it, and passes on the one with its own operand. */
static void scan(const struct reduction *r, const void *send, void *recv, bool exclusive) {
    struct collective *call = r->call;
    struct scratch prefix = scratch_new(r->count, r->type), sum = scratch_new(r->count, r->type);
    collective_copy(send == MPI_IN_PLACE ? recv : send, r->count, r->type, sum.elements, r->type);
    if (call->rank > 0) {
        recv_from(r, prefix.elements, call->rank - 1);
        combine(r, prefix.elements, sum.elements);
    }
    if (call->rank + 1 < call->size)
        send_to(r, sum.elements, call->rank + 1);
    if (!exclusive)
        collective_copy(sum.elements, r->count, r->type, recv, r->type);
    else if (call->rank > 0)
        collective_copy(prefix.elements, r->count, r->type, recv, r->type);
    host_release(prefix.memory);
    host_release(sum.memory);
}

int MPI_Scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Scan, comm, NO_ROOT);
    struct reduction r = reduction_begin(&call, count, type, op);
    if (!call.code)
        scan(&r, send, recv, false);
    return collective_leave(&call);
}

int MPI_Exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Exscan, comm, NO_ROOT);
    struct reduction r = reduction_begin(&call, count, type, op);
    if (!call.code)
        scan(&r, send, recv, true);
    return collective_leave(&call);
}
