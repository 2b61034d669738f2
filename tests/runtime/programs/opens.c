/*
 * opens.c: loads libraries by names that the loader looks for in the program's own places, and prints what it finds.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int value_of(const char *file) {
    void *library = dlopen(file, RTLD_NOW);
    int (*value)(void) = library ? (int (*)(void))dlsym(library, "value") : NULL;
    return value ? value() : -1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    printf("in the run path: %d, beside the program: %d, nowhere: %d, the program itself: %s\n",
           value_of("libin_run_path.so"), value_of("$ORIGIN/parts/libin_run_path.so"), value_of("libnowhere.so"),
           dlopen(NULL, RTLD_NOW) ? "yes" : "no");
    MPI_Finalize();
    return 0;
}
