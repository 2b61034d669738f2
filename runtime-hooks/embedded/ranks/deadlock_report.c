/*
 * deadlock_report.c: the report that every rank is blocked.
 *
 * Reads the registry as a debugger would, so it says what a debugger will show; changes nothing.  Ranks that wait for
 * the same are one line, so that the report of thousands can be read.
 */
#include "ranks/deadlock_report.h"
#include "rank_hooks.h"
#include "ranks/client.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"
#include "ranks/user_level_threads.h"

#include <stdio.h>
#include <unistd.h>

#define MOST_LINES 24 /* if there would be more, ranks in one call are one line, whatever they wait for in it */
#define MOST_CALLS 512

static const char *call_name(uint32_t call) {
    const struct rank_debug_table *calls = &rank_hooks_header()->calls;
    if (call == 0 || call >= calls->count)
        return "no MPI call";
    return ((const struct rank_debug_call *)(uintptr_t)calls->address)[call].name;
}

/* NULL: it is not here. */
static const struct rank_debug_rank *resident(int rank) {
    const struct rank_debug_rank *record = ranks_record(rank);
    return record && record->state != RANK_DEBUG_STATE_MIGRATED_OUT ? record : NULL;
}

static bool has_exited(const struct rank_debug_rank *rank) {
    return rank->state == RANK_DEBUG_STATE_EXITED;
}

/* Calls without a tag are collective: which rank each rank needs next in one is for tools, a report would be long. */
static bool has_peer(const struct rank_debug_rank *rank) {
    return rank->call && rank->wait_tag != -2;
}

static bool are_alike(const struct rank_debug_rank *first, const struct rank_debug_rank *second, bool by_call) {
    if (has_exited(first) || has_exited(second))
        return has_exited(first) && has_exited(second) &&
               rank_client()->is_unfinished(first->rank) == rank_client()->is_unfinished(second->rank);
    return first->call == second->call && rank_client()->root(first->rank) == rank_client()->root(second->rank) &&
           (by_call || !has_peer(first) ||
            (first->wait_peer == second->wait_peer && first->wait_tag == second->wait_tag));
}

/* The first of each group, in ascending order; at most `room` of them. */
static int find_groups(const struct rank_debug_rank **first, int room, bool by_call) {
    int count = 0;
    for (int rank = 0; rank < rank_total() && count < room; rank++) {
        const struct rank_debug_rank *record = resident(rank);
        int group = 0;
        while (record && group < count && !are_alike(first[group], record, by_call))
            group++;
        if (record && group == count)
            first[count++] = record;
    }
    return count;
}

static bool is_in(int rank, const struct rank_debug_rank *first, bool by_call) {
    const struct rank_debug_rank *record = rank < rank_total() ? resident(rank) : NULL;
    return record && are_alike(first, record, by_call);
}

/* As in "ranks 0-3,5". */
static void report_set(const struct rank_debug_rank *first, bool by_call) {
    int last = first->rank;
    for (int rank = last + 1; rank < rank_total(); rank++)
        last = is_in(rank, first, by_call) ? rank : last;
    fprintf(stderr, "  rank%s ", last == first->rank ? "" : "s");
    for (int rank = first->rank; rank <= last; rank++) {
        int start = rank;
        if (!is_in(rank, first, by_call))
            continue;
        while (is_in(rank + 1, first, by_call))
            rank++;
        fprintf(stderr, rank > start ? "%s%d-%d" : "%s%d", start == first->rank ? "" : ",", start, rank);
    }
}

static void report_group(const struct rank_debug_rank *first, bool by_call) {
    report_set(first, by_call);
    if (has_exited(first)) {
        fprintf(stderr, ": has exited%s\n", rank_client()->is_unfinished(first->rank) ? " without MPI_Finalize" : "");
        return;
    }
    fprintf(stderr, ": %s", call_name(first->call));
    if (rank_client()->root(first->rank) >= 0)
        fprintf(stderr, " with root %d", rank_client()->root(first->rank));
    if (has_peer(first) && !by_call && first->wait_peer == -1)
        fprintf(stderr, " from any rank");
    else if (has_peer(first) && !by_call && first->wait_peer >= 0)
        fprintf(stderr, ", peer %d", first->wait_peer);
    if (has_peer(first) && !by_call && first->wait_tag >= 0)
        fprintf(stderr, ", tag %d", first->wait_tag);
    fprintf(stderr, "\n");
}

void deadlock_report(bool ends) {
    fflush(stdout);
    fprintf(stderr, "rankrun: deadlock: no rank can continue\n");
    deadlock_report_process(ends);
}

void deadlock_report_process(bool ends) {
    const struct rank_debug_rank *first[MOST_CALLS];
    fflush(stdout);
    int count = find_groups(first, MOST_LINES + 1, false);
    bool by_call = count > MOST_LINES;
    if (by_call)
        count = find_groups(first, MOST_CALLS, true);
    for (int i = 0; i < count; i++)
        report_group(first[i], by_call);
    if (!ends)
        fprintf(stderr, "rankrun%s: process %d waits for a debugger: gdb -p %d\n", fatal_place(), getpid(), getpid());
    fflush(stderr);
}
