/*
 * fortran.c: Fortran bindings of all but the collectives (fortran_collective.c).
 *
 * gfortran's conventions: lower case and an underscore, arguments by reference, lengths of strings (size_t, by value)
 * after all others.  Indices that Fortran sees count from 1.
 */
#include "mpi/calls/fortran.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(MPI_Status) == 6 * sizeof(fint), "MPI_STATUS_SIZE in mpif.h");

struct fortran_buffers mpipriv1_;
struct fortran_statuses mpipriv2_;

void *fortran_buffer(void *buffer) {
    if (buffer == &mpipriv1_.bottom)
        return MPI_BOTTOM;
    return buffer == &mpipriv1_.in_place ? MPI_IN_PLACE : buffer;
}

MPI_Status *fortran_status(fint *status) {
    bool ignored = status == mpipriv2_.ignore || status == mpipriv2_.all_ignore;
    return ignored ? MPI_STATUS_IGNORE : (MPI_Status *)status;
}

/* Fortran strings are padded with blanks. */
static void string_out(const char *text, int length, char *to, size_t room) {
    memset(to, ' ', room);
    memcpy(to, text, (size_t)length < room ? (size_t)length : room);
}

/* gfortran's .true. is 1, as is C's. */
#define BIND(name, call, ...)                                                                                          \
    void name(__VA_ARGS__, fint *error);                                                                               \
    void name(__VA_ARGS__, fint *error) {                                                                              \
        *error = call;                                                                                                 \
    }

#define BUFFER fortran_buffer(buffer)
#define STATUS fortran_status(status)

/* The environment. */
void mpi_init_(fint *error);
void mpi_init_(fint *error) {
    *error = MPI_Init(NULL, NULL);
}
void mpi_finalize_(fint *error);
void mpi_finalize_(fint *error) {
    *error = MPI_Finalize();
}
double mpi_wtime_(void);
double mpi_wtime_(void) {
    return MPI_Wtime();
}
double mpi_wtick_(void);
double mpi_wtick_(void) {
    return MPI_Wtick();
}
BIND(mpi_init_thread_, MPI_Init_thread(NULL, NULL, *required, provided), fint *required, fint *provided)
BIND(mpi_query_thread_, MPI_Query_thread(provided), fint *provided)
BIND(mpi_initialized_, MPI_Initialized(flag), fint *flag)
BIND(mpi_finalized_, MPI_Finalized(flag), fint *flag)
BIND(mpi_abort_, MPI_Abort(*comm, *code), fint *comm, fint *code)
BIND(mpi_get_version_, MPI_Get_version(version, subversion), fint *version, fint *subversion)
BIND(mpi_error_class_, MPI_Error_class(*code, error_class), fint *code, fint *error_class)
BIND(mpi_comm_set_errhandler_, MPI_Comm_set_errhandler(*comm, *handler), fint *comm, fint *handler)
BIND(mpi_comm_get_errhandler_, MPI_Comm_get_errhandler(*comm, handler), fint *comm, fint *handler)
BIND(mpi_errhandler_set_, MPI_Errhandler_set(*comm, *handler), fint *comm, fint *handler)
BIND(mpi_errhandler_free_, MPI_Errhandler_free(handler), fint *handler)
BIND(mpi_get_address_, MPI_Get_address(fortran_buffer(location), address), void *location, MPI_Aint *address)

void mpi_get_processor_name_(char *name, fint *length, fint *error, size_t room);
void mpi_get_processor_name_(char *name, fint *length, fint *error, size_t room) {
    char text[MPI_MAX_PROCESSOR_NAME];
    *error = MPI_Get_processor_name(text, length);
    string_out(text, *length, name, room);
}

void mpi_get_library_version_(char *version, fint *length, fint *error, size_t room);
void mpi_get_library_version_(char *version, fint *length, fint *error, size_t room) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    *error = MPI_Get_library_version(text, length);
    string_out(text, *length, version, room);
}

