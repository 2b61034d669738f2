! Fortran's globals with a value per rank; rank 0 prints "ready" when all have set theirs.
module state
  implicit none
  integer :: mine = -1
  real(8), allocatable :: field(:,:)
  real(8), pointer :: view(:) => null()
  character(len=8) :: title = 'start'
end module

subroutine fill(rank)
  use state
  integer, intent(in) :: rank
  real(8) :: weight
  integer :: shared
  common /blk/ weight, shared
  integer, save :: calls = 100
  integer :: i
  calls = calls + rank
  shared = 7
  weight = rank * 0.5d0
  allocate(field(2, rank + 1))
  field = rank
  field(1, 1) = 9
  allocate(view(3))
  view = [(real(i, 8), i = 1, 3)]
  write(title, '(a,i0)') 'rank ', rank
end subroutine

program fields
  use mpi
  use state
  implicit none
  integer :: ierr, unused, status(MPI_STATUS_SIZE)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, mine, ierr)
  call fill(mine)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (mine == 0) then
    print '(a)', 'ready'
    flush(6)
  end if
  call MPI_Recv(unused, 1, MPI_INTEGER, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, status, ierr)
end program
