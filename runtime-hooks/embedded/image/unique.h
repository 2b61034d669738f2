/*
 * unique.h: variables of which the system's loader keeps one instance, however many copies of their file it loads
 * (STB_GNU_UNIQUE: C++ inline variables, statics of templates and of inline functions).
 *
 * Read from a copy's own relocations.  Knows nothing of ranks but their number.
 */
#ifndef RANK_UNIQUE_H
#define RANK_UNIQUE_H

#include "image/objects.h"

/*
 * Adds to the registry (between begin and commit) where rank `rank`, whose copy of the object begins at `copy`, has its
 * unique variables; `index` is the object's in the registry.
 */
void unique_describe(const struct object *object, uint32_t index, int rank, uint64_t copy);

#endif
