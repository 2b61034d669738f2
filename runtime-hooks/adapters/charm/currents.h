/*
 * currents.h: finds the word in which each of Charm++'s processing elements keeps the thread that it runs.
 *
 * The variable has no exported name, so it is recognized: of all words of the loader's data that hold the running
 * thread, or whose address a kernel thread's own variables hold (SMP builds), the one that still does after a
 * switch. Nothing is ever called or stored at a switch.
 */
#ifndef CHARM_CURRENTS_H
#define CHARM_CURRENTS_H

#include <stdint.h>

/* Adds `count` elements to the registry, nothing known of them yet (between begin and commit); 0, or ENOMEM. */
int currents_prepare(uint32_t count, uint32_t first_element);

/* Called by an element's kernel thread, now and then, of the thread that it runs, until its word is known. */
void currents_observe(uint32_t local_element, uint64_t running);

#endif
