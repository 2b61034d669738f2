! Even ranks call work() with one variable of a module, odd ones with another; the last rank stops before it does.
module numbers
  integer :: first = 100, second = 200
end module

subroutine work(passed)
  use mpi
  integer :: passed, ierr
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  passed = passed + 1
end subroutine

subroutine stop_here()
  use mpi
  integer :: ierr
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
end subroutine

program main
  use mpi
  use numbers
  integer :: ierr, rank, size, other, word
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  first = first + rank
  second = second + rank
  if (rank == size - 1) then
    do other = 0, size - 2
      call MPI_Recv(word, 1, MPI_INTEGER, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    end do
    call stop_here()
  else
    call MPI_Send(rank, 1, MPI_INTEGER, size - 1, 7, MPI_COMM_WORLD, ierr) ! returns at once
    if (mod(rank, 2) == 0) then
      call work(first)
    else
      call work(second)
    end if
  end if
  call MPI_Finalize(ierr)
end program
