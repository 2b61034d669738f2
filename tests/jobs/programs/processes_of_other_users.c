/* Each process becomes another user's: argv[1] is the number of the user of processes 0 and 2, argv[2] that of 1. Then
 * all ranks wait for a message that never comes. */
#include <grp.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int my_rank;

int main(int argc, char **argv) {
    int at, count, value;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPIX_Process(&at, &count);
    if (getuid() == 0) { /* the first rank of each process */
        int user = atoi(argv[at == 1 ? 2 : 1]);
        if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
            return 1;
        prctl(PR_SET_DUMPABLE, 1); /* as it was before, or nobody but root may read it */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d waits\n", my_rank);
    fflush(stdout);
    MPI_Recv(&value, 1, MPI_INT, my_rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
