/* Odd ranks go one process on; then all wait for a message that never comes. A folder as argument: until rank 0 finds
 * a checkpoint there that was begun after it waits, and says so. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int my_rank;
int all_the_same;

static void wait(int *value) {
    MPI_Recv(value, 1, MPI_INT, my_rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The number of the newest checkpoint in a folder, 0 if there is none. */
static int newest(const char *folder) {
    int last = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        last = atoi(entry->d_name) > last ? atoi(entry->d_name) : last;
    if (list)
        closedir(list);
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
