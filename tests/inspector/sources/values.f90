! Values of Fortran types: arrays of any bounds, descriptors, characters, derived types.
module simdata
  implicit none
  type cell
    integer :: id = 3
    real :: weights(2:4) = 0.5
    logical :: ready = .false.
  end type
  integer :: nsteps = 5
  integer(8) :: wide = -9000000000_8
  real(8), allocatable :: field(:,:), absent(:)
  real(8), pointer :: view(:) => null(), part(:) => null()
  real(8), target :: whole(10)
  type(cell) :: origin, cells(2)
  character(len=8) :: title = "hello"
  complex(8) :: wave = (1.5d0, -2.0d0)
  logical :: ready = .true.
  integer :: shifted(-1:1, 0:1) = 9, zeros(30) = 0
end module

program values
  use simdata
  implicit none
  integer :: i, j
  allocate(field(3, 2))
  do j = 1, 2
    do i = 1, 3
      field(i, j) = i + 10 * j
      shifted(i - 2, j - 1) = i * j
    end do
  end do
  whole = [(real(i, 8), i = 1, 10)]
  view => whole(3:6)
  part => whole(1:10:3)
  print '(a)', 'ready'
  flush(6)
  call wait_for_ever()
contains
  subroutine wait_for_ever()
    interface
      integer function pause_process() bind(c, name="pause")
      end function
    end interface
    i = pause_process()
  end subroutine
end program
