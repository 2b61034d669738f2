/* Each rank writes its box, receives into it from the rank before, and writes it again; all at once, by turns. */
#include <mpi.h>
#include <stdio.h>
int box;
__attribute__((noinline)) void open_box(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}
int main(int count, char **words) {
    int me, mail;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Barrier(MPI_COMM_WORLD);
    open_box();
    if (me > 0)
        box = 10 * me;
    MPI_Barrier(MPI_COMM_WORLD);
    mail = 100 + me;
    MPI_Sendrecv(&mail, 1, MPI_INT, (me + 1) % 3, 0, &box, 1, MPI_INT, (me + 2) % 3, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me > 0)
        box = 10 * me + 1;
    MPI_Barrier(MPI_COMM_WORLD);
    printf("BOX %d %d\n", me, box);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
