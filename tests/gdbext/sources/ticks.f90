! ticks.f90: every rank calls tick three times and counts.
module state
  implicit none
  integer :: counted = 0
  real(kind=8) :: weight = 0
contains
  subroutine tick(me)
    integer, intent(in) :: me
    counted = counted + 1
    weight = counted + 100.0d0 * me
  end subroutine tick
end module state

program ticks
  use mpi
  use state
  implicit none
  integer :: me, turn, code
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, code)
  do turn = 1, 3
    call tick(me)
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end do
  print '(i0, a, i0)', me, ' ticked ', counted
  call MPI_Finalize(code)
end program ticks
