/*
 * handle_table.h: the handles that a program has of objects of one kind.
 */
#ifndef RANK_MPI_HANDLE_TABLE_H
#define RANK_MPI_HANDLE_TABLE_H

#include <stddef.h>

/* Handle table: index is the handle, NULL is free; 0 is never given out. */
struct table {
    void **slots;
    int size;
    int used;
    int last; /* handle given out last: the next search begins after it, so that a freed one stays bad for long */
};

/* Adds a value; returns its handle. */
int table_add(struct table *table, void *value);
static inline void *table_get(const struct table *table, int handle) {
    return handle > 0 && handle < table->size ? table->slots[handle] : NULL;
}
void table_remove(struct table *table, int handle);

#endif
