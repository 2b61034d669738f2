/*
 * deadlock.c: the report that every rank is blocked.
 *
 * Reads the registry as a debugger would, so it says what a debugger will show; changes nothing.
 */
#include "deadlock.h"
#include "rank_hooks.h"

#include <stdio.h>
#include <unistd.h>

static const char *call_name(uint32_t call) {
    const struct rank_debug_table *calls = &rank_hooks_header()->calls;
    if (call == 0 || call >= calls->count)
        return "no MPI call";
    return ((const struct rank_debug_call *)(uintptr_t)calls->address)[call].name;
}

static void report_rank(const struct rank_debug_rank *rank) {
    if (rank->state == RANK_DEBUG_STATE_MIGRATED_OUT)
        return;
    if (rank->state == RANK_DEBUG_STATE_EXITED) {
        fprintf(stderr, "  rank %d: has exited\n", rank->rank);
        return;
    }
    fprintf(stderr, "  rank %d: %s", rank->rank, call_name(rank->call));
    if (rank->call && rank->wait_peer == -1)
        fprintf(stderr, " from any rank");
    else if (rank->call && rank->wait_peer >= 0)
        fprintf(stderr, ", peer %d", rank->wait_peer);
    if (rank->call && rank->wait_tag >= 0)
        fprintf(stderr, ", tag %d", rank->wait_tag);
    fprintf(stderr, "\n");
}

void deadlock_report(bool ends) {
    fflush(stdout);
    fprintf(stderr, "rankrun: deadlock: no rank can go on\n");
    deadlock_report_process(ends);
}

void deadlock_report_process(bool ends) {
    fflush(stdout);
    uint32_t count = rank_hooks_header()->ranks.count;
    for (uint32_t i = 0; i < count; i++)
        report_rank(rank_hooks_rank(i));
    if (!ends)
        fprintf(stderr, "rankrun: process %d waits for a debugger: gdb -p %d\n", getpid(), getpid());
    fflush(stderr);
}
