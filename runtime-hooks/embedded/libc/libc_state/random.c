/*
 * random.c: rand(), random() and drand48() with a state of the program's own.
 *
 * The generators are libc's reentrant ones, seeded as libc seeds its own: a program gets the numbers it gets anywhere.
 */
#define _GNU_SOURCE
#include "libc/libc_state/rank_private.h"

#include <stdint.h>
#include <stdlib.h>

#define DEFAULT_STATE 128 /* bytes: what libc's own state has (random(3)) */

static char first_state[DEFAULT_STATE];
static struct random_data generator;
static struct drand48_data generator48;

static struct random_data *started(void) {
    if (!generator.state)
        initstate_r(1, first_state, sizeof first_state, &generator);
    return &generator;
}

RANK_PRIVATE long random(void) {
    int32_t number = 0;
    random_r(started(), &number);
    return number;
}

RANK_PRIVATE int rand(void) {
    return (int)random();
}

RANK_PRIVATE void srandom(unsigned int seed) {
    srandom_r(seed, started());
}

RANK_PRIVATE void srand(unsigned int seed) {
    srandom(seed);
}

/* Both return the state in use before, whose first byte is 4 bytes before the table that random_data names. */
RANK_PRIVATE char *initstate(unsigned int seed, char *state, size_t size) {
    char *before = (char *)(started()->state - 1);
    return initstate_r(seed, state, size, &generator) ? NULL : before;
}

RANK_PRIVATE char *setstate(char *state) {
    char *before = (char *)(started()->state - 1);
    return setstate_r(state, &generator) ? NULL : before;
}

RANK_PRIVATE double drand48(void) {
    double number = 0;
    drand48_r(&generator48, &number);
    return number;
}

RANK_PRIVATE double erand48(unsigned short seed[3]) {
    double number = 0;
    erand48_r(seed, &generator48, &number);
    return number;
}

RANK_PRIVATE long lrand48(void) {
    long number = 0;
    lrand48_r(&generator48, &number);
    return number;
}

RANK_PRIVATE long nrand48(unsigned short seed[3]) {
    long number = 0;
    nrand48_r(seed, &generator48, &number);
    return number;
}

RANK_PRIVATE long mrand48(void) {
    long number = 0;
    mrand48_r(&generator48, &number);
    return number;
}

RANK_PRIVATE long jrand48(unsigned short seed[3]) {
    long number = 0;
    jrand48_r(seed, &generator48, &number);
    return number;
}

RANK_PRIVATE void srand48(long seed) {
    srand48_r(seed, &generator48);
}

RANK_PRIVATE unsigned short *seed48(unsigned short seed[3]) {
    seed48_r(seed, &generator48);
    return generator48.__old_x; /* there is no other way to the seed before: seed48(3) returns it */
}

RANK_PRIVATE void lcong48(unsigned short parameters[7]) {
    lcong48_r(parameters, &generator48);
}
