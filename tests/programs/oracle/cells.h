/*
 * cells.h: the types of the C oracle program, one of each kind that a debugger prints in a way of its own.
 *
 * It takes nothing from MPI; cells.c holds the data, cells_main.c the program.
 */
#ifndef ORACLE_CELLS_H
#define ORACLE_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#ifndef PRIVATE /* or what makes a variable thread-local */
#define PRIVATE
#define ADDRESS_AT_START(place) (place)
#else
#define POINTERS_BY_CODE
#define ADDRESS_AT_START(place) NULL /* a thread-local variable's address is not a constant: cells_fill gives it */
#endif

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

extern PRIVATE int counter;
extern PRIVATE double spacing[4];
extern PRIVATE int matrix[3][4];
extern PRIVATE struct cell cells[CELL_COUNT];
extern PRIVATE struct cell *head;
extern PRIVATE int *counter_pointer;
extern PRIVATE struct cell **head_pointer;
extern PRIVATE int (*matrix_row)[4];
extern PRIVATE weight_function kernels[2];
extern PRIVATE weight_function chosen;
extern PRIVATE const int primes[5];
extern PRIVATE const char *title;
extern PRIVATE char label[32];
extern PRIVATE enum option options;
extern PRIVATE bool ready;
extern PRIVATE unsigned char octets[6];
extern PRIVATE signed char small;
extern PRIVATE uint16_t port;
extern PRIVATE int64_t wide;
extern PRIVATE uint64_t total_bytes;
extern PRIVATE float ratio;
extern PRIVATE long double precise;
extern PRIVATE double _Complex wave;
extern PRIVATE struct record packed;
extern PRIVATE struct samples *samples;
extern PRIVATE char *heap_text;
extern PRIVATE struct cell *heap_cell;
extern PRIVATE volatile int ticks;
extern PRIVATE void *opaque;
extern PRIVATE struct hidden *hidden;

double weight_linear(const struct cell *cell);
double weight_square(const struct cell *cell);

/* Fills every global for this rank. */
void cells_fill(int rank);

#endif
