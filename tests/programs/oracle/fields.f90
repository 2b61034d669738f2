! fields.f90: the Fortran oracle program.
!
! It takes nothing, fills module variables, common blocks, SAVEd variables, allocatables and derived types with values
! that depend on its rank, and stops many calls deep.  All ranks but the last end in an MPI_RECV that nobody serves;
! the last one prints "holding" and runs for ever.

module fields
  implicit none
  integer, parameter :: dp = kind(1.0d0)
  integer, parameter :: limit = 12

  type point
    real(dp) :: x = 0.0_dp
    real(dp) :: y = 0.0_dp
  end type point

  type body
    integer :: id = 0
    character(len=8) :: name = 'none'
    type(point) :: place
    integer, allocatable :: trail(:)
    type(body), pointer :: next => null()
  end type body

  type, extends(point) :: solid
    real(dp) :: z = 0.0_dp
    logical :: hollow = .false.
  end type solid

  integer :: counter = 7
  integer(kind=1) :: tiny_number = 1
  integer(kind=8) :: wide_number = 5000000000_8
  real :: ratio = 0.5
  real(dp) :: precise = 0.25_dp
  complex :: wave = (1.0, 2.0)
  logical :: ready = .false.
  character(len=20) :: label = 'module label'
  character(len=5) :: names(2) = ['first', 'other']
  integer :: table(3, 2) = reshape([1, 2, 3, 4, 5, 6], [3, 2])
  real(dp) :: shifted(-1:2) = 0.0_dp
  integer, allocatable :: vector(:)
  real(dp), allocatable :: matrix(:, :)
  integer, allocatable :: never(:)
  character(len=:), allocatable :: text
  type(point) :: origin
  type(solid) :: block
  type(body), target :: bodies(2)
  type(body), pointer :: current => null()
  integer, pointer :: window(:) => null()
  integer, target :: store(6) = 0
  integer, private, save :: hidden = 80

contains

  subroutine fill(rank)
    integer, intent(in) :: rank
    integer :: i

    counter = counter + 1000 * rank
    tiny_number = int(-rank, 1)
    wide_number = wide_number + rank
    ratio = ratio * real(rank + 1)
    precise = precise + real(rank, dp)
    wave = cmplx(rank, -rank)
    ready = mod(rank, 2) == 1
    write (label, '(a,i0)') 'module of rank ', rank
    table = table + 10 * rank
    shifted = [(real(i + rank, dp), i = 1, 4)]
    allocate (vector(rank + 3))
    vector = [(i * i + rank, i = 1, rank + 3)]
    allocate (matrix(2, 0:rank))
    matrix = 0.5_dp * real(rank + 1, dp)
    text = 'deferred length ' // label
    origin = point(1.0_dp * rank, 2.0_dp)
    block%x = 3.0_dp
    block%z = 1.0_dp * rank
    block%hollow = ready
    hidden = hidden + rank
    store = [(10 * rank + i, i = 1, 6)]
    window => store(2:6:2)
    call fill_bodies(rank)
  end subroutine fill

  subroutine fill_bodies(rank)
    integer, intent(in) :: rank
    integer :: i

    do i = 1, 2
      bodies(i)%id = 10 * rank + i
      write (bodies(i)%name, '(a,i0)') 'body', rank
      bodies(i)%place = point(real(i, dp), real(rank, dp))
      allocate (bodies(i)%trail(i + 1))
      bodies(i)%trail = rank - i
    end do
    bodies(1)%next => bodies(2)
    current => bodies(2 - mod(rank, 2))
  end subroutine fill_bodies

  integer function reveal()
    reveal = hidden
  end function reveal
end module fields

module stages
  use fields, only: dp, point
  implicit none

