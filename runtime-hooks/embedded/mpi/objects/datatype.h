/*
 * datatype.h: datatypes: flattened to blocks of bytes, packed and unpacked.
 */
#ifndef RANK_MPI_DATATYPE_H
#define RANK_MPI_DATATYPE_H

#include "mpi.h"
#include "mpi/objects/rank_state.h"

#include <stdbool.h>
#include <stddef.h>

/* A run of bytes within a datatype. */
struct type_block {
    ptrdiff_t offset;
    size_t bytes;
};

/* A datatype, flattened: the blocks of one element in the order of its type map. */
struct datatype {
    int references;
    bool committed; /* by MPI_Type_commit: fit for communication; predefined ones are so from the beginning */
    bool resized;   /* bounds were set by the user, and stick to what is built of it */
    size_t size;    /* bytes of data */
    size_t alignment;
    ptrdiff_t lower;
    ptrdiff_t upper;
    size_t block_count;
    struct type_block *blocks;
};

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
/* Once, before any rank runs. */
void types_prepare(void);
/* The predefined types' handles, in MPI_Init. */
void types_initialize(struct mpi_rank *self);

#endif
