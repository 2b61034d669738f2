/*
 * guards.c: memory whose middle page the kernel guards without a mapping of its own, as the stacks of glibc 2.42 do.
 *
 * Prints "half" and waits for the file that the argument names; prints "no guards" where the kernel has none.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif
enum { PAGE = 4096, PAGES = 600 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 7, PAGES * PAGE);
    int guards = madvise(pages, PAGE, MADV_GUARD_INSTALL) == 0;
    guards = guards && madvise(pages + PAGES / 2 * PAGE, PAGE, MADV_GUARD_INSTALL) == 0;
    puts(guards ? "half" : "no guards\nhalf");
    fflush(stdout);
    for (int absent = 1; absent;) {
        absent = access(argv[1], F_OK) != 0;
        MPI_Allreduce(MPI_IN_PLACE, &absent, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return pages[PAGE] != 7 || pages[(PAGES - 1) * PAGE] != 7;
}
