/*
 * second_runtime_instance.h: a second instance of this library, in a linker namespace, that must not be used.
 *
 * The system's loader makes one for each namespace.  What is bound to it is bound again to the first instance, which is
 * the one that the job runs on; calls of the malloc family that come before that are passed on.
 */
#ifndef RANK_SECOND_RUNTIME_INSTANCE_H
#define RANK_SECOND_RUNTIME_INSTANCE_H

#include <link.h>
#include <stdbool.h>

/* Whether this is such an instance; works before any constructor has run. */
bool is_second_instance(void);

/* The first instance's function at the place of this one's `function`. */
void *first_instance_function(void *function);

/* Binds every object of the namespace whose first link map is `map` to this instance; 0, or an errno value. */
int second_instance_bind(const struct link_map *map);

#endif
