! A common block under every method: each rank prints the address and the value that its own code uses.
subroutine show(rank)
  integer, intent(in) :: rank
  integer :: common_value
  common /shared_block/ common_value
  print '(a,i0,a,z0,a,i0)', 'rank ', rank, ' common_value 0x', loc(common_value), ' ', common_value
  flush (6)
end subroutine

program kinds
  use mpi
  implicit none
  integer :: common_value, rank, error, nothing
  common /shared_block/ common_value
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  common_value = 600 + rank
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call show(rank)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 0) print '(a)', 'ready'
  flush (6)
  call MPI_Recv(nothing, 1, MPI_INTEGER, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Finalize(error)
end program
