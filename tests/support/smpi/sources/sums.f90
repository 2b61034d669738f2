! As sums.c, with the function in a module.
module own
  integer, save :: g_rank = -1, s_counter = 0
contains
  function leaf(n) result(total)
    integer, intent(in) :: n
    integer :: total
    s_counter = s_counter + n
    total = s_counter
  end function
end module
program sums
  use mpi
  use own
  implicit none
  integer :: ierr, me, i, before, total
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  g_rank = me
  total = 0
  do i = 1, 3
    before = s_counter
    total = total + leaf(i) - before
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end do
  write(*, '(A,I0,A,I0)') 'SUM ', me, ' ', total
  flush(6)
  call MPI_Finalize(ierr)
end program
