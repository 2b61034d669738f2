/*
 * datatype.c: the predefined datatypes, packing and unpacking, and what programs ask of a datatype.
 *
 * How derived datatypes are built is in datatype_build.c.
 */
#include "mpi/objects/datatype.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/error.h"
#include "mpi/objects/handle_table.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/rank_state.h"

#include <complex.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define LAST_PREDEFINED MPI_REAL8

/* Size of the value and of its index for pairs; 0 for the index of others. */
static const struct {
    unsigned char value, index, extent;
} predefined[LAST_PREDEFINED + 1] = {
    [MPI_CHAR] = {1, 0, 1},
    [MPI_SIGNED_CHAR] = {1, 0, 1},
    [MPI_UNSIGNED_CHAR] = {1, 0, 1},
    [MPI_BYTE] = {1, 0, 1},
    [MPI_WCHAR] = {sizeof(wchar_t), 0, sizeof(wchar_t)},
    [MPI_SHORT] = {2, 0, 2},
    [MPI_UNSIGNED_SHORT] = {2, 0, 2},
    [MPI_INT] = {4, 0, 4},
    [MPI_UNSIGNED] = {4, 0, 4},
    [MPI_LONG] = {sizeof(long), 0, sizeof(long)},
    [MPI_UNSIGNED_LONG] = {sizeof(long), 0, sizeof(long)},
    [MPI_FLOAT] = {4, 0, 4},
    [MPI_DOUBLE] = {8, 0, 8},
    [MPI_LONG_DOUBLE] = {sizeof(long double), 0, sizeof(long double)},
    [MPI_LONG_LONG_INT] = {8, 0, 8},
    [MPI_UNSIGNED_LONG_LONG] = {8, 0, 8},
    [MPI_PACKED] = {1, 0, 1},
    [MPI_INT8_T] = {1, 0, 1},
    [MPI_INT16_T] = {2, 0, 2},
    [MPI_INT32_T] = {4, 0, 4},
    [MPI_INT64_T] = {8, 0, 8},
    [MPI_UINT8_T] = {1, 0, 1},
    [MPI_UINT16_T] = {2, 0, 2},
    [MPI_UINT32_T] = {4, 0, 4},
    [MPI_UINT64_T] = {8, 0, 8},
    [MPI_C_BOOL] = {1, 0, 1},
    [MPI_AINT] = {sizeof(MPI_Aint), 0, sizeof(MPI_Aint)},
    [MPI_OFFSET] = {8, 0, 8},
    [MPI_COUNT] = {8, 0, 8},
    [MPI_C_FLOAT_COMPLEX] = {8, 0, 8},
    [MPI_C_DOUBLE_COMPLEX] = {16, 0, 16},
    [MPI_FLOAT_INT] = {4, 4, 8},
    [MPI_DOUBLE_INT] = {8, 4, 16},
    [MPI_LONG_INT] = {sizeof(long), 4, 2 * sizeof(long)},
    [MPI_2INT] = {4, 4, 8},
    [MPI_SHORT_INT] = {2, 4, 8},
    [MPI_LONG_DOUBLE_INT] = {sizeof(long double), 4, 2 * sizeof(long double)},
    [MPI_CHARACTER] = {1, 0, 1},
    [MPI_LOGICAL] = {4, 0, 4},
    [MPI_INTEGER] = {4, 0, 4},
    [MPI_REAL] = {4, 0, 4},
    [MPI_DOUBLE_PRECISION] = {8, 0, 8},
    [MPI_COMPLEX] = {8, 0, 8},
    [MPI_DOUBLE_COMPLEX] = {16, 0, 16},
    [MPI_2INTEGER] = {4, 4, 8},
    [MPI_2REAL] = {4, 4, 8},
    [MPI_2DOUBLE_PRECISION] = {8, 8, 16},
    [MPI_INTEGER1] = {1, 0, 1},
    [MPI_INTEGER2] = {2, 0, 2},
    [MPI_INTEGER4] = {4, 0, 4},
    [MPI_INTEGER8] = {8, 0, 8},
    [MPI_REAL4] = {4, 0, 4},
    [MPI_REAL8] = {8, 0, 8},
};

static struct type_block predefined_blocks[LAST_PREDEFINED + 1][2];
static struct datatype predefined_types[LAST_PREDEFINED + 1];

void types_prepare(void) {
    for (int i = 1; i <= LAST_PREDEFINED; i++) {
        size_t value = predefined[i].value, index = predefined[i].index;
        /* A pair's index lies where C puts an int after the value, never before byte 4 (MPI_SHORT_INT). */
        ptrdiff_t index_offset = value < index ? (ptrdiff_t)index : (ptrdiff_t)value;
        predefined_blocks[i][0] = (struct type_block){0, value};
        predefined_blocks[i][1] = (struct type_block){index_offset, index};
        bool dense = index_offset == (ptrdiff_t)value;
        if (dense)
            predefined_blocks[i][0].bytes += index;
        predefined_types[i] = (struct datatype){.references = 1,
                                                .committed = true,
                                                .size = value + index,
                                                .alignment = value < index ? index : value,
                                                .upper = predefined[i].extent,
                                                .block_count = dense ? 1 : 2,
                                                .blocks = predefined_blocks[i]};
    }
    /* The complex types align as their parts do. */
    predefined_types[MPI_C_FLOAT_COMPLEX].alignment = predefined_types[MPI_COMPLEX].alignment = _Alignof(float);
    predefined_types[MPI_C_DOUBLE_COMPLEX].alignment = _Alignof(double);
    predefined_types[MPI_DOUBLE_COMPLEX].alignment = _Alignof(double);
}

