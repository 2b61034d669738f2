/*
 * roomy.c: a program of SIZE bytes of globals, most of them never touched; rank 0 has ROOM bytes more, of which it
 * touches a page in every 16 MB. All ranks wait but the last.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef SIZE
#define SIZE 4096
#endif
#define EVERY ((size_t)16 << 20)

int my_rank = -1, steps = 12;
double residual = 0.5;
unsigned char bulk[SIZE];

static void take(size_t room) {
    char *base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || madvise(base, room, MADV_NOHUGEPAGE))
        abort();
    for (size_t at = 0; at < room; at += EVERY)
        base[at] = 1;
}

int main(int argc, char **argv) {
    int ranks, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bulk[0] = (unsigned char)my_rank;
    if (my_rank == 0 && getenv("ROOM"))
        take(strtoul(getenv("ROOM"), NULL, 10));
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == ranks - 1) {
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
    MPI_Recv(&word, 1, MPI_INT, ranks - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
