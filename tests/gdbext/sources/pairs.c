/*
 * pairs.c: passes a struct and a string to a function. With -DALONE a program without MPI.
 */
#ifndef ALONE
#include <mpi.h>
#endif

struct pair {
    int first;
    double second;
};

__attribute__((noinline)) static int add(int count, struct pair pair, const char *text, struct pair *other) {
    return count + pair.first + (int)other->second + text[0];
}

int main(int argc, char **argv) {
    struct pair pair = {2, 2.5};
#ifndef ALONE
    MPI_Init(&argc, &argv);
#endif
    add(3, pair, ", text=y", &pair);
#ifndef ALONE
    MPI_Finalize();
#endif
    (void)argc;
    (void)argv;
    return 0;
}
