/* sent.c: rank 0 broadcasts the address of a function and of a variable; every rank has pointers of its own.
 * They arrive in variables, in blocks of the heap and on the stack. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int count;

static void step(void) {
    count++;
}

void (*sent_function)(void);
void (*own_function)(void);
struct {
    char kind;
    int *sent_address;
    int *own_address;
} box;
int *sent_block;
struct message {
    void (*function)(void);
    int *own_address;
    int *address;
    long number;
} * held;
char *raw;        /* nothing says what it has */
long sent_number; /* an address, in what is not a pointer */
FILE *stream;

int main(int argc, char **argv) {
    int rank, word;
    struct message local;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sent_function = own_function = step;
    box.sent_address = box.own_address = &count;
    sent_block = malloc(100);
    sent_number = (long)&count;
    stream = stdout;
    MPI_Bcast(&sent_function, sizeof sent_function, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&box.sent_address, sizeof box.sent_address, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&sent_block, sizeof sent_block, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&sent_number, sizeof sent_number, MPI_BYTE, 0, MPI_COMM_WORLD);
    held = calloc(2, sizeof *held);
    raw = calloc(1, 64);
    local = (struct message){sent_function, &count, box.sent_address, sent_number};
    held[1] = local;
    *(int **)raw = box.sent_address;
    sent_function();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (int)(*local.address + held[1].number);
}
