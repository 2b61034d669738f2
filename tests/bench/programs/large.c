/*
 * large.c: a program of SIZE bytes of data that are not zero; with "copy N", how long N copies of them into fresh
 * memory take, in seconds: what no method that copies can be faster than.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SIZE (14 << 20)
char data[SIZE] = {[0 ... SIZE - 1] = 7};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc > 2 && !strcmp(argv[1], "copy")) {
        double start = now();
        for (int count = atoi(argv[2]); count > 0; count--) {
            char *copy = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (copy == MAP_FAILED)
                return 1;
            memcpy(copy, data, SIZE);
        }
        printf("%.6f\n", now() - start);
    }
    MPI_Finalize();
    return 0;
}
