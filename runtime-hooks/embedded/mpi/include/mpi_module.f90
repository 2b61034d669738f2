! mpi_module.f90: `use mpi`: the constants of mpif.h, and interfaces that check all but the choice buffers.
! The bodies are in fortran.c and fortran_collective.c.
module mpi
  implicit none
  public
  include "mpif_constants.h"

  interface
    subroutine mpi_init_thread(required, provided, ierror)
      integer :: required, provided, ierror
    end subroutine
    subroutine mpi_query_thread(provided, ierror)
      integer :: provided, ierror
    end subroutine
    subroutine mpi_initialized(flag, ierror)
      logical :: flag
      integer :: ierror
    end subroutine
    subroutine mpi_finalized(flag, ierror)
      logical :: flag
      integer :: ierror
    end subroutine
    subroutine mpi_abort(comm, code, ierror)
      integer :: comm, code, ierror
    end subroutine
    subroutine mpi_get_version(version, subversion, ierror)
      integer :: version, subversion, ierror
    end subroutine
    subroutine mpi_error_class(code, error_class, ierror)
      integer :: code, error_class, ierror
    end subroutine
    subroutine mpi_comm_set_errhandler(comm, handler, ierror)
      integer :: comm, handler, ierror
    end subroutine
    subroutine mpi_comm_get_errhandler(comm, handler, ierror)
      integer :: comm, handler, ierror
    end subroutine
    subroutine mpi_errhandler_set(comm, handler, ierror)
      integer :: comm, handler, ierror
    end subroutine
    subroutine mpi_errhandler_free(handler, ierror)
      integer :: handler, ierror
    end subroutine
    subroutine mpi_get_address(location, address, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: location
      real :: location(*)
      integer(kind=8) :: address
      integer :: ierror
    end subroutine
    subroutine mpi_comm_rank(comm, rank, ierror)
      integer :: comm, rank, ierror
    end subroutine
    subroutine mpi_comm_size(comm, size, ierror)
      integer :: comm, size, ierror
    end subroutine
    subroutine mpi_comm_dup(comm, copy, ierror)
      integer :: comm, copy, ierror
    end subroutine
    subroutine mpi_comm_split(comm, color, key, part, ierror)
      integer :: comm, color, key, part, ierror
    end subroutine
    subroutine mpi_comm_create(comm, group, made, ierror)
      integer :: comm, group, made, ierror
    end subroutine
    subroutine mpi_comm_free(comm, ierror)
      integer :: comm, ierror
    end subroutine
    subroutine mpi_comm_compare(first, second, result, ierror)
      integer :: first, second, result, ierror
    end subroutine
    subroutine mpi_comm_group(comm, group, ierror)
      integer :: comm, group, ierror
    end subroutine
    subroutine mpi_group_rank(group, rank, ierror)
      integer :: group, rank, ierror
    end subroutine
    subroutine mpi_group_size(group, size, ierror)
      integer :: group, size, ierror
    end subroutine
    subroutine mpi_group_incl(group, count, ranks, part, ierror)
      integer :: group, count, ranks(*), part, ierror
    end subroutine
    subroutine mpi_group_excl(group, count, ranks, part, ierror)
      integer :: group, count, ranks(*), part, ierror
    end subroutine
    subroutine mpi_group_translate_ranks(from, count, ranks, to, out, ierror)
      integer :: from, count, ranks(*), to, out(*), ierror
    end subroutine
    subroutine mpi_group_compare(first, second, result, ierror)
      integer :: first, second, result, ierror
    end subroutine
    subroutine mpi_group_free(group, ierror)
      integer :: group, ierror
    end subroutine
    subroutine mpi_send(buffer, count, type, dest, tag, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, ierror
    end subroutine
    subroutine mpi_ssend(buffer, count, type, dest, tag, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, ierror
    end subroutine
    subroutine mpi_recv(buffer, count, type, source, tag, comm, status, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, source, tag, comm, status(6), ierror
    end subroutine
    subroutine mpi_isend(buffer, count, type, dest, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, request, ierror
    end subroutine
    subroutine mpi_issend(buffer, count, type, dest, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, request, ierror
    end subroutine
    subroutine mpi_irecv(buffer, count, type, source, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, source, tag, comm, request, ierror
    end subroutine
    subroutine mpi_sendrecv(send, send_count, send_type, dest, send_tag, recv, recv_count, recv_type, source, &
        recv_tag, comm, status, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_count, send_type, dest, send_tag
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: recv_count, recv_type, source, recv_tag, comm, status(6), ierror
    end subroutine
    subroutine mpi_sendrecv_replace(buffer, count, type, dest, send_tag, source, recv_tag, comm, status, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, send_tag, source, recv_tag, comm, status(6), ierror
    end subroutine
    subroutine mpi_wait(request, status, ierror)
      integer :: request, status(6), ierror
    end subroutine
    subroutine mpi_waitall(count, requests, status, ierror)
      integer :: count, requests(*), status(6, *), ierror
    end subroutine
    subroutine mpi_test(request, flag, status, ierror)
      integer :: request
      logical :: flag
      integer :: status(6), ierror
    end subroutine
    subroutine mpi_testall(count, requests, flag, status, ierror)
      integer :: count, requests(*)
      logical :: flag
      integer :: status(6, *), ierror
    end subroutine
    subroutine mpi_probe(source, tag, comm, status, ierror)
      integer :: source, tag, comm, status(6), ierror
    end subroutine
    subroutine mpi_iprobe(source, tag, comm, flag, status, ierror)
      integer :: source, tag, comm
      logical :: flag
      integer :: status(6), ierror
    end subroutine
    subroutine mpi_get_count(status, type, count, ierror)
      integer :: status(6), type, count, ierror
    end subroutine
    subroutine mpi_request_free(request, ierror)
      integer :: request, ierror
    end subroutine
    subroutine mpi_waitany(count, requests, index, status, ierror)
      integer :: count, requests(*), index, status(6), ierror
    end subroutine
    subroutine mpi_testany(count, requests, index, flag, status, ierror)
      integer :: count, requests(*), index
      logical :: flag
      integer :: status(6), ierror
    end subroutine
    subroutine mpi_type_contiguous(count, old, type, ierror)
      integer :: count, old, type, ierror
    end subroutine
    subroutine mpi_type_vector(count, length, stride, old, type, ierror)
      integer :: count, length, stride, old, type, ierror
    end subroutine
    subroutine mpi_type_hvector(count, length, stride, old, type, ierror)
      integer :: count, length, stride, old, type, ierror
    end subroutine
    subroutine mpi_type_create_hvector(count, length, stride, old, type, ierror)
      integer :: count, length
      integer(kind=8) :: stride
      integer :: old, type, ierror
    end subroutine
    subroutine mpi_type_indexed(count, lengths, offsets, old, type, ierror)
      integer :: count, lengths(*), offsets(*), old, type, ierror
    end subroutine
    subroutine mpi_type_create_hindexed(count, lengths, offsets, old, type, ierror)
      integer :: count, lengths(*)
      integer(kind=8) :: offsets(*)
      integer :: old, type, ierror
    end subroutine
    subroutine mpi_type_create_struct(count, lengths, offsets, types, type, ierror)
      integer :: count, lengths(*)
      integer(kind=8) :: offsets(*)
      integer :: types(*), type, ierror
    end subroutine
    subroutine mpi_type_create_resized(old, lower, extent, type, ierror)
      integer :: old
      integer(kind=8) :: lower
      integer(kind=8) :: extent
      integer :: type, ierror
    end subroutine
    subroutine mpi_type_commit(type, ierror)
      integer :: type, ierror
    end subroutine
    subroutine mpi_type_free(type, ierror)
      integer :: type, ierror
    end subroutine
    subroutine mpi_type_size(type, size, ierror)
      integer :: type, size, ierror
    end subroutine
    subroutine mpi_type_get_extent(type, lower, extent, ierror)
      integer :: type
      integer(kind=8) :: lower
      integer(kind=8) :: extent
      integer :: ierror
    end subroutine
    subroutine mpi_op_create(function, commute, op, ierror)
      external :: function
      logical :: commute
      integer :: op, ierror
    end subroutine
    subroutine mpi_op_free(op, ierror)
      integer :: op, ierror
    end subroutine
    subroutine mpi_barrier(comm, ierror)
      integer :: comm, ierror
    end subroutine
    subroutine mpi_bcast(buffer, count, type, root, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, root, comm, ierror
    end subroutine
    subroutine mpi_reduce(send, recv, count, type, op, root, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: count, type, op, root, comm, ierror
    end subroutine
    subroutine mpi_allreduce(send, recv, count, type, op, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: count, type, op, comm, ierror
    end subroutine
    subroutine mpi_gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_count, send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: recv_count, recv_type, root, comm, ierror
    end subroutine
    subroutine mpi_gatherv(send, send_count, send_type, recv, counts, offsets, recv_type, root, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_count, send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: counts(*), offsets(*), recv_type, root, comm, ierror
    end subroutine
    subroutine mpi_scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_count, send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: recv_count, recv_type, root, comm, ierror
    end subroutine
    subroutine mpi_scatterv(send, counts, offsets, send_type, recv, recv_count, recv_type, root, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: counts(*), offsets(*), send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: recv_count, recv_type, root, comm, ierror
    end subroutine
    subroutine mpi_allgather(send, send_count, send_type, recv, recv_count, recv_type, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_count, send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: recv_count, recv_type, comm, ierror
    end subroutine
    subroutine mpi_allgatherv(send, send_count, send_type, recv, counts, offsets, recv_type, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_count, send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: counts(*), offsets(*), recv_type, comm, ierror
    end subroutine
    subroutine mpi_alltoall(send, send_count, send_type, recv, recv_count, recv_type, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_count, send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: recv_count, recv_type, comm, ierror
    end subroutine
    subroutine mpi_alltoallv(send, send_counts, send_offsets, send_type, recv, recv_counts, recv_offsets, &
        recv_type, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      integer :: send_counts(*), send_offsets(*), send_type
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: recv_counts(*), recv_offsets(*), recv_type, comm, ierror
    end subroutine
    subroutine mpi_reduce_scatter(send, recv, counts, type, op, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: counts(*), type, op, comm, ierror
    end subroutine
    subroutine mpi_reduce_scatter_block(send, recv, count, type, op, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: count, type, op, comm, ierror
    end subroutine
    subroutine mpi_scan(send, recv, count, type, op, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: count, type, op, comm, ierror
    end subroutine
    subroutine mpi_exscan(send, recv, count, type, op, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: send
      real :: send(*)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: recv
      real :: recv(*)
      integer :: count, type, op, comm, ierror
    end subroutine
    subroutine mpi_cart_create(comm, count, sizes, periods, reorder, cart, ierror)
      integer :: comm, count, sizes(*), cart, ierror
      logical :: periods(*), reorder
    end subroutine
    subroutine mpi_cartdim_get(comm, count, ierror)
      integer :: comm, count, ierror
    end subroutine
    subroutine mpi_cart_get(comm, room, sizes, periods, coordinates, ierror)
      integer :: comm, room, sizes(*), coordinates(*), ierror
      logical :: periods(*)
    end subroutine
    subroutine mpi_cart_rank(comm, coordinates, rank, ierror)
      integer :: comm, coordinates(*), rank, ierror
    end subroutine
    subroutine mpi_cart_coords(comm, rank, room, coordinates, ierror)
      integer :: comm, rank, room, coordinates(*), ierror
    end subroutine
    subroutine mpi_cart_shift(comm, axis, distance, source, dest, ierror)
      integer :: comm, axis, distance, source, dest, ierror
    end subroutine
    subroutine mpi_cart_sub(comm, remain, part, ierror)
      integer :: comm, part, ierror
      logical :: remain(*)
    end subroutine
    subroutine mpi_topo_test(comm, status, ierror)
      integer :: comm, status, ierror
    end subroutine
    subroutine mpi_dims_create(ranks, count, sizes, ierror)
      integer :: ranks, count, sizes(*), ierror
    end subroutine
    subroutine mpi_rsend(buffer, count, type, dest, tag, comm, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, ierror
    end subroutine
    subroutine mpi_irsend(buffer, count, type, dest, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, request, ierror
    end subroutine
    subroutine mpi_send_init(buffer, count, type, dest, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, request, ierror
    end subroutine
    subroutine mpi_rsend_init(buffer, count, type, dest, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, request, ierror
    end subroutine
    subroutine mpi_ssend_init(buffer, count, type, dest, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, dest, tag, comm, request, ierror
    end subroutine
    subroutine mpi_recv_init(buffer, count, type, source, tag, comm, request, ierror)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buffer
      real :: buffer(*)
      integer :: count, type, source, tag, comm, request, ierror
    end subroutine
    subroutine mpi_start(request, ierror)
      integer :: request, ierror
    end subroutine
    subroutine mpi_startall(count, requests, ierror)
      integer :: count, requests(*), ierror
    end subroutine
    subroutine mpi_init(ierror)
      integer :: ierror
    end subroutine
    subroutine mpi_finalize(ierror)
      integer :: ierror
    end subroutine
    subroutine mpi_waitsome(count, requests, done, indices, status, ierror)
      integer :: count, requests(*), done, indices(*), status(6, *), ierror
    end subroutine
    subroutine mpi_type_extent(type, extent, ierror)
      integer :: type, extent, ierror
    end subroutine
    subroutine mpi_get_processor_name(string, length, ierror)
      character(len=*) :: string
      integer :: length, ierror
    end subroutine
    subroutine mpi_get_library_version(string, length, ierror)
      character(len=*) :: string
      integer :: length, ierror
    end subroutine
    subroutine mpi_error_string(code, string, length, ierror)
      integer :: code
      character(len=*) :: string
      integer :: length, ierror
    end subroutine
    double precision function mpi_wtime()
    end function
    double precision function mpi_wtick()
    end function
  end interface
end module mpi
