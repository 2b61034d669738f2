/*
 * planted_own.c: pointers into the original in what a rank has besides its copies (its heap and its stack), pointers
 * that glibc has mangled, and words that only look like either.
 *
 * Each rank prints "plant RANK ADDRESS VERDICT NAME" for everything that is to be found; what is not printed is no
 * finding. An address of the original comes from a packed pointer, which a scan misses.
 */
#include <alloca.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct __attribute__((packed)) packet {
    char kind;
    long *where;
};

struct node {
    long number;
    long *target;
    struct node *next;
    union {
        long whole;
        long *pointer;
    } either;
};

struct saved {
    int depth;
    jmp_buf state;
};

struct __attribute__((packed)) callback {
    char kind;
    void (*call)(void *);
};

static long anchor[16];
static void wait_for_ever(void *unused);

static struct packet escaped = {'e', &anchor[4]};        /* where the original's address is from */
static struct callback late_call = {'c', wait_for_ever}; /* and its code's */

/* made by a constructor, so that they are the original's */
static struct packet *boxes;
static struct node *nodes;
static struct saved *kept;
static jmp_buf environment;
static unsigned long mangled_word;

/* made by ranks, and used by others for all that the compiler knows */
struct node *own, *row, *freed, *circle;
struct packet *box;
void *blob;
struct saved *later;
jmp_buf fresh;
double *numbers;
char *text;

static int rank;
static long depth;

static unsigned long mangled(const void *address) {
    unsigned long word = (unsigned long)address;
    __asm__("xor %%fs:0x30, %0\n\trol $17, %0" : "+r"(word));
    return word;
}

__attribute__((constructor)) static void plant(void) {
    boxes = calloc(3, sizeof *boxes);
    boxes[2].where = &anchor[5];
    nodes = calloc(2, sizeof *nodes);
    nodes[0].next = &nodes[1];
    nodes[0].target = nodes[1].target = &anchor[6];
    nodes[0].number = (long)(uintptr_t)&anchor[7];
    kept = malloc(sizeof *kept);
    setjmp(kept->state);
    setjmp(environment);
    mangled_word = mangled((void *)(uintptr_t)wait_for_ever);
}

static void tell(const void *address, const char *verdict, const char *name) {
    printf("plant %d %lu %s %s\n", rank, (unsigned long)address, verdict, name);
}

static void fill_heap(void) {
    own = calloc(1, sizeof *own);
    own->target = escaped.where;
    own->number = (long)(uintptr_t)escaped.where; /* an integer, and not rewritten */
    own->either.pointer = escaped.where;
    tell(&own->target, "stale", "own->target");
    tell(&own->either, "ambiguous", "own->either.pointer");
    row = calloc(5, sizeof *row);
    row[3].target = escaped.where;
    row[4].number = row[3].number = (long)(uintptr_t)escaped.where;
    tell(&row[3].target, "stale", "row[3].target");
    tell(&row[3].number, "ambiguous", "row[3].number");
    tell(&row[4].number, "ambiguous", "row[4].number");
    circle = calloc(1, sizeof *circle);
    circle->next = calloc(1, sizeof *circle);
    circle->next->next = circle;
    circle->next->target = escaped.where;
    tell(&circle->next->target, "stale", "circle->next->target");
    box = malloc(sizeof *box);
    box->where = escaped.where;
    tell((char *)box + 1, "stale", "box->where");
    blob = calloc(4, sizeof(long *));
    ((long **)blob)[2] = escaped.where;
    tell((long **)blob + 2, "untyped", "-");
    numbers = calloc(8, sizeof *numbers);
    memcpy(&numbers[5], &escaped.where, sizeof *numbers); /* a number by type, and nobody has rewritten it */
    text = calloc(1, 32);
    memcpy(text + 8, &escaped.where, sizeof(long *)); /* bytes may be anything */
    tell(text + 8, "untyped", "-");
    freed = malloc(200 * sizeof *freed);
    freed[100].target = escaped.where;
    free(freed);
    later = calloc(1, sizeof *later);
    memcpy(later->state, environment, sizeof later->state); /* leads to the original's code, whoever has it */
    tell((unsigned long *)later->state + 7, "glibc-mangled", "later->state[0].__jmpbuf[7]");
    setjmp(fresh);
}

static void tell_of_constructors(void) {
    tell((char *)&boxes[2] + 1, "stale", "boxes[2].where");
    tell(&nodes[0].number, "false-positive", "nodes->number");
    tell((unsigned long *)kept->state + 7, "glibc-mangled", "kept->state[0].__jmpbuf[7]");
    tell((unsigned long *)environment + 7, "glibc-mangled", "environment[0].__jmpbuf[7]");
    tell(&mangled_word, "glibc-mangled", "mangled_word");
    tell((char *)&escaped + 1, "stale", "escaped.where");
    tell((char *)&late_call + 1, "stale", "late_call.call");
}

__attribute__((noinline)) static void wait_for_ever(void *unused) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    depth += unused != NULL;
}

/* What it has is in a register where the compiler is allowed to, and that in the frame of whom it calls. */
__attribute__((noinline)) static void hold(long *in_register) {
    wait_for_ever(NULL);
    depth += *in_register;
}

__attribute__((noinline)) static void stand(long *passed) {
    struct node local = {.number = (long)(uintptr_t)passed, .target = passed};
    struct packet packed = {'l', passed};
    long *several[3] = {NULL, passed, NULL};
    struct node *only_here = calloc(1, sizeof *only_here);
    void **room = alloca(4 * sizeof *room);
    memset(room, 0, 4 * sizeof *room);
    room[2] = passed;
    only_here->target = passed;
    tell(&passed, "stale", "passed");
    tell(&local.target, "stale", "local.target");
    tell((char *)&packed + 1, "stale", "packed.where");
    tell(&several[1], "stale", "several[1]");
    tell(&room[2], "untyped", "-");
    tell(&only_here->target, "stale", "only_here->target");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    if (rank == 3)
        late_call.call(NULL); /* the original's code, which a rank should never run */
    else
        hold(passed);
    long *not_yet = passed;
    depth += (long)(uintptr_t)not_yet + local.number + several[1][0] + packed.where[0] + only_here->target[0];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fill_heap();
    tell_of_constructors();
    stand(escaped.where);
    return (int)depth;
}
