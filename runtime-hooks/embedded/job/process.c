/*
 * process.c: the table of where ranks are, and the handlers of what the launcher asks.
 */
#define _GNU_SOURCE
#include "job/process.h"
#include "image/ranges.h"
#include "job/control_frames.h"
#include "job/process_sockets.h"
#include "rank_hooks.h"
#include "ranks/deadlock_report.h"
#include "ranks/fatal.h"
#include "ranks/kernel_threads.h"
#include "ranks/process_hooks.h"
#include "ranks/rank_lifecycle.h"
#include "ranks/scheduler.h"
#include "ranks/user_level_threads.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a rank is; both by one store, since threads read it at any time. */
struct place {
    int32_t process;
    uint32_t moves;
};

static struct job job = {.processes = 1};
static struct place *places; /* by rank */
static struct process_hooks hooks;
static sem_t may_begin;

bool process_is_one_of_a_job(void) {
    return places != NULL;
}

int process_index(void) {
    return job.index;
}

int process_count(void) {
    return job.processes;
}

static struct place place_of(int rank) {
    struct place place;
    __atomic_load(&places[rank], &place, __ATOMIC_ACQUIRE);
    return place;
}

int process_of_rank(int rank) {
    return places ? place_of(rank).process : 0;
}

bool process_has_rank(int rank) {
    return process_of_rank(rank) == job.index;
}

/* The smallest rank r with r * processes / ranks == process. */
int process_first_rank(int process) {
    return (int)(((int64_t)process * job.ranks + job.processes - 1) / job.processes);
}

void process_note(int rank, int process, uint32_t moves) {
    struct place before = place_of(rank), news = {process, moves};
    while (news.moves > before.moves)
        if (__atomic_compare_exchange(&places[rank], &before, &news, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            break;
    struct rank_debug_rank *record = ranks_record(rank);
    if (record && news.moves > record->moves) {
        rank_hooks_begin();
        record->process = (uint32_t)process;
        record->moves = moves;
        rank_hooks_commit();
    }
}

/* ---- what other processes say ---- */

struct wire_moved {
    int32_t rank;
    int32_t process;
    uint32_t moves;
};

void process_announce(int rank, uint32_t moves) {
    struct wire_moved wire = {rank, job.index, moves};
    for (int i = 0; i < job.processes; i++)
        if (i != job.index)
            transport_send(i, FRAME_MOVED, &wire, sizeof wire);
}

static void take_moved(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    struct wire_moved wire;
    transport_read(&wire, sizeof wire);
    if (wire.rank < 0 || wire.rank >= job.ranks || wire.process < 0 || wire.process >= job.processes)
        rank_job_abort(2, "another process of the job names a rank or a process that does not exist");
    process_note(wire.rank, wire.process, wire.moves);
}

/* ---- what the launcher says ---- */

static void take_start(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    sem_post(&may_begin);
}

static void take_count(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    struct frame_counts counts = {.idle = ranks_idle()};
    transport_counts(&counts.sent, &counts.handled);
    transport_send(TRANSPORT_LAUNCHER, FRAME_COUNTS, &counts, sizeof counts);
}

static void take_deadlock(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    deadlock_report_process(job.exit_on_deadlock);
    transport_send(TRANSPORT_LAUNCHER, FRAME_REPORTED, NULL, 0);
}

static void take_pause(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    ranks_pause();
}

static void take_resume(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    ranks_continue();
}

static void take_end(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    ranks_end();
}

/* ---- what this process tells the launcher ---- */

static void rank_exited(int number, int status) {
    struct wire_exited wire = {number, status};
    transport_send(TRANSPORT_LAUNCHER, FRAME_EXITED, &wire, sizeof wire);
}

static void process_start(void) {
    transport_start();
    while (sem_wait(&may_begin))
        ;
}

void process_on_leave(void (*leaves)(int rank)) {
    hooks.leaves = leaves;
}

void process_join(const struct job *joined) {
    job = *joined;
    if (!job.sockets)
        return;
    places = calloc((size_t)job.ranks, sizeof *places);
    if (!places || sem_init(&may_begin, 0, 0))
        rank_job_abort(2, "there is not enough memory for the job");
    if (job.ranks_can_move)
        ranges_set_mobile();
    for (int process = 0; process < job.processes; process++)
        for (int rank = process_first_rank(process); rank < process_first_rank(process + 1); rank++)
            places[rank].process = process;
    hooks.first = process_first_rank(job.index);
    hooks.count = process_first_rank(job.index + 1) - hooks.first;
    hooks.exited = rank_exited;
    hooks.element_starts = lifecycle_element_starts;
    hooks.ready = process_start;
    ranks_join(&hooks);
    transport_open(job.index, job.processes, job.sockets, job.launcher);
    transport_handle(FRAME_MOVED, take_moved);
    transport_handle(FRAME_START, take_start);
    transport_handle(FRAME_COUNT, take_count);
    transport_handle(FRAME_DEADLOCK, take_deadlock);
    transport_handle(FRAME_PAUSE, take_pause);
    transport_handle(FRAME_RESUME, take_resume);
    transport_handle(FRAME_END, take_end);
}
