/* mpi_kind.c: of which kind a site's MPI is; rankcc --with-mpi reads it after preprocessing. */
#include <mpi.h>
#if defined(OPEN_MPI)
kind openmpi
#elif defined(MPICH_VERSION)
kind mpich
#else
kind mpi
#endif