/* The predefined datatypes are shared by all ranks; their handles are the first of each rank's table. */
void types_initialize(struct mpi_rank *self) {
    for (int i = 1; i <= LAST_PREDEFINED; i++)
        table_add(&self->types, &predefined_types[i]);
}

static bool is_predefined(const struct datatype *type) {
    return type >= predefined_types && type <= predefined_types + LAST_PREDEFINED;
}

/* Ranks of several processing elements share the predefined ones, so these are not counted. */
void type_hold(struct datatype *type) {
    if (!is_predefined(type))
        type->references++;
}

void type_drop(struct datatype *type) {
    if (is_predefined(type) || --type->references)
        return;
    host_release(type->blocks);
    host_release(type);
}

ptrdiff_t type_extent(const struct datatype *type) {
    return type->upper - type->lower;
}

static bool is_dense(const struct datatype *type) {
    return type->block_count == 1 && type->blocks[0].offset == 0 && (ptrdiff_t)type->size == type_extent(type);
}

bool type_fits_buffer(const struct datatype *type, size_t bytes, const void *buffer) {
    return buffer || bytes == 0 || type->lower > 0;
}

void type_pack(const struct datatype *type, int count, const void *from, void *bytes) {
    unsigned char *out = bytes;
    if (count == 0 || type->size == 0)
        return;
    if (is_dense(type)) {
        memcpy(out, from, type->size * (size_t)count);
        return;
    }
    for (int i = 0; i < count; i++) {
        /* Addresses as numbers: the base is NULL when the offsets are absolute (MPI_BOTTOM). */
        uintptr_t element = (uintptr_t)from + (uintptr_t)(i * type_extent(type));
        for (size_t b = 0; b < type->block_count; b++) {
            memcpy(out, (const void *)(element + (uintptr_t)type->blocks[b].offset), type->blocks[b].bytes);
            out += type->blocks[b].bytes;
        }
    }
}

void type_unpack(const struct datatype *type, size_t bytes_limit, const void *bytes, void *to) {
    const unsigned char *in = bytes;
    if (bytes_limit == 0 || type->size == 0)
        return;
    if (is_dense(type)) {
        memcpy(to, in, bytes_limit);
        return;
    }
    for (uintptr_t element = (uintptr_t)to;; element += (uintptr_t)type_extent(type)) {
        for (size_t b = 0; b < type->block_count; b++) {
            size_t length = type->blocks[b].bytes < bytes_limit ? type->blocks[b].bytes : bytes_limit;
            memcpy((void *)(element + (uintptr_t)type->blocks[b].offset), in, length);
            in += length;
            bytes_limit -= length;
            if (bytes_limit == 0)
                return;
        }
    }
}

int MPI_Type_commit(MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_commit);
    struct datatype *found = type_get(self, *type);
    if (!found)
        return mpi_fail(self, NULL, CALL_Type_commit, MPI_ERR_TYPE);
    if (!found->committed) /* ranks of several processing elements share the predefined ones */
        found->committed = true;
    return MPI_SUCCESS;
}

int MPI_Type_free(MPI_Datatype *type) {
    struct mpi_rank *self = mpi_self(CALL_Type_free);
    struct datatype *datatype = type_get(self, *type);
    if (!datatype || is_predefined(datatype))
        return mpi_fail(self, NULL, CALL_Type_free, MPI_ERR_TYPE);
    table_remove(&self->types, *type);
    type_drop(datatype);
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int MPI_Type_size(MPI_Datatype type, int *size) {
    struct mpi_rank *self = mpi_self(CALL_Type_size);
    const struct datatype *datatype = type_get(self, type);
    if (!datatype)
        return mpi_fail(self, NULL, CALL_Type_size, MPI_ERR_TYPE);
    *size = datatype->size > INT_MAX ? MPI_UNDEFINED : (int)datatype->size;
    return MPI_SUCCESS;
}

int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent) {
    struct mpi_rank *self = mpi_self(CALL_Type_get_extent);
    const struct datatype *datatype = type_get(self, type);
    if (!datatype)
        return mpi_fail(self, NULL, CALL_Type_get_extent, MPI_ERR_TYPE);
    *lower = datatype->lower;
    *extent = type_extent(datatype);
    return MPI_SUCCESS;
}

int MPI_Type_extent(MPI_Datatype type, MPI_Aint *extent) {
    MPI_Aint lower;
    return MPI_Type_get_extent(type, &lower, extent);
}
