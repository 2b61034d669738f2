! Every kind of Fortran variable of static storage: module variables, common blocks, SAVE, descriptors.
module simdata
  implicit none
  type cell
    integer :: id = 3
    real :: weights(2:4) = 0.5
  end type
  integer :: nsteps = 5
  real(8), allocatable :: field(:,:)
  real(8), pointer :: view(:) => null()
  type(cell), save :: origin
  type(cell), save :: cells(3)
  character(len=12) :: title = "hello"
  complex(8) :: wave = (1.0d0, 2.0d0)
  logical :: ready = .true.
  integer :: shifted(-2:2, 0:1) = 9
contains
  subroutine bump(by)
    integer, intent(in) :: by
    integer, save :: counter = 0
    counter = counter + by
    nsteps = nsteps + counter
  end subroutine
end module

subroutine shared_block(by)
  integer, intent(in) :: by
  integer :: first, second
  real(8) :: third
  common /blk/ first, second, third
  first = by
  second = by + 1
  third = by * 0.5d0
end subroutine

subroutine work(by)
  use simdata
  integer, intent(in) :: by
  integer, save :: calls = 100
  calls = calls + by
  if (.not. allocated(field)) allocate(field(3, 4))
  field = calls
  call bump(by)
  call shared_block(by)
end subroutine
