! arguments.f90: all arguments are references; rank 0 waits for 1, 1 for 2, 2 for 3 in MPI_Recv, and 3 for 0 in MPI_Bcast.
subroutine wait_for(peer, tag)
  use mpi
  implicit none
  integer, intent(in) :: peer, tag
  integer :: word, ierr, status(MPI_STATUS_SIZE)
  call MPI_Recv(word, 1, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, status, ierr)
end subroutine

program arguments
  use mpi
  implicit none
  integer :: ierr, rank, ranks, word
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == ranks - 1) then
    write(*, '(A)') 'ready'
    flush(6)
    call MPI_Bcast(word, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  else
    call wait_for(rank + 1, 41 + rank)
  end if
  call MPI_Finalize(ierr)
end program
