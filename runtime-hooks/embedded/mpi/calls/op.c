/*
 * op.c: operations: the predefined ones' handles and the users' own.
 *
 * A user's function is called on the rank that created its handle, so it is that rank's copy of the function.
 */
#include "mpi/calls/op.h"
#include "mpi/calls/op_kernels.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/error.h"
#include "mpi/objects/handle_table.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/rank_state.h"

#define LAST_PREDEFINED MPI_MAXLOC

/* What a user's handle names. */
struct operation {
    MPI_User_function *function;
};

static bool is_predefined(MPI_Op op) {
    return op > MPI_OP_NULL && op <= LAST_PREDEFINED;
}

/* Users' handles follow the predefined ones. */
static struct operation *user_operation(struct mpi_rank *self, MPI_Op op) {
    return table_get(&self->operations, op - LAST_PREDEFINED);
}

bool op_valid(struct mpi_rank *self, MPI_Op op, MPI_Datatype type) {
    _Alignas(16) char none[32] = {0}; /* a reduction of no elements tells whether there is one */
    if (is_predefined(op))
        return op_reduce(op, type, none, none, 0);
    return user_operation(self, op) != NULL;
}

void op_apply(struct mpi_rank *self, MPI_Op op, void *in, void *inout, int count, MPI_Datatype type) {
    if (count == 0)
        return;
    if (is_predefined(op))
        op_reduce(op, type, in, inout, (size_t)count);
    else
        user_operation(self, op)->function(in, inout, &count, &type);
}

int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *op) {
    struct mpi_rank *self = mpi_self(CALL_Op_create);
    (void)commute; /* reductions always keep the order of ranks */
    if (!function)
        return mpi_fail(self, NULL, CALL_Op_create, MPI_ERR_ARG);
    struct operation *made = host_allocate(sizeof *made);
    made->function = function;
    *op = table_add(&self->operations, made) + LAST_PREDEFINED;
    return MPI_SUCCESS;
}

int MPI_Op_free(MPI_Op *op) {
    struct mpi_rank *self = mpi_self(CALL_Op_free);
    struct operation *operation = user_operation(self, *op);
    if (!operation)
        return mpi_fail(self, NULL, CALL_Op_free, MPI_ERR_OP);
    table_remove(&self->operations, *op - LAST_PREDEFINED);
    host_release(operation);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}
