! places.f90: as places.c, with what Fortran adds: module variables and procedures, common blocks, SAVE.
module fields
  use, intrinsic :: iso_c_binding
  implicit none
  integer, target :: steps = 3
  real(8), target :: grid(10) = 1.5d0
contains
  subroutine place(rank, kind, name, address)
    integer, intent(in) :: rank
    character(*), intent(in) :: kind, name
    integer(c_intptr_t), intent(in) :: address
    print '(a, i0, 5a, z0)', 'place ', rank, ' ', kind, ' ', name, ' 0 0x', address
  end subroutine
  subroutine advance(rank)
    integer, intent(in) :: rank
    integer, save, target :: calls = 0
    calls = calls + 1
    call place(rank, 'data', 'fields::advance::calls', transfer(c_loc(calls), 0_c_intptr_t))
  end subroutine
end module

subroutine outside(rank)
  use fields
  integer, intent(in) :: rank
  integer, target :: shared
  common /box/ shared
  shared = rank
  call place(rank, 'data', 'shared', transfer(c_loc(shared), 0_c_intptr_t))
end subroutine

program places
  use mpi
  use fields
  implicit none
  integer :: rank, ranks, error, unused
  type(c_funptr) :: code
  interface
    subroutine outside(rank)
      integer, intent(in) :: rank
    end subroutine
  end interface
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call place(rank, 'data', 'fields::steps', transfer(c_loc(steps), 0_c_intptr_t))
  call place(rank, 'data', 'fields::grid', transfer(c_loc(grid), 0_c_intptr_t))
  code = c_funloc(advance)
  call place(rank, 'code', 'fields::advance', transfer(code, 0_c_intptr_t))
  code = c_funloc(outside)
  call place(rank, 'code', 'outside', transfer(code, 0_c_intptr_t))
  call advance(rank)
  call outside(rank)
  flush(6)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 0) print '(a)', 'ready'
  flush(6)
  call MPI_Recv(unused, 1, MPI_INTEGER, mod(rank + 1, ranks), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
end program
