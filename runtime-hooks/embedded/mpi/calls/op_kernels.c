/*
 * op_kernels.c: the predefined reductions, one loop per operation and kind of number.
 *
 * It takes dense arrays of a predefined datatype; which operation may be applied to which type is as MPI-3.1, 5.9.2.
 */
#include "mpi/calls/op_kernels.h"

#include <complex.h>
#include <stdint.h>

/* A loop over both arrays; a and b are the operands, the result goes to inout. */
#define LOOP(type, expression)                                                                                         \
    do {                                                                                                               \
        const type *x = in;                                                                                            \
        type *y = inout;                                                                                               \
        for (size_t i = 0; i < count; i++) {                                                                           \
            type a = x[i], b = y[i];                                                                                   \
            y[i] = (type)(expression);                                                                                 \
        }                                                                                                              \
        return true;                                                                                                   \
    } while (0)

/* Unsigned arithmetic where a signed one could overflow: wraps, as MPICH's does in practice. */
#define INTEGER(name, type, unsigned_type)                                                                             \
    static bool reduce_##name(MPI_Op op, const void *in, void *inout, size_t count) {                                  \
        switch (op) {                                                                                                  \
        case MPI_MAX:                                                                                                  \
            LOOP(type, a > b ? a : b);                                                                                 \
        case MPI_MIN:                                                                                                  \
            LOOP(type, a < b ? a : b);                                                                                 \
        case MPI_SUM:                                                                                                  \
            LOOP(type, (unsigned_type)a + (unsigned_type)b);                                                           \
        case MPI_PROD:                                                                                                 \
            LOOP(type, 1u * (unsigned_type)a * (unsigned_type)b);                                                      \
        case MPI_LAND:                                                                                                 \
            LOOP(type, a &&b);                                                                                         \
        case MPI_LOR:                                                                                                  \
            LOOP(type, a || b);                                                                                        \
        case MPI_LXOR:                                                                                                 \
            LOOP(type, !a != !b);                                                                                      \
        case MPI_BAND:                                                                                                 \
            LOOP(type, a &b);                                                                                          \
        case MPI_BOR:                                                                                                  \
            LOOP(type, a | b);                                                                                         \
        case MPI_BXOR:                                                                                                 \
            LOOP(type, a ^ b);                                                                                         \
        default:                                                                                                       \
            return false;                                                                                              \
        }                                                                                                              \
    }

#define FLOATING(name, type)                                                                                           \
    static bool reduce_##name(MPI_Op op, const void *in, void *inout, size_t count) {                                  \
        switch (op) {                                                                                                  \
        case MPI_MAX:                                                                                                  \
            LOOP(type, a > b ? a : b);                                                                                 \
        case MPI_MIN:                                                                                                  \
            LOOP(type, a < b ? a : b);                                                                                 \
        case MPI_SUM:                                                                                                  \
            LOOP(type, a + b);                                                                                         \
        case MPI_PROD:                                                                                                 \
            LOOP(type, a *b);                                                                                          \
        case MPI_LAND:                                                                                                 \
            LOOP(type, a &&b);                                                                                         \
        case MPI_LOR:                                                                                                  \
            LOOP(type, a || b);                                                                                        \
        case MPI_LXOR:                                                                                                 \
            LOOP(type, !a != !b);                                                                                      \
        default:                                                                                                       \
            return false;                                                                                              \
        }                                                                                                              \
    }

#define COMPLEX(name, type)                                                                                            \
    static bool reduce_##name(MPI_Op op, const void *in, void *inout, size_t count) {                                  \
        switch (op) {                                                                                                  \
        case MPI_SUM:                                                                                                  \
            LOOP(type, a + b);                                                                                         \
        case MPI_PROD:                                                                                                 \
            LOOP(type, a *b);                                                                                          \
        default:                                                                                                       \
            return false;                                                                                              \
        }                                                                                                              \
    }

/* Of equal values the lower index wins. */
#define PAIR(name, value_type, index_type)                                                                             \
    struct pair_##name {                                                                                               \
        value_type value;                                                                                              \
        index_type index;                                                                                              \
    };                                                                                                                 \
    static bool reduce_##name(MPI_Op op, const void *in, void *inout, size_t count) {                                  \
        const struct pair_##name *x = in;                                                                              \
        struct pair_##name *y = inout;                                                                                 \
        if (op != MPI_MINLOC && op != MPI_MAXLOC)                                                                      \
            return false;                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                                           \
            bool better = op == MPI_MINLOC ? x[i].value < y[i].value : x[i].value > y[i].value;                        \
            if (better || (x[i].value == y[i].value && x[i].index < y[i].index))                                       \
                y[i] = x[i];                                                                                           \
        }                                                                                                              \
        return true;                                                                                                   \
    }

