! Module, common, SAVE and allocatable variables of every rank's own.
module states
    implicit none
    integer :: steps = 3
    real, allocatable :: field(:)
end module

program main
    use states
    implicit none
    include 'mpif.h'
    integer :: rank, error, shared
    common /numbers/ shared
    call MPI_INIT(error)
    call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
    steps = steps + rank
    shared = 10 * rank
    allocate (field(4))
    field = rank
    call MPI_BARRIER(MPI_COMM_WORLD, error)
    call bump()
    call MPI_BARRIER(MPI_COMM_WORLD, error)
    call bump()
    call MPI_FINALIZE(error)
contains
    subroutine bump()
        integer, save :: calls = 0
        calls = calls + 1
        if (calls == 2) write (*, '(I0,A,I0,1X,I0,1X,I0,1X,I0)') rank, ': ', steps, shared, int(sum(field)), calls
    end subroutine
end program