void mpi_error_string_(fint *code, char *string, fint *length, fint *error, size_t room);
void mpi_error_string_(fint *code, char *string, fint *length, fint *error, size_t room) {
    char text[MPI_MAX_ERROR_STRING];
    *error = MPI_Error_string(*code, text, length);
    string_out(text, *length, string, room);
}

/* Communicators and groups. */
BIND(mpi_comm_rank_, MPI_Comm_rank(*comm, rank), fint *comm, fint *rank)
BIND(mpi_comm_size_, MPI_Comm_size(*comm, size), fint *comm, fint *size)
BIND(mpi_comm_dup_, MPI_Comm_dup(*comm, copy), fint *comm, fint *copy)
BIND(mpi_comm_split_, MPI_Comm_split(*comm, *color, *key, part), fint *comm, fint *color, fint *key, fint *part)
BIND(mpi_comm_create_, MPI_Comm_create(*comm, *group, made), fint *comm, fint *group, fint *made)
BIND(mpi_comm_free_, MPI_Comm_free(comm), fint *comm)
BIND(mpi_comm_compare_, MPI_Comm_compare(*first, *second, result), fint *first, fint *second, fint *result)
BIND(mpi_comm_group_, MPI_Comm_group(*comm, group), fint *comm, fint *group)
BIND(mpi_group_rank_, MPI_Group_rank(*group, rank), fint *group, fint *rank)
BIND(mpi_group_size_, MPI_Group_size(*group, size), fint *group, fint *size)
BIND(mpi_group_incl_, MPI_Group_incl(*group, *count, ranks, part), fint *group, fint *count, fint *ranks, fint *part)
BIND(mpi_group_excl_, MPI_Group_excl(*group, *count, ranks, part), fint *group, fint *count, fint *ranks, fint *part)
BIND(mpi_group_translate_ranks_, MPI_Group_translate_ranks(*from, *count, ranks, *to, out), fint *from, fint *count,
     fint *ranks, fint *to, fint *out)
BIND(mpi_group_compare_, MPI_Group_compare(*first, *second, result), fint *first, fint *second, fint *result)
BIND(mpi_group_free_, MPI_Group_free(group), fint *group)

/* Point to point. */
BIND(mpi_send_, MPI_Send(BUFFER, *count, *type, *dest, *tag, *comm), void *buffer, fint *count, fint *type, fint *dest,
     fint *tag, fint *comm)
BIND(mpi_ssend_, MPI_Ssend(BUFFER, *count, *type, *dest, *tag, *comm), void *buffer, fint *count, fint *type,
     fint *dest, fint *tag, fint *comm)
BIND(mpi_recv_, MPI_Recv(BUFFER, *count, *type, *source, *tag, *comm, STATUS), void *buffer, fint *count, fint *type,
     fint *source, fint *tag, fint *comm, fint *status)
BIND(mpi_isend_, MPI_Isend(BUFFER, *count, *type, *dest, *tag, *comm, request), void *buffer, fint *count, fint *type,
     fint *dest, fint *tag, fint *comm, fint *request)
BIND(mpi_issend_, MPI_Issend(BUFFER, *count, *type, *dest, *tag, *comm, request), void *buffer, fint *count, fint *type,
     fint *dest, fint *tag, fint *comm, fint *request)
BIND(mpi_irecv_, MPI_Irecv(BUFFER, *count, *type, *source, *tag, *comm, request), void *buffer, fint *count, fint *type,
     fint *source, fint *tag, fint *comm, fint *request)
BIND(mpi_sendrecv_,
     MPI_Sendrecv(fortran_buffer(send), *send_count, *send_type, *dest, *send_tag, fortran_buffer(recv), *recv_count,
                  *recv_type, *source, *recv_tag, *comm, STATUS),
     void *send, fint *send_count, fint *send_type, fint *dest, fint *send_tag, void *recv, fint *recv_count,
     fint *recv_type, fint *source, fint *recv_tag, fint *comm, fint *status)
