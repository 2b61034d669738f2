! greets.f90: calls into libgfortran with a value that only its rank has, and stays there.
program greets
  use mpi
  implicit none
  integer :: me, ranks, ierror, word
  integer, save :: kept = 100
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  kept = kept + me
  write (*, *) 'rank', me, kept
  if (me == ranks - 1) write (*, *) 'ready'
  flush (6)
  call MPI_Recv(word, 1, MPI_INTEGER, mod(me + 1, ranks), 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
end program greets
