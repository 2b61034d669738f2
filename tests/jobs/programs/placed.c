/* Odd ranks go one process on; then all wait for a message that never comes. A folder as argument: until rank 0 finds
 * a checkpoint there that was begun after it waits, and says so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int my_rank;
int all_the_same;

static void wait(int *value) {
    MPI_Recv(value, 1, MPI_INT, my_rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The number of the newest checkpoint in a folder. */
static int newest(const char *folder) {
    char path[4096];
    int last = 0;
    for (int i = 1; i < 100000 && last >= i - 3; i++) {
        snprintf(path, sizeof path, "%s/%06d", folder, i);
        if (access(path, F_OK) == 0)
            last = i;
        else if (last)
            break;
    }
    return last;
}

int main(int argc, char **argv) {
    int at, count, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    all_the_same = 77;
    MPIX_Process(&at, &count);
    if (my_rank % 2)
        MPIX_Migrate_to((at + 1) % count);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d waits\n", my_rank);
    fflush(stdout);
    if (argc > 1 && my_rank == 0) {
        int begun = newest(argv[1]), flag;
        while (newest(argv[1]) < begun + 2) {
            MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            usleep(1000);
        }
        printf("kept\n");
        fflush(stdout);
    }
    wait(&value);
    MPI_Finalize();
    return 0;
}