BIND(mpi_sendrecv_replace_,
     MPI_Sendrecv_replace(BUFFER, *count, *type, *dest, *send_tag, *source, *recv_tag, *comm, STATUS), void *buffer,
     fint *count, fint *type, fint *dest, fint *send_tag, fint *source, fint *recv_tag, fint *comm, fint *status)
BIND(mpi_wait_, MPI_Wait(request, STATUS), fint *request, fint *status)
BIND(mpi_waitall_, MPI_Waitall(*count, requests, STATUS), fint *count, fint *requests, fint *status)
BIND(mpi_test_, MPI_Test(request, flag, STATUS), fint *request, fint *flag, fint *status)
BIND(mpi_testall_, MPI_Testall(*count, requests, flag, STATUS), fint *count, fint *requests, fint *flag, fint *status)
BIND(mpi_probe_, MPI_Probe(*source, *tag, *comm, STATUS), fint *source, fint *tag, fint *comm, fint *status)
BIND(mpi_iprobe_, MPI_Iprobe(*source, *tag, *comm, flag, STATUS), fint *source, fint *tag, fint *comm, fint *flag,
     fint *status)
BIND(mpi_get_count_, MPI_Get_count((MPI_Status *)status, *type, count), fint *status, fint *type, fint *count)
BIND(mpi_request_free_, MPI_Request_free(request), fint *request)

/* Grids of ranks, and requests that are begun again. */
BIND(mpi_cart_create_, MPI_Cart_create(*comm, *count, sizes, periods, *reorder, cart), fint *comm, fint *count,
     fint *sizes, fint *periods, fint *reorder, fint *cart)
BIND(mpi_cartdim_get_, MPI_Cartdim_get(*comm, count), fint *comm, fint *count)
BIND(mpi_cart_get_, MPI_Cart_get(*comm, *room, sizes, periods, coordinates), fint *comm, fint *room, fint *sizes,
     fint *periods, fint *coordinates)
BIND(mpi_cart_rank_, MPI_Cart_rank(*comm, coordinates, rank), fint *comm, fint *coordinates, fint *rank)
BIND(mpi_cart_coords_, MPI_Cart_coords(*comm, *rank, *room, coordinates), fint *comm, fint *rank, fint *room,
     fint *coordinates)
BIND(mpi_cart_shift_, MPI_Cart_shift(*comm, *axis, *distance, source, dest), fint *comm, fint *axis, fint *distance,
     fint *source, fint *dest)
BIND(mpi_cart_sub_, MPI_Cart_sub(*comm, remain, part), fint *comm, fint *remain, fint *part)
BIND(mpi_topo_test_, MPI_Topo_test(*comm, status), fint *comm, fint *status)
BIND(mpi_dims_create_, MPI_Dims_create(*ranks, *count, sizes), fint *ranks, fint *count, fint *sizes)
BIND(mpi_rsend_, MPI_Rsend(BUFFER, *count, *type, *dest, *tag, *comm), void *buffer, fint *count, fint *type,
     fint *dest, fint *tag, fint *comm)
BIND(mpi_irsend_, MPI_Irsend(BUFFER, *count, *type, *dest, *tag, *comm, request), void *buffer, fint *count, fint *type,
     fint *dest, fint *tag, fint *comm, fint *request)
BIND(mpi_send_init_, MPI_Send_init(BUFFER, *count, *type, *dest, *tag, *comm, request), void *buffer, fint *count,
     fint *type, fint *dest, fint *tag, fint *comm, fint *request)
BIND(mpi_rsend_init_, MPI_Rsend_init(BUFFER, *count, *type, *dest, *tag, *comm, request), void *buffer, fint *count,
     fint *type, fint *dest, fint *tag, fint *comm, fint *request)
BIND(mpi_ssend_init_, MPI_Ssend_init(BUFFER, *count, *type, *dest, *tag, *comm, request), void *buffer, fint *count,
     fint *type, fint *dest, fint *tag, fint *comm, fint *request)
