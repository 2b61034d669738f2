/*
 * cells.c: the globals of the C oracle program, and how a rank fills them.
 *
 * It takes the rank's number; every value depends on it.  Pointers are initialized by the loader, not by code, so that
 * each of them is a relocation.
 */
#include "cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hidden {
    int secret;
};

static PRIVATE int calls = 100;
static PRIVATE struct hidden kept = {-1};
static PRIVATE struct cell *last = ADDRESS_AT_START(&cells[CELL_COUNT - 1]);

PRIVATE int counter = 7;
PRIVATE double spacing[4] = {0.5, 0.25, 0.125, 0.0625};
PRIVATE int matrix[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
PRIVATE struct cell cells[CELL_COUNT];
PRIVATE struct cell *head = ADDRESS_AT_START(&cells[0]);
PRIVATE int *counter_pointer = ADDRESS_AT_START(&counter);
PRIVATE struct cell **head_pointer = ADDRESS_AT_START(&head);
PRIVATE int (*matrix_row)[4] = ADDRESS_AT_START(&matrix[1]);
PRIVATE weight_function kernels[2] = {weight_linear, weight_square};
PRIVATE weight_function chosen = weight_linear;
PRIVATE const int primes[5] = {2, 3, 5, 7, 11};
PRIVATE const char *title = "cells";
PRIVATE char label[32];
PRIVATE enum option options = OPTION_TRACE;
PRIVATE bool ready;
PRIVATE unsigned char octets[6];
PRIVATE signed char small;
PRIVATE uint16_t port;
PRIVATE int64_t wide;
PRIVATE uint64_t total_bytes;
PRIVATE float ratio;
PRIVATE long double precise;
PRIVATE double _Complex wave;
PRIVATE struct record packed;
PRIVATE struct samples *samples;
PRIVATE char *heap_text;
PRIVATE struct cell *heap_cell;
PRIVATE volatile int ticks;
PRIVATE void *opaque = ADDRESS_AT_START(&kept);
PRIVATE struct hidden *hidden = ADDRESS_AT_START(&kept);

double weight_linear(const struct cell *cell) {
    static PRIVATE int uses = 10;
    uses += cell->id;
    return cell->centre.x + uses;
}

double weight_square(const struct cell *cell) {
    static PRIVATE int uses = 20;
    uses += 2 * cell->id;
    return cell->centre.x * cell->centre.x + uses;
}

static void cell_fill(struct cell *cell, int id, int rank) {
    cell->id = id + 10 * rank;
    cell->phase = rank % 2 == 0 ? PHASE_ASSEMBLE : PHASE_SOLVE;
    cell->centre = (struct point){id + rank, id - rank, id * rank};
    cell->tag.real = 1.5F * (float)(rank + 1);
    cell->level = (unsigned)(rank + id) % 8;
    cell->refined = rank % 2 == 1;
    cell->offset = -rank;
    snprintf(cell->name, sizeof cell->name, "cell-%d-%d", rank, id);
    cell->weight = kernels[(id + rank) % 2];
    cell->next = NULL;
    cell->bounds.low = (short)(-id - rank);
    cell->bounds.high = (short)(id + rank);
    memcpy(cell->letters, "rnk", 4);
    cell->letters[3] = (char)('0' + rank);
    calls++;
}

static void heap_fill(int rank) {
    samples = calloc(1, sizeof *samples + (size_t)(rank + 4) * sizeof(float));
    heap_text = calloc(1, 64);
    heap_cell = calloc(1, sizeof *heap_cell);
    if (samples == NULL || heap_text == NULL || heap_cell == NULL)
        abort();
    samples->count = rank + 4;
    for (int i = 0; i < samples->count; i++)
        samples->values[i] = (float)(rank * 100 + i) / 8;
    snprintf(heap_text, 64, "text on the heap of rank %d", rank);
    cell_fill(heap_cell, 50, rank);
    heap_cell->next = head;
}

static void numbers_fill(int rank) {
    counter += 1000 * rank;
    options = rank % 2 == 0 ? OPTION_TRACE | OPTION_DUMP : OPTION_CHECK;
    ready = rank % 2 == 1;
    small = (signed char)(-5 * rank);
    port = (uint16_t)(40000 + rank);
    wide = -3000000000 - rank;
    total_bytes = 5000000000U + (uint64_t)rank;
    ratio = 0.125F * (float)rank;
    precise = 2.5L * rank;
    wave = (double)rank + 0.5i;
    packed = (struct record){(char)('a' + rank), 70000 + rank, {(int16_t)rank, (int16_t)-rank}};
    ticks = 3 * rank;
    kept.secret = 4000 + rank;
}

#ifdef POINTERS_BY_CODE
static void pointers_fill(void) {
    last = &cells[CELL_COUNT - 1];
    head = &cells[0];
    counter_pointer = &counter;
    head_pointer = &head;
    matrix_row = &matrix[1];
    opaque = &kept;
    hidden = &kept;
}
#endif

void cells_fill(int rank) {
#ifdef POINTERS_BY_CODE
    pointers_fill();
#endif
    numbers_fill(rank);
    for (int i = 0; i < 4; i++)
        spacing[i] *= rank + 1;
    for (int i = 0; i < 12; i++)
        matrix[i / 4][i % 4] += 100 * rank;
    for (int i = 0; i < 6; i++)
        octets[i] = (unsigned char)(16 * rank + i);
    for (int i = 0; i < CELL_COUNT; i++)
        cell_fill(&cells[i], i, rank);
    for (int i = 0; i + 1 < CELL_COUNT; i++)
        cells[i].next = &cells[i + 1];
    last->phase = PHASE_IDLE;
    chosen = kernels[rank % 2];
    matrix_row = &matrix[rank % 3];
    snprintf(label, sizeof label, "rank %d of the C program", rank);
    heap_fill(rank);
}
