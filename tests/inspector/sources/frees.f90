! frees.f90: the last rank hands a block of its own allocator to the C library's free, while the others wait for it.
program frees
  use mpi
  use iso_c_binding
  implicit none
  interface
    subroutine libc_free(block) bind(C, name="__libc_free")
      import :: c_ptr
      type(c_ptr), value :: block
    end subroutine libc_free
  end interface
  integer :: rank, ranks, word, failed
  real(8), allocatable, target :: grid(:)
  call MPI_Init(failed)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, failed)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, failed)
  call MPI_Barrier(MPI_COMM_WORLD, failed)
  if (rank == ranks - 1) call take_back()
  call MPI_Recv(word, 1, MPI_INTEGER, ranks - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, failed)
  call MPI_Finalize(failed)
contains
  subroutine take_back()
    allocate (grid(20000))
    grid = 1.5d0
    call libc_free(c_loc(grid)) ! free
  end subroutine take_back
end program frees
