! mpif.h: for programs that include it; the constants are shared with the module.
      include 'mpif_constants.h'
      double precision MPI_WTIME, MPI_WTICK
      external MPI_WTIME, MPI_WTICK
