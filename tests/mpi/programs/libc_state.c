/* libc_state.c: what libc keeps between calls (options, random numbers, tokens, dates) while ranks take turns. */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank;

/* Every rank stands in the middle of its own use while the others go on with theirs. */
static void others(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}

static void options(void) {
    char *ours[] = {"prog", "operand", "-a", "-b", "one", "--level=7", "-c", "last", NULL};
    char *others_first[] = {"prog", "-ab", "two", "--", "-c", NULL};
    char **argv = rank % 2 ? ours : others_first;
    int argc = rank % 2 ? 8 : 5, option;
    const struct option longs[] = {{"level", required_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
    for (int i = 0; i < 6; i++) {
        option = getopt_long(argc, argv, "ab:c", longs, NULL);
        others();
        if (option != -1)
            printf("%d option %c %s\n", rank, option, optarg ? optarg : "-");
    }
    for (int i = optind; i < argc; i++)
        printf("%d operand %d %s\n", rank, i, argv[i]);
}

static void numbers(void) {
    char state[64];
    unsigned short seed[3] = {1, 2, (unsigned short)rank};
    int unseeded = rand();
    others();
    printf("%d unseeded %d %d\n", rank, unseeded, rand());
    srand(42 + (unsigned)rank);
    for (int i = 0; i < 3; i++) {
        others();
        int number = rand();
        others();
        printf("%d rand %d random %ld\n", rank, number, random());
    }
    char *before = initstate(7, state, sizeof state);
    others();
    long of_state = random();
    others();
    int same = setstate(before) == state;
    printf("%d initstate %ld back %d %ld\n", rank, of_state, same, random());
    double first = drand48();
    srand48(rank);
    others();
    long second = lrand48(), third = mrand48();
    others();
    double fourth = erand48(seed);
    long fifth = nrand48(seed), sixth = jrand48(seed);
    printf("%d 48 bits %.12f %ld %ld %.12f %ld %ld\n", rank, first, second, third, fourth, fifth, sixth);
    memcpy(seed, seed48(seed), sizeof seed);
    printf("%d seed before %d %d %d\n", rank, seed[0], seed[1], seed[2]);
}

static void tokens(void) {
    char text[64];
    snprintf(text, sizeof text, "%d,a%d;b", rank, rank);
    for (char *token = strtok(text, ",;"); token; token = strtok(NULL, ",;")) {
        others();
        printf("%d token %s\n", rank, token);
    }
}

static void dates(void) {
    time_t day = 86400 * (time_t)rank;
    const struct tm *broken = gmtime(&day);
    others();
    printf("%d date %d %d %s", rank, broken->tm_mon, broken->tm_mday, asctime(broken));
    const char *local = ctime(&day);
    others();
    printf("%d local %s", rank, local);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    options();
    numbers();
    tokens();
    dates();
    MPI_Finalize();
    return 0;
}
