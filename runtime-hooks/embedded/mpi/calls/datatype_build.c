/*
 * datatype_build.c: the calls that build a datatype of others.
 *
 * Every constructor is a sequence of "so many of that type at this offset"; a builder collects these into blocks.
 */
#include "mpi/objects/call_names.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/handle_table.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/rank_state.h"

#include <stdlib.h>
#include <string.h>

struct builder {
    struct datatype *type;
    size_t capacity;
    bool any;    /* something was added: the bounds are known */
    bool failed; /* a count was negative or a type unknown */
};

static struct builder builder_begin(void) {
    struct builder builder = {.type = host_allocate(sizeof(struct datatype))};
    *builder.type = (struct datatype){.references = 1, .alignment = 1};
    return builder;
}

static void add_block(struct builder *builder, ptrdiff_t offset, size_t bytes) {
    struct datatype *type = builder->type;
    type->size += bytes;
    if (type->block_count) {
        struct type_block *last = &type->blocks[type->block_count - 1];
        if (last->offset + (ptrdiff_t)last->bytes == offset) {
            last->bytes += bytes;
            return;
        }
    }
    if (type->block_count == builder->capacity) {
        builder->capacity = builder->capacity ? 2 * builder->capacity : 8;
        struct type_block *blocks = host_allocate(builder->capacity * sizeof *blocks);
        if (type->block_count)
            memcpy(blocks, type->blocks, type->block_count * sizeof *blocks);
        host_release(type->blocks);
        type->blocks = blocks;
    }
    type->blocks[type->block_count++] = (struct type_block){offset, bytes};
}

/* Bounds that a user set win over all that follow from the data. */
static void add_bounds(struct builder *builder, ptrdiff_t lower, ptrdiff_t upper, bool resized) {
    struct datatype *type = builder->type;
    if (type->resized && !resized)
        return;
    bool first = !builder->any || (resized && !type->resized);
    type->lower = first || lower < type->lower ? lower : type->lower;
    type->upper = first || upper > type->upper ? upper : type->upper;
    type->resized |= resized;
    builder->any = true;
}

/* `count` elements of `old`, one extent apart, the first at `offset`. */
static void add(struct builder *builder, int count, ptrdiff_t offset, const struct datatype *old) {
    if (count < 0 || !old)
        builder->failed = true;
    if (builder->failed || count == 0)
        return;
    ptrdiff_t extent = type_extent(old);
    bool dense = old->block_count == 1 && (ptrdiff_t)old->blocks[0].bytes == extent;
    if (dense)
        add_block(builder, offset + old->blocks[0].offset, (size_t)extent * (size_t)count);
    for (int i = 0; i < count && !dense; i++)
        for (size_t b = 0; b < old->block_count; b++)
            add_block(builder, offset + i * extent + old->blocks[b].offset, old->blocks[b].bytes);
    ptrdiff_t span = (count - 1) * extent;
    ptrdiff_t low = offset + (span < 0 ? span : 0), high = offset + (span > 0 ? span : 0);
    add_bounds(builder, low + old->lower, high + old->upper, old->resized);
    if (old->alignment > builder->type->alignment)
        builder->type->alignment = old->alignment;
}

/* As C pads a struct. */
static void pad(struct datatype *type) {
    ptrdiff_t excess = type_extent(type) % (ptrdiff_t)type->alignment;
    if (!type->resized && excess)
        type->upper += (ptrdiff_t)type->alignment - excess;
}

static int builder_end(struct mpi_rank *self, struct builder *builder, enum call call, MPI_Datatype *handle) {
    if (builder->failed) {
        type_drop(builder->type);
        return mpi_fail(self, NULL, call, MPI_ERR_ARG);
    }
    *handle = table_add(&self->types, builder->type);
    return MPI_SUCCESS;
}

int MPI_Type_contiguous(int count, MPI_Datatype old, MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_contiguous);
    struct builder builder = builder_begin();
    add(&builder, count, 0, type_get(self, old));
    return builder_end(self, &builder, CALL_Type_contiguous, type);
}

static int build_vector(struct mpi_rank *self, enum call call, int count, int length, MPI_Aint stride,
                        const struct datatype *old, MPI_Datatype *type) {
    struct builder builder = builder_begin();
    builder.failed = count < 0 || length < 0 || !old;
    for (int i = 0; i < count && !builder.failed; i++)
        add(&builder, length, i * stride, old);
    return builder_end(self, &builder, call, type);
}

int MPI_Type_vector(int count, int length, int stride, MPI_Datatype old, MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_vector);
    const struct datatype *datatype = type_get(self, old);
    return build_vector(self, CALL_Type_vector, count, length, datatype ? stride * type_extent(datatype) : 0, datatype,
                        type);
}

int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_create_hvector);
    return build_vector(self, CALL_Type_create_hvector, count, length, stride, type_get(self, old), type);
}

int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *type) {
    return MPI_Type_create_hvector(count, length, stride, old, type);
}

int MPI_Type_indexed(int count, const int lengths[], const int offsets[], MPI_Datatype old, MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_indexed);
    const struct datatype *datatype = type_get(self, old);
    struct builder builder = builder_begin();
    builder.failed = count < 0 || !datatype;
    for (int i = 0; i < count && !builder.failed; i++)
        add(&builder, lengths[i], offsets[i] * type_extent(datatype), datatype);
    return builder_end(self, &builder, CALL_Type_indexed, type);
}

int MPI_Type_create_hindexed(int count, const int lengths[], const MPI_Aint offsets[], MPI_Datatype old,
                             MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_create_hindexed);
    const struct datatype *datatype = type_get(self, old);
    struct builder builder = builder_begin();
    builder.failed = count < 0 || !datatype;
    for (int i = 0; i < count && !builder.failed; i++)
        add(&builder, lengths[i], offsets[i], datatype);
    return builder_end(self, &builder, CALL_Type_create_hindexed, type);
}

int MPI_Type_create_struct(int count, const int lengths[], const MPI_Aint offsets[], const MPI_Datatype types[],
                           MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_create_struct);
    struct builder builder = builder_begin();
    builder.failed = count < 0;
    for (int i = 0; i < count && !builder.failed; i++)
        add(&builder, lengths[i], offsets[i], type_get(self, types[i]));
    pad(builder.type);
    return builder_end(self, &builder, CALL_Type_create_struct, type);
}

int MPI_Type_struct(int count, int lengths[], MPI_Aint offsets[], MPI_Datatype types[], MPI_Datatype *type) {
    return MPI_Type_create_struct(count, lengths, offsets, types, type);
}

int MPI_Type_create_resized(MPI_Datatype old, MPI_Aint lower, MPI_Aint extent, MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_create_resized);
    struct builder builder = builder_begin();
    add(&builder, 1, 0, type_get(self, old));
    builder.type->lower = lower;
    builder.type->upper = lower + extent;
    builder.type->resized = true;
    return builder_end(self, &builder, CALL_Type_create_resized, type);
}
