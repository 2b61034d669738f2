/*
 * cells.h: the types of the C oracle program, one of each kind that a debugger prints in a way of its own.
 *
 * It takes nothing from MPI; cells.c holds the data, cells_main.c the program.
 */
#ifndef ORACLE_CELLS_H
#define ORACLE_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum phase { PHASE_IDLE, PHASE_ASSEMBLE = 4, PHASE_SOLVE };
enum option { OPTION_TRACE = 1, OPTION_CHECK = 2, OPTION_DUMP = 4 };

struct point {
    double x, y, z;
};

union word {
    int32_t whole;
    float real;
    unsigned char bytes[4];
};

struct cell;
typedef double (*weight_function)(const struct cell *cell);

struct cell {
    int id;
    enum phase phase;
    struct point centre;
    union word tag;
    unsigned level : 3;
    unsigned refined : 1;
    int offset : 12;
    char name[16];
    weight_function weight;
    struct cell *next;
    struct {
        short low, high;
    } bounds;
    union {
        int marker;
        char letters[4];
    };
};

struct __attribute__((packed)) record {
    char kind;
    int32_t value;
    int16_t pair[2];
};

struct samples {
    int count;
    float values[]; /* count of them */
};

#define CELL_COUNT 3

extern int counter;
extern double spacing[4];
extern int matrix[3][4];
extern struct cell cells[CELL_COUNT];
extern struct cell *head;
extern int *counter_pointer;
extern struct cell **head_pointer;
extern int (*matrix_row)[4];
extern weight_function kernels[2];
extern weight_function chosen;
extern const int primes[5];
extern const char *title;
extern char label[32];
extern enum option options;
extern bool ready;
extern unsigned char octets[6];
extern signed char small;
extern uint16_t port;
extern int64_t wide;
extern uint64_t total_bytes;
extern float ratio;
extern long double precise;
extern double _Complex wave;
extern struct record packed;
extern struct samples *samples;
extern char *heap_text;
extern struct cell *heap_cell;
extern volatile int ticks;
extern void *opaque;
extern struct hidden *hidden;

double weight_linear(const struct cell *cell);
double weight_square(const struct cell *cell);

/* Fills every global for this rank. */
void cells_fill(int rank);

#endif
