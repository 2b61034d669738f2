! Variables of a module, of a common block and of a procedure, different in each rank; the program prints what they are.
module state
  implicit none
  integer :: counted = 5
  real(kind=8) :: weights(2, 3) = 1.5d0
contains
  integer function called(me)
    integer, intent(in) :: me
    integer, save :: calls = 40
    calls = calls + me
    called = calls
  end function called
end module state

program main
  use mpi
  use state
  implicit none
  integer :: me, code, got, shared
  logical :: is_there
  character(len=8) :: word
  common /blank/ shared
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, code)
  counted = counted + 100 * me
  weights(2, 3) = weights(2, 3) + me
  shared = 7 * me
  got = called(me)
  call MPI_Barrier(MPI_COMM_WORLD, code)
  print '(i0, 1x, i0, 1x, f0.1, 1x, i0, 1x, i0)', me, counted, weights(2, 3), shared, called(0)
  flush (6)
  call get_command_argument(1, word)
  if (word == 'hold' .and. me > 0) call MPI_Recv(got, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  do while (word == 'hold')
    call MPI_Iprobe(0, 99, MPI_COMM_WORLD, is_there, MPI_STATUS_IGNORE, code)
  end do
  call MPI_Finalize(code)
end program main
