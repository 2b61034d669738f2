! fortran.f90: the Fortran bindings: by module; fixed.f reads mpif.h.
module state
  integer :: rank, nranks
  integer, save :: seen = 0
end module

subroutine largest(a, b, n, type)
  use state
  integer :: n, type, a(n), b(n)
  seen = seen + 1
  b = max(a, b)
end subroutine

program fortran
  use mpi
  use state
  implicit none
  external :: largest
  integer :: ierror, left, right, i, n, op, newtype, part, copy, word(1)
  integer :: status(MPI_STATUS_SIZE), requests(4), statuses(MPI_STATUS_SIZE, 4), index, done, indices(4)
  integer :: values(8), all(64), counts(16), offsets(16), group, some, length, provided
  integer(kind=MPI_ADDRESS_KIND) :: lower, extent
  double precision :: x(3), y(3), start
  real :: column(4, 4)
  logical :: flag
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=MPI_MAX_ERROR_STRING) :: text

  call MPI_Init_thread(MPI_THREAD_SINGLE, provided, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierror)
  left = modulo(rank - 1, nranks)
  right = modulo(rank + 1, nranks)
  start = MPI_Wtime()
  call MPI_Initialized(flag, ierror)
  print '(i0,a,l2,i3)', rank, ' initialized', flag, ierror

  call MPI_Irecv(values(1), 2, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Irecv(x, 3, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(2), ierror)
  y = (/ rank * 1d0, 2d0, 3d0 /)
  values(3:4) = (/ rank, 5 /)
  call MPI_Isend(values(3), 2, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(3), ierror)
  call MPI_Issend(y, 3, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(4), ierror)
  call MPI_Waitall(4, requests, statuses, ierror)
  print '(i0,a,2i4,3f8.2,2i4)', rank, ' waitall', values(1:2), x, statuses(MPI_SOURCE, 1), statuses(MPI_TAG, 2)

  do i = 1, 4
    call MPI_Isend(rank, 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, requests(i), ierror)
  end do
  call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
  call MPI_Probe(rank, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, n, ierror)
  call MPI_Iprobe(rank, 4, MPI_COMM_WORLD, flag, status, ierror)
  print '(i0,a,i3,l2,i3)', rank, ' probe', n, flag, status(MPI_TAG)
  do i = 1, 4
    call MPI_Irecv(values(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, requests(i), ierror)
  end do
  call MPI_Waitany(1, requests(3), index, status, ierror)
  print '(i0,a,2i3)', rank, ' waitany', index, status(MPI_TAG)
  call MPI_Waitsome(1, requests(2), done, indices, statuses, ierror)
  print '(i0,a,2i3)', rank, ' waitsome', done, indices(1)
  call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, ierror)
  print '(i0,a,l2)', rank, ' test', flag
  call MPI_Testall(4, requests, flag, MPI_STATUSES_IGNORE, ierror)
  print '(i0,a,l2,4i3)', rank, ' testall', flag, values(1:4)

  values(1) = rank
  call MPI_Sendrecv(values, 1, MPI_INTEGER, right, 3, values(2), 1, MPI_INTEGER, left, 3, MPI_COMM_WORLD, status, ierror)
  call MPI_Sendrecv_replace(values, 1, MPI_INTEGER, left, 4, right, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  print '(i0,a,3i3)', rank, ' sendrecv', values(1:2), status(MPI_SOURCE)

  word = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, word, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  print '(i0,a,i4)', rank, ' in place', word
  call MPI_Op_create(largest, .true., op, ierror)
  values(1:2) = (/ rank, -rank /)
  call MPI_Reduce(values, all, 2, MPI_INTEGER, op, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(i0,a,2i4,l2)', rank, ' user', all(1:2), seen > 0
  call MPI_Op_free(op, ierror)
  x = (/ dble(modulo(rank * 7, 3)), dble(rank), 0d0 /)
  call MPI_Allreduce(x, y, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierror)
  print '(i0,a,2f6.1)', rank, ' maxloc', y(1:2)
  call MPI_Allreduce(rank > 0, flag, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierror)
  print '(i0,a,l2)', rank, ' lor', flag

  do i = 1, nranks
    counts(i) = modulo(i, 3)
    offsets(i) = 3 * (i - 1)
  end do
  values = rank
  all = 0
  call MPI_Gatherv(values, counts(rank + 1), MPI_INTEGER, all, counts, offsets, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  call MPI_Bcast(all, 16, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  print '(i0,a,16i3)', rank, ' gatherv', all(1:16)
  call MPI_Allgather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call MPI_Alltoall(all, 1, MPI_INTEGER, all(17), 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call MPI_Scan(rank, word, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  print '(i0,a,20i3)', rank, ' allgather', all(1:nranks), all(17:16 + nranks), word

  column = rank
  call MPI_Type_vector(4, 1, 4, MPI_REAL, newtype, ierror)
  call MPI_Type_commit(newtype, ierror)
  call MPI_Type_get_extent(newtype, lower, extent, ierror)
  call MPI_Sendrecv(column(2, 1), 1, newtype, right, 5, column(3, 1), 1, newtype, left, 5, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierror)
  print '(i0,a,16f4.0,2i4)', rank, ' row', column, lower, extent
  call MPI_Type_free(newtype, ierror)

  call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierror)
  call MPI_Comm_split(copy, modulo(rank, 2), -rank, part, ierror)
  call MPI_Comm_rank(part, n, ierror)
  call MPI_Comm_group(part, group, ierror)
  call MPI_Group_incl(group, 1, (/ 0 /), some, ierror)
  call MPI_Group_rank(some, i, ierror)
  print '(i0,a,i3,l2)', rank, ' split', n, i == MPI_UNDEFINED
  call MPI_Group_free(some, ierror)
  call MPI_Comm_free(part, ierror)
  call MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN, ierror)
  call MPI_Send(rank, 1, MPI_INTEGER, nranks, 1, copy, ierror)
  call MPI_Error_class(ierror, n, ierror)
  call MPI_Error_string(n, text, length, ierror)
  print '(i0,a,2l2)', rank, ' error', n == MPI_ERR_RANK, len_trim(text) == length
  call MPI_Comm_free(copy, ierror)
  call MPI_Get_processor_name(name, length, ierror)
  print '(i0,a,2l2)', rank, ' name ' // name(1:length), len_trim(name) == length, MPI_Wtime() >= start
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
end program
