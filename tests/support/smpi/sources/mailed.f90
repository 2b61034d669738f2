! As mailed.c, with the box in a module.
module mailbox
  integer, save :: box = 0
contains
  subroutine open_box
    use mpi
    integer :: ierr
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine
end module
program mailed
  use mpi
  use mailbox
  implicit none
  integer :: ierr, me, mail
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call open_box
  if (me > 0) box = 10 * me
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  mail = 100 + me
  call MPI_Sendrecv(mail, 1, MPI_INTEGER, mod(me + 1, 3), 0, box, 1, MPI_INTEGER, mod(me + 2, 3), 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (me > 0) box = 10 * me + 1
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  write(*, '(A,I0,A,I0)') 'BOX ', me, ' ', box
  flush(6)
  call MPI_Finalize(ierr)
end program
