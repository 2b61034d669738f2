/*
 * load.c: where load is counted, and how long a tick is.
 */
#define _GNU_SOURCE
#include "ranks/load.h"
#include "image/shared_heap.h"
#include "rank_hooks.h"

#include <time.h>

struct rank_debug_load *load_of_rank(uint32_t number) {
    struct rank_debug_load *published = rank_hooks_load(number);
    return published ? published : shared_allocate(sizeof *published);
}

struct rank_debug_element_load *load_of_element(uint32_t index) {
    struct rank_debug_element_load *published = rank_hooks_element_load(index);
    return published ? published : shared_allocate(sizeof *published);
}

static uint64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void load_begin(struct rank_debug_element_load *element, uint32_t kernel_thread) {
    element->began_monotonic = element->later_monotonic = monotonic();
    element->began = element->later = element->since = load_ticks();
    element->kernel_thread = kernel_thread;
}

/* A reader that sees a new `later` sees its time. */
void load_measure_ticks(struct rank_debug_element_load *element, uint64_t ticks) {
    __atomic_store_n(&element->later_monotonic, monotonic(), __ATOMIC_RELAXED);
    __atomic_store_n(&element->later, ticks, __ATOMIC_RELEASE);
}
