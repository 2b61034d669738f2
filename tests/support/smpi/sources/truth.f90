! As truth.c.
module state
  integer, save :: g_rank = -1
end module
program truth
  use mpi
  use state
  use iso_c_binding
  implicit none
  integer :: ierr, here, me, status(MPI_STATUS_SIZE)
  interface
    subroutine c_pause() bind(c, name="pause")
    end subroutine
    integer(c_int) function smpi_sleep(seconds) bind(c, name="smpi_sleep")
      import c_int
      integer(c_int), value :: seconds
    end function
  end interface
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  g_rank = me
  write(*, '(A,I0,A,Z0,A,I0)') 'TRUTH ', me, ' state::g_rank 0x', loc(g_rank), ' ', g_rank
  write(*, '(A,I0,A,Z0,A)') 'TRUTH ', me, ' stack 0x', loc(here), ' 0'
  flush(6)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (me == 0) then
    here = smpi_sleep(1)
    write(*, '(A)') 'ready'
    flush(6)
    do
      call c_pause()
    end do
  end if
  call MPI_Recv(here, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, status, ierr)
  call MPI_Finalize(ierr)
end program
