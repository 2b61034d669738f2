/*
 * rankrun.c: the command; the runtime is a library, so that its malloc and MPI come before everything else's.
 */
#include "launch/runtime.h"

int main(int argc, char **argv) {
    return rank_runtime_main(argc, argv);
}