INTEGER(int8, int8_t, uint8_t)
INTEGER(int16, int16_t, uint16_t)
INTEGER(int32, int32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t)
INTEGER(uint8, uint8_t, uint8_t)
INTEGER(uint16, uint16_t, uint16_t)
INTEGER(uint32, uint32_t, uint32_t)
INTEGER(uint64, uint64_t, uint64_t)
FLOATING(float, float)
FLOATING(double, double)
FLOATING(long_double, long double)
COMPLEX(float_complex, float _Complex)
COMPLEX(double_complex, double _Complex)
PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(2int, int, int)
PAIR(short_int, short, int)
PAIR(long_double_int, long double, int)
PAIR(2real, float, float)
PAIR(2double, double, double)

typedef bool kernel(MPI_Op op, const void *in, void *inout, size_t count);

static kernel *const kernels[] = {
    [MPI_CHAR] = reduce_int8,
    [MPI_SIGNED_CHAR] = reduce_int8,
    [MPI_UNSIGNED_CHAR] = reduce_uint8,
    [MPI_BYTE] = reduce_uint8,
    [MPI_WCHAR] = reduce_int32,
    [MPI_SHORT] = reduce_int16,
    [MPI_UNSIGNED_SHORT] = reduce_uint16,
    [MPI_INT] = reduce_int32,
    [MPI_UNSIGNED] = reduce_uint32,
    [MPI_LONG] = reduce_int64,
    [MPI_UNSIGNED_LONG] = reduce_uint64,
    [MPI_FLOAT] = reduce_float,
    [MPI_DOUBLE] = reduce_double,
    [MPI_LONG_DOUBLE] = reduce_long_double,
    [MPI_LONG_LONG_INT] = reduce_int64,
    [MPI_UNSIGNED_LONG_LONG] = reduce_uint64,
    [MPI_INT8_T] = reduce_int8,
    [MPI_INT16_T] = reduce_int16,
    [MPI_INT32_T] = reduce_int32,
    [MPI_INT64_T] = reduce_int64,
    [MPI_UINT8_T] = reduce_uint8,
    [MPI_UINT16_T] = reduce_uint16,
    [MPI_UINT32_T] = reduce_uint32,
    [MPI_UINT64_T] = reduce_uint64,
    [MPI_C_BOOL] = reduce_uint8,
    [MPI_AINT] = reduce_int64,
    [MPI_OFFSET] = reduce_int64,
    [MPI_COUNT] = reduce_int64,
    [MPI_C_FLOAT_COMPLEX] = reduce_float_complex,
    [MPI_C_DOUBLE_COMPLEX] = reduce_double_complex,
    [MPI_FLOAT_INT] = reduce_float_int,
    [MPI_DOUBLE_INT] = reduce_double_int,
    [MPI_LONG_INT] = reduce_long_int,
    [MPI_2INT] = reduce_2int,
    [MPI_SHORT_INT] = reduce_short_int,
    [MPI_LONG_DOUBLE_INT] = reduce_long_double_int,
    [MPI_CHARACTER] = reduce_int8,
    [MPI_LOGICAL] = reduce_int32,
    [MPI_INTEGER] = reduce_int32,
    [MPI_REAL] = reduce_float,
    [MPI_DOUBLE_PRECISION] = reduce_double,
    [MPI_COMPLEX] = reduce_float_complex,
    [MPI_DOUBLE_COMPLEX] = reduce_double_complex,
    [MPI_2INTEGER] = reduce_2int,
    [MPI_2REAL] = reduce_2real,
    [MPI_2DOUBLE_PRECISION] = reduce_2double,
    [MPI_INTEGER1] = reduce_int8,
    [MPI_INTEGER2] = reduce_int16,
    [MPI_INTEGER4] = reduce_int32,
    [MPI_INTEGER8] = reduce_int64,
    [MPI_REAL4] = reduce_float,
    [MPI_REAL8] = reduce_double,
};

bool op_reduce(MPI_Op op, MPI_Datatype type, const void *in, void *inout, size_t count) {
    size_t kernel_count = sizeof kernels / sizeof kernels[0];
    if (type <= 0 || (size_t)type >= kernel_count || !kernels[type])
        return false;
    return kernels[type](op, in, inout, count);
}
