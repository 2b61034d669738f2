/*
 * call_names.c: registers the names of the calls, and looks them up.
 */
#include "mpi/objects/call_names.h"
#include "ranks/scheduler.h"

#define CALL_STRING(name) "MPI_" #name,
#define CALL_STRING_BEYOND(name) "MPIX_" #name,
static const char *const call_names[] = {MPI_CALLS(CALL_STRING) MPIX_CALLS(CALL_STRING_BEYOND)};
static uint32_t call_indices[CALL_COUNT];

void calls_register(void) {
    for (int call = 0; call < CALL_COUNT; call++)
        call_indices[call] = rank_call_register(call_names[call]);
}

const char *call_name(enum call call) {
    return call_names[call];
}

uint32_t call_index(enum call call) {
    return call_indices[call];
}
