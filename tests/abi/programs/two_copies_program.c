/* What two_copies.c runs once for each rank: globals of every kind, and a call that waits. */
#include "two_copies.h"

static int counter;
int my_rank = -1;
double values[4];
wait_function *wait_for;

static void work(int turns) {
    for (int turn = 0; turn < turns; turn++) {
        counter += my_rank + 1;
        values[turn % 4] = counter * 0.5;
        wait_for(1 - my_rank);
    }
}

void program_main(int rank, int turns) {
    my_rank = rank;
    work(turns);
}
