/* calloc: zeros also where other bytes have been, and no memory for pages that nobody writes.  Prints kB of both. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE ((64 << 20) + 100)

static long resident(void) {
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2)
        abort();
    fclose(file);
    return pages * 4;
}

int main(int argc, char **argv) {
    long wrong = 0;
    MPI_Init(&argc, &argv);
    char *used = malloc(SIZE);
    memset(used, 1, SIZE);
    free(used);
    char *again = calloc(1, SIZE);
    for (long i = 0; i < SIZE; i++)
        wrong += again[i] != 0;
    free(again);
    long before = resident();
    char *untouched = calloc(2, SIZE);
    untouched[5000] = 1;
    printf("%d same, %ld wrong, %ld kB\n", again == used, wrong, resident() - before);
    MPI_Finalize();
    return 0;
}
