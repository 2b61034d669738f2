/* Globals whose value on every rank a test can compute; rank 0 prints "ready" when all have set theirs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    int rank;
    double half;
};

int mine = -1;
int parity = -1;
int same = 5;
static int kept[3];
struct pair pair;
int *to_mine = &mine;
int *to_odd = &same;
char label[16];
char hostile[16] = "\033[31m[bold]";
int *block;
int large[400];
struct padded {
    char letter;
    double number;
} padded[300];
struct list {
    long number;
    int *where;
} listed[300];
const char *greeting = "hello";

static int step(int by) {
    static int calls = 100;
    return calls += by;
}

int main(int argc, char **argv) {
    int unused;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    parity = mine % 2;
    kept[1] = 10 * mine;
    pair.rank = mine;
    pair.half = mine / 2.0;
    if (parity)
        to_odd = &mine;
    snprintf(label, sizeof label, "rank %d", mine);
    block = malloc(1000);
    for (int i = 0; i < 400; i++)
        large[i] = i;
    if (mine == 2)
        large[390] = -1;
    memset(padded, mine, sizeof padded);
    for (int i = 0; i < 300; i++) {
        padded[i] = (struct padded){'p', i};
        memset(&padded[i].letter + 1, mine, 7);
        listed[i].number = i;
        listed[i].where = i == 250 && mine == 3 ? &same : &mine;
    }
    step(mine);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mine == 0) {
        puts("ready");
        fflush(stdout);
    }
    MPI_Recv(&unused, 1, MPI_INT, (mine + 1) % 4, 70 + mine, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return step(0) + *to_mine + block[0] + kept[0] + greeting[0];
}