contains

  subroutine hold_blocked(rank, ranks)
    include 'mpif.h'
    integer, intent(in) :: rank, ranks
    integer :: word, code
    integer :: status(MPI_STATUS_SIZE)

    word = -1
    status = 0
    call MPI_RECV(word, 1, MPI_INTEGER, mod(rank + 1, ranks), 72, MPI_COMM_WORLD, status, code)
    print *, 'let go', rank, word
  end subroutine hold_blocked

  subroutine hold_running()
    integer, volatile, save :: held = 1

    do while (held == 1); end do ! held here
  end subroutine hold_running

  subroutine hold(rank, ranks)
    include 'mpif.h'
    integer, intent(in) :: rank, ranks
    integer :: i, from, code
    logical :: found
    integer :: status(MPI_STATUS_SIZE)

    if (rank /= ranks - 1) then
      call MPI_SEND(rank, 1, MPI_INTEGER, ranks - 1, 71, MPI_COMM_WORLD, code)
      call hold_blocked(rank, ranks)
    else
      do i = 1, ranks - 1
        call MPI_RECV(from, 1, MPI_INTEGER, MPI_ANY_SOURCE, 71, MPI_COMM_WORLD, status, code)
      end do
      do i = 1, 16
        call MPI_IPROBE(MPI_ANY_SOURCE, 72, MPI_COMM_WORLD, found, status, code)
      end do
      print '(a)', 'holding'
      flush (6)
      call hold_running()
    end if
    print *, 'let go', rank
  end subroutine hold

  subroutine checkpoint(rank, ranks)
    integer, intent(in) :: rank, ranks
    integer, save :: visits = 30
    real(dp), save :: shares(2) = [0.5_dp, 1.5_dp]
    integer :: grid_size, padding
    real(dp) :: weights
    common /settings/ grid_size, padding, weights(2)

    visits = visits + rank
    shares(2) = shares(2) * real(rank, dp)
    grid_size = 64 + rank
    padding = -rank
    weights = [1.0_dp * rank, 0.125_dp]
    call hold(rank, ranks)
    print *, visits, shares, grid_size, padding, weights
  end subroutine checkpoint

  subroutine measure(values, grid, place, word, rank, ranks, extra)
    real(dp), intent(inout) :: values(:)
    integer, intent(in) :: grid(2, 2)
    type(point), intent(in) :: place
    character(len=*), intent(in) :: word
    integer, intent(in) :: rank, ranks
    integer, intent(in), optional :: extra
    real(dp) :: total
    integer :: local_grid(2, 3)
    integer, allocatable :: local_list(:)
    type(point) :: moved

    local_grid = rank
    local_grid(2, 3) = 33
    allocate (local_list(rank + 1))
    local_list = 5 * rank
    moved = point(place%x + 1.0_dp, place%y - 1.0_dp)
    total = sum(values)
    call checkpoint(rank, ranks)
    print *, total, local_grid, local_list, moved%x, word, grid(1, 1), present(extra)
  end subroutine measure

  recursive subroutine descend(depth, rank, ranks)
    integer, intent(in) :: depth, rank, ranks
    real(dp) :: values(3)
    integer :: grid(2, 2)
    integer :: below

    values = [1.0_dp, 2.0_dp, real(rank, dp)]
    grid = reshape([1, 2, 3, 4], [2, 2]) + rank
    below = depth - 1
    if (depth > 0) then
      call descend(below, rank, ranks)
    else
      call inner(values)
    end if
    print *, depth, values, grid

  contains

    subroutine inner(list)
      real(dp), intent(inout) :: list(:)
      integer :: doubled

      doubled = 2 * rank
      list(1) = real(doubled, dp)
      call measure(list, grid, point(0.5_dp, real(rank, dp)), 'a word', rank, ranks)
      print *, doubled
    end subroutine inner
  end subroutine descend
end module stages

program oracle
  use fields
  use stages, only: descend
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, code
  integer :: grid_size, padding
  real(dp) :: weights
  common /settings/ grid_size, padding, weights(2)
  real :: blank_value
  common blank_value
  integer :: as_integer
  real :: as_real
  equivalence (as_integer, as_real)
  character(len=12) :: greeting

  call MPI_INIT(code)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, code)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, code)
  call fill(rank)
  blank_value = 0.75 * rank
  as_real = 1.5 * rank
  write (greeting, '(a,i0)') 'main of ', rank
  call descend(rank, rank, ranks)
  print *, greeting, as_integer, reveal(), grid_size, padding, weights
  call MPI_FINALIZE(code)
end program oracle
