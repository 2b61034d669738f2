! fields.f90: the Fortran oracle program.
!
! It takes nothing, fills module variables, common blocks, SAVEd variables, allocatables and derived types with values
! that depend on its rank, and stops many calls deep, in hold.c.

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
  ! With OpenMP these are thread-local.
  !$omp threadprivate(counter, tiny_number, wide_number, ratio, precise, wave, ready, label, names, table, shifted)
  !$omp threadprivate(vector, matrix, never, text, origin, block, bodies, current, window, store, hidden)

contains

  subroutine fill(me)
    integer, intent(in) :: me
    integer :: i

    counter = counter + 1000 * me
    tiny_number = int(-me, 1)
    wide_number = wide_number + me
    ratio = ratio * real(me + 1)
    precise = precise + real(me, dp)
    wave = cmplx(me, -me)
    ready = mod(me, 2) == 1
    write (label, '(a,i0)') 'module of rank ', me
    table = table + 10 * me
    shifted = [(real(i + me, dp), i = 1, 4)]
    if (allocated(vector)) deallocate (vector, matrix) ! by another rank that has the same
    allocate (vector(me + 3))
    vector = [(i * i + me, i = 1, me + 3)]
    allocate (matrix(2, 0:me))
    matrix = 0.5_dp * real(me + 1, dp)
    text = 'deferred length ' // label
    origin = point(1.0_dp * me, 2.0_dp)
    block%x = 3.0_dp
    block%z = 1.0_dp * me
    block%hollow = ready
    hidden = hidden + me
    store = [(10 * me + i, i = 1, 6)]
    window => store(2:6:2)
    call fill_bodies(me)
  end subroutine fill

  subroutine fill_bodies(me)
    integer, intent(in) :: me
    integer :: i

    do i = 1, 2
      bodies(i)%id = 10 * me + i
      write (bodies(i)%name, '(a,i0)') 'body', me
      bodies(i)%place = point(real(i, dp), real(me, dp))
      if (.not. allocated(bodies(i)%trail)) allocate (bodies(i)%trail(i + 1))
      bodies(i)%trail = me - i
    end do
    bodies(1)%next => bodies(2)
    current => bodies(2 - mod(me, 2))
  end subroutine fill_bodies

  integer function reveal()
    reveal = hidden
  end function reveal
end module fields

module stages
  use, intrinsic :: iso_c_binding, only: c_int
  use fields, only: dp, point
  implicit none

  interface
    ! hold.h
    subroutine hold(me, ranks) bind(c)
      import :: c_int
      integer(c_int), value :: me, ranks
    end subroutine hold
  end interface

contains

  ! Here alone, because the constants of mpif.h become local variables of whoever includes it.
  subroutine start(me, ranks)
    include 'mpif.h'
    integer, intent(out) :: me, ranks
    integer :: code

    call MPI_INIT(code)
    call MPI_COMM_RANK(MPI_COMM_WORLD, me, code)
    call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, code)
  end subroutine start

  subroutine checkpoint(me, ranks)
    integer, intent(in) :: me, ranks
    integer, save :: visits = 30
    real(dp), save :: shares(2) = [0.5_dp, 1.5_dp]
    integer :: grid_size, padding
    real(dp) :: weights
    common /settings/ grid_size, padding, weights(2)
    !$omp threadprivate(visits, shares)

    visits = visits + me
    shares(2) = shares(2) * real(me, dp)
    grid_size = 64 + me
    padding = -me
    weights = [1.0_dp * me, 0.125_dp]
    call hold(me, ranks)
    print *, visits, shares, grid_size, padding, weights
  end subroutine checkpoint

  subroutine measure(values, grid, place, word, me, ranks, extra)
    real(dp), intent(inout) :: values(:)
    integer, intent(in) :: grid(2, 2)
    type(point), intent(in) :: place
    character(len=*), intent(in) :: word
    integer, intent(in) :: me, ranks
    integer, intent(in), optional :: extra
    real(dp) :: total
    integer :: local_grid(2, 3)
    integer, allocatable :: local_list(:)
    type(point) :: moved

    local_grid = me
    local_grid(2, 3) = 33
    allocate (local_list(me + 1))
    local_list = 5 * me
    moved = point(place%x + 1.0_dp, place%y - 1.0_dp)
    total = sum(values)
    call checkpoint(me, ranks)
    print *, total, local_grid, local_list, moved%x, word, grid(1, 1), present(extra)
  end subroutine measure

  recursive subroutine descend(depth, me, ranks)
    integer, intent(in) :: depth, me, ranks
    real(dp) :: values(3)
    integer :: grid(2, 2)
    integer :: below

    values = [1.0_dp, 2.0_dp, real(me, dp)]
    grid = reshape([1, 2, 3, 4], [2, 2]) + me
    below = depth - 1
    if (depth > 0) then
      call descend(below, me, ranks)
    else
      call inner(values)
    end if
    print *, depth, values, grid

  contains

    subroutine inner(list)
      real(dp), intent(inout) :: list(:)
      integer :: doubled

      doubled = 2 * me
      list(1) = real(doubled, dp)
      call measure(list, grid, point(0.5_dp, real(me, dp)), 'a word', me, ranks)
      print *, doubled
    end subroutine inner
  end subroutine descend
end module stages

program oracle
  use fields
  use stages, only: start, descend
  implicit none
  integer :: me, ranks, code
  integer :: grid_size, padding
  real(dp) :: weights
  common /settings/ grid_size, padding, weights(2)
  real :: blank_value
  common blank_value
  integer :: as_integer
  real :: as_real
  equivalence (as_integer, as_real)
  character(len=12) :: greeting

  code = 0
  call start(me, ranks)
  call fill(me)
  blank_value = 0.75 * me
  as_real = 1.5 * me
  write (greeting, '(a,i0)') 'main of ', me
  call descend(me, me, ranks)
  print *, greeting, as_integer, reveal(), grid_size, padding, weights
  call MPI_FINALIZE(code)
end program oracle