BIND(mpi_recv_init_, MPI_Recv_init(BUFFER, *count, *type, *source, *tag, *comm, request), void *buffer, fint *count,
     fint *type, fint *source, fint *tag, fint *comm, fint *request)
BIND(mpi_start_, MPI_Start(request), fint *request)
BIND(mpi_startall_, MPI_Startall(*count, requests), fint *count, fint *requests)

static int from_one(int code, fint *index) {
    if (*index != MPI_UNDEFINED)
        ++*index;
    return code;
}
BIND(mpi_waitany_, from_one(MPI_Waitany(*count, requests, index, STATUS), index), fint *count, fint *requests,
     fint *index, fint *status)
BIND(mpi_testany_, from_one(MPI_Testany(*count, requests, index, flag, STATUS), index), fint *count, fint *requests,
     fint *index, fint *flag, fint *status)

void mpi_waitsome_(fint *count, fint *requests, fint *done, fint *indices, fint *status, fint *error);
void mpi_waitsome_(fint *count, fint *requests, fint *done, fint *indices, fint *status, fint *error) {
    *done = 0; /* a call that fails may leave it as it is */
    *error = MPI_Waitsome(*count, requests, done, indices, STATUS);
    for (int i = 0; i < *done; i++)
        indices[i]++;
}

/* Datatypes and operations.  The calls of MPI-1 have default integers where C has MPI_Aint. */
BIND(mpi_type_contiguous_, MPI_Type_contiguous(*count, *old, type), fint *count, fint *old, fint *type)
BIND(mpi_type_vector_, MPI_Type_vector(*count, *length, *stride, *old, type), fint *count, fint *length, fint *stride,
     fint *old, fint *type)
BIND(mpi_type_hvector_, MPI_Type_create_hvector(*count, *length, *stride, *old, type), fint *count, fint *length,
     fint *stride, fint *old, fint *type)
BIND(mpi_type_create_hvector_, MPI_Type_create_hvector(*count, *length, *stride, *old, type), fint *count, fint *length,
     MPI_Aint *stride, fint *old, fint *type)
BIND(mpi_type_indexed_, MPI_Type_indexed(*count, lengths, offsets, *old, type), fint *count, fint *lengths,
     fint *offsets, fint *old, fint *type)
BIND(mpi_type_create_hindexed_, MPI_Type_create_hindexed(*count, lengths, offsets, *old, type), fint *count,
     fint *lengths, MPI_Aint *offsets, fint *old, fint *type)
BIND(mpi_type_create_struct_, MPI_Type_create_struct(*count, lengths, offsets, types, type), fint *count, fint *lengths,
     MPI_Aint *offsets, fint *types, fint *type)
BIND(mpi_type_create_resized_, MPI_Type_create_resized(*old, *lower, *extent, type), fint *old, MPI_Aint *lower,
     MPI_Aint *extent, fint *type)
BIND(mpi_type_commit_, MPI_Type_commit(type), fint *type)
BIND(mpi_type_free_, MPI_Type_free(type), fint *type)
BIND(mpi_type_size_, MPI_Type_size(*type, size), fint *type, fint *size)
BIND(mpi_type_get_extent_, MPI_Type_get_extent(*type, lower, extent), fint *type, MPI_Aint *lower, MPI_Aint *extent)

void mpi_type_extent_(fint *type, fint *extent, fint *error);
void mpi_type_extent_(fint *type, fint *extent, fint *error) {
    MPI_Aint wide = 0;
    *error = MPI_Type_extent(*type, &wide);
    *extent = (fint)wide;
}

/* A Fortran function (in, inout, count, type) is called as a C one is: all by reference. */
BIND(mpi_op_create_, MPI_Op_create(function, *commute, op), MPI_User_function *function, fint *commute, fint *op)
BIND(mpi_op_free_, MPI_Op_free(op), fint *op)
