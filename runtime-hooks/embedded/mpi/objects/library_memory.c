/*
 * library_memory.c: memory of a rank's heap, or of the process.
 */
#include "mpi/objects/library_memory.h"
#include "image/heap.h"
#include "image/ranges.h"
#include "image/shared_heap.h"
#include "mpi.h"
#include "ranks/fatal.h"

#include <string.h>

static void *checked(void *memory) {
    if (!memory)
        rank_job_abort(MPI_ERR_OTHER, "MPI: out of memory");
    return memory;
}

void *host_allocate_message(size_t bytes) {
    return checked(shared_allocate(bytes));
}

void *host_allocate(size_t bytes) {
    bytes = bytes ? bytes : 1;
    if (!heap_here || !ranges_are_mobile())
        return checked(shared_allocate(bytes));
    return memset(checked(heap_allocate(heap_here, bytes, 16)), 0, bytes);
}

void host_release(void *memory) {
    struct rank_heap *heap = ranges_are_mobile() ? heap_of(memory) : NULL;
    if (heap)
        heap_release(heap, memory);
    else
        shared_release(memory);
}

void *host_move(struct rank_heap *heap, void *memory, size_t bytes) {
    if (!memory || heap_of(memory) == heap)
        return memory;
    void *moved = heap_allocate(heap, bytes, 16);
    if (!moved)
        rank_job_abort(MPI_ERR_OTHER, "MPI: a rank's heap has no room for the messages that wait for it");
    memcpy(moved, memory, bytes);
    host_release(memory);
    return moved;
}
