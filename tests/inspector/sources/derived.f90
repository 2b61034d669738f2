! derived.f90: derived types, pointers and allocatables whose contents are a function of the rank.
module state
  implicit none
  type :: cell
     integer :: id
     real(8), allocatable :: values(:)
     character(len=:), allocatable :: label
     type(cell), pointer :: next => null()
  end type
  type(cell) :: first
  type(cell), allocatable :: cells(:)
  type(cell), pointer :: chosen => null()
  real(8), pointer :: view(:) => null()
  real(8), allocatable, target :: field(:,:), large(:)
  integer, pointer :: number => null()
  character(len=:), allocatable :: title, heading
  character(len=8) :: fixed
  character(len=4) :: words(2)
  integer, allocatable :: none(:), scalar
end module
program data
  use state
  use mpi
  implicit none
  integer :: ierr, rank, word
  call mpi_init(ierr)
  call mpi_comm_rank(mpi_comm_world, rank, ierr)
  first%id = rank
  allocate(first%values(2)); first%values = rank + 0.5d0
  first%label = 'label'
  allocate(cells(2)); cells(:)%id = rank; cells(1)%label = 'one'
  allocate(chosen); chosen%id = 100 + rank
  allocate(field(2,3)); field = rank
  allocate(large(1000)); large = 1; large(900) = rank
  view => large(1:10)
  allocate(number); number = rank
  title = 'title of some length'
  heading = 'heading of rank ' // char(48 + rank)
  if (rank == 1) heading = heading // ', which is longer'
  fixed = 'fixed'
  words = (/'one ', 'two '/)
  allocate(scalar); scalar = 7 + rank
  call mpi_barrier(mpi_comm_world, ierr)
  if (rank == 0) then
    print *, 'ready'; flush(6)
  end if
  call mpi_recv(word, 1, mpi_integer, rank, 77, mpi_comm_world, mpi_status_ignore, ierr)
end program
