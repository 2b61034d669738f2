! fixed.f: fixed form with mpif.h and a common block.
      program fixed
      implicit none
      include 'mpif.h'
      integer rank, nranks, ierror, status(MPI_STATUS_SIZE), token
      double precision total, mine
      common /shared/ rank, nranks
      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, nranks, ierror)
      mine = MPI_WTIME()
      mine = rank * 0.5d0
      call MPI_ALLREDUCE(mine, total, 1, MPI_DOUBLE_PRECISION,
     &                   MPI_SUM, MPI_COMM_WORLD, ierror)
      token = 0
      if (rank .gt. 0) then
         call MPI_RECV(token, 1, MPI_INTEGER, rank - 1, 0,
     &                 MPI_COMM_WORLD, status, ierror)
      end if
      call MPI_SEND(token + 1, 1, MPI_INTEGER, modulo(rank+1, nranks),
     &              0, MPI_COMM_WORLD, ierror)
      if (rank .eq. 0) then
         call MPI_RECV(token, 1, MPI_INTEGER, MPI_ANY_SOURCE,
     &                 MPI_ANY_TAG, MPI_COMM_WORLD,
     &                 MPI_STATUS_IGNORE, ierror)
      end if
      call report(token, total)
      call MPI_FINALIZE(ierror)
      end

      subroutine report(token, total)
      integer token, rank, nranks
      double precision total
      common /shared/ rank, nranks
      print '(i0,a,i0,a,i0,f8.2)', rank, ' of ', nranks, ': ',
     &      token, total
      end
