! paths.f90: a Fortran program whose every rank goes its own deterministic way through calls, loops and MPI.
!
! It turns a thousand times. Nothing in it depends on how fast ranks are.
module field
  use mpi
  implicit none
  integer :: my_rank = -1, ranks = 0, reached = 0
  integer(kind=8) :: total = 0
  real(kind=8) :: means(3) = 0
  type cell
    integer :: id = 3
    real(kind=8) :: parts(2) = 0
  end type cell
  type(cell) :: last
contains
  function weight(one, n) result(sum)
    type(cell), intent(inout) :: one
    integer, intent(in) :: n
    integer :: sum, i
    sum = one%id
    do i = 1, mod(n, 3) + 1
      sum = sum + i * my_rank
      one%parts(mod(i, 2) + 1) = sum
    end do
  end function weight

  recursive function descend(n) result(below)
    integer, intent(in) :: n
    integer :: below
    reached = n
    if (n <= 0) then
      below = my_rank
      return
    end if
    call clear_stack()
    below = descend(n - 1)
    below = below + n
  end function descend

  subroutine pass_on(value)
    integer, intent(inout) :: value
    integer :: right, left, code
    right = mod(my_rank + 1, ranks)
    left = mod(my_rank + ranks - 1, ranks)
    call MPI_Sendrecv_replace(value, 1, MPI_INTEGER, right, 0, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  end subroutine pass_on

  subroutine turn(number)
    integer, intent(in) :: number
    type(cell) :: one
    integer :: got, deep, most, code
    integer, allocatable :: list(:)
    one%id = number
    call clear_stack()
    total = total + weight(one, number)
    last = one
    got = number + 10 * my_rank
    call clear_stack()
    call pass_on(got)
    means(mod(number, 3) + 1) = 0.5d0 * got
    call clear_stack()
    deep = descend(mod(number, 3) + mod(my_rank, 2))
    allocate(list(deep + 1))
    list = got
    if (mod(number + my_rank, 2) == 0) call MPI_Barrier(MPI_COMM_SELF, code)
    total = total + size(list) + list(1)
    call MPI_Allreduce(deep, most, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, code)
    total = total + most
    deallocate(list)
  end subroutine turn

  ! What is called next finds 0 where its variables will be: who looks at them too early sees the same everywhere.
  subroutine clear_stack()
    integer, volatile :: below(2048)
    below = 0
  end subroutine clear_stack
end module field

program paths
  use mpi
  use field
  implicit none
  integer :: number, code
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, my_rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  do number = 0, 999
    call clear_stack()
    call turn(number)
  end do
  print '(a, i0, a, i0)', 'rank ', my_rank, ': ', total
  call MPI_Finalize(code)
end program paths
