/*
 * load.h: how long each rank has its processing element, and how long the element has no rank.
 *
 * Reading the processor's counter takes as long as half a switch, so it is read where a rank blocks or ends, or the
 * element has nothing to run, and not where a rank that polls lets the next one run: what ranks had in turn until then
 * is counted as undivided.  Where ranks may move, or the user wants it (--exact-load), it is read at every switch.
 */
#ifndef RANK_LOAD_H
#define RANK_LOAD_H

#include "machine/machine.h"
#include "rank_debug.h"

#include <stdint.h>

/* A counter of the processor's, which runs at one speed. */
static inline uint64_t load_ticks(void) {
    return machine_cycles();
}

/* Where to count for a rank or an element: in the registry, or, if that has no room, in memory that no tool reads.
 * NULL: there is none. */
struct rank_debug_load *load_of_rank(uint32_t number);
struct rank_debug_element_load *load_of_element(uint32_t index);

/* On the element's own kernel thread, before it runs a rank. */
void load_begin(struct rank_debug_element_load *element, uint32_t kernel_thread);

/* Publishes how long a tick is. */
void load_measure_ticks(struct rank_debug_element_load *element, uint64_t ticks);

/* Ticks after which it is measured again: some milliseconds, and before that as many as have passed in all. */
enum { LOAD_MEASURE_AFTER = 1 << 24 };

static inline uint64_t load_advance(struct rank_debug_element_load *element) {
    uint64_t now = load_ticks(), passed = now - element->since;
    element->since = now;
    uint64_t measured = element->later - element->began;
    if (__builtin_expect(now - element->later > (measured < LOAD_MEASURE_AFTER ? measured : LOAD_MEASURE_AFTER), 0))
        load_measure_ticks(element, now);
    return passed;
}

/* A rank leaves the element; returns the ticks that passed since it, or the first of several, began. */
static inline uint64_t load_charge(struct rank_debug_element_load *element, struct rank_debug_load *rank) {
    uint64_t passed = load_advance(element);
    if (element->turns)
        element->undivided += passed;
    else
        rank->busy += passed;
    element->turns = 0;
    return passed;
}

/* The element goes on with a rank after it had none. */
static inline void load_charge_idle(struct rank_debug_element_load *element) {
    element->idle += load_advance(element);
}

#endif
