/*
 * handle_table.c: a table of handles that grows when it is full.
 */
#include "mpi/objects/handle_table.h"
#include "mpi/objects/library_memory.h"

#include <string.h>

static void table_grow(struct table *table) {
    int size = table->size ? 2 * table->size : 64;
    void **slots = host_allocate((size_t)size * sizeof *slots);
    memset(slots, 0, (size_t)size * sizeof *slots);
    if (table->size)
        memcpy(slots, table->slots, (size_t)table->size * sizeof *slots);
    host_release(table->slots);
    table->slots = slots;
    table->size = size;
}

/* Half of the slots are free, so the search is short. */
int table_add(struct table *table, void *value) {
    if (2 * (table->used + 1) > table->size)
        table_grow(table);
    int handle = table->last;
    do
        handle = handle + 1 < table->size ? handle + 1 : 1;
    while (table->slots[handle]);
    table->slots[handle] = value;
    table->last = handle;
    table->used++;
    return handle;
}

void table_remove(struct table *table, int handle) {
    table->slots[handle] = NULL;
    table->used--;
}
