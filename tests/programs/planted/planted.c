/*
 * planted.c: words that a scan for pointers takes wrongly for pointers, and pointers that it misses.
 *
 * A constructor plants them at load time from addresses inside the object, before any copy is made.  The ranks then
 * meet, rank 0 prints "ready", and all wait for a message that nobody sends, so that a reader finds them at rest.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct __attribute__((packed)) packet {
    char kind;
    long *where;
};

struct node {
    void (*call)(void);
    long *target;
    struct node *next;
    long number;
};

union either {
    long whole;
    long *pointer;
};

extern char _end[] __attribute__((visibility("hidden"))); /* the linker's: one past the object's last byte */

static long anchor[16];

static void called(void) {
    anchor[0]++;
}

/* false positives: no pointers, but their values lie in the object */
long planted_long;
double planted_double;
int planted_pair[2];
char planted_chars[16];
long planted_past_end_integer;

/* rightly rewritten pointers */
long *static_pointer = &anchor[1];
long *filled_pointer;
long *pointers[3] = {&anchor[2], 0, &anchor[3]};
void (*function_pointer)(void) = called;
char *past_end_pointer;

/* nobody can tell by type alone */
union either planted_union;
uintptr_t planted_uintptr;

/* missed: the scan looks at aligned words only */
struct packet static_packet = {'s', &anchor[4]};
struct packet filled_packet = {'f', 0};

/* in blocks that constructors allocate */
struct node *nodes;

/* not rewritten: changed by the program after the copies were made */
long changed_long;
long *changed_pointer = &anchor[5];
long *late_stale;

__attribute__((constructor)) static void plant(void) {
    uintptr_t address = (uintptr_t)&anchor[6];
    planted_long = (long)address;
    memcpy(&planted_double, &address, sizeof address);
    memcpy(planted_pair, &address, sizeof address);
    memcpy(planted_chars + 8, &address, sizeof address);
    planted_past_end_integer = (long)(uintptr_t)_end;
    filled_pointer = &anchor[7];
    past_end_pointer = _end;
    planted_union.whole = (long)(uintptr_t)&anchor[8];
    planted_uintptr = (uintptr_t)&anchor[9] | 1;
    filled_packet.where = &anchor[10];
    changed_long = (long)address;
    nodes = malloc(2 * sizeof *nodes);
    for (int i = 0; i < 2; i++) {
        nodes[i].call = called;
        nodes[i].target = &anchor[11 + i];
        nodes[i].next = i == 0 ? &nodes[1] : NULL;
        nodes[i].number = i == 0 ? (long)(uintptr_t)&anchor[13] : 13;
    }
}

int main(int argc, char **argv) {
    int rank, unused;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    changed_long = rank;
    changed_pointer = &anchor[rank & 3];
    late_stale = static_packet.where;
    function_pointer();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    MPI_Recv(&unused, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return unused;
}
