/*
 * wrapped_functions.c: functions of Charm++ that the linker wraps (--wrap), by which the hook learns of ranks and
 * migration; libmodulerankdebug.dep names them.
 *
 * None of them is on the path of a context switch.
 */
#define _GNU_SOURCE
#include "allocator_binding.h"
#include "crash.h"
#include "images.h"
#include "rank_hooks.h"
#include "ranks.h"
#include "unwinding.h"

#include "pup_c.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* Environment, words with commas: "exceptions" (unwinding.h), "malloc" (allocator_binding.h), "crash" (crash.h). */
#define OPTIONS "RANKDEBUG"

void __real_AMPI_Node_Setup(int ranks);
void __real_TCHARM_Element_Setup(int rank, int ranks, CmiIsomallocContext share);
CthThread __real_CthCreateMigratable(CthVoidFn function, void *argument, int size, CmiIsomallocContext share);
CthThread __real_CthPup(pup_er pupper, CthThread thread);
void __real_CthFree(CthThread thread);
void __real_CmiIsomallocContextJustMigrated(CmiIsomallocContext share);
void __real_TCHARM_Barrier(void);
int __real_TCHARM_Element(void);
void __real_TCHARM_Done(int status);
void *__real_dlopen(const char *path, int flags);
void *__real_dlmopen(Lmid_t space, const char *path, int flags);

/* The thread that was made last on this kernel thread: its rank is named next. */
static _Thread_local struct {
    CthThread thread;
    void *share;
    uint64_t entry;
} latest;

static bool loading; /* by one thread, before any rank is made */
static atomic_flag all_copied = ATOMIC_FLAG_INIT;
static bool copies_come_with_ranks;

static bool is_asked_for(const char *word) {
    const char *options = getenv(OPTIONS);
    size_t length = strlen(word);
    for (const char *at = options; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, word, length) && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

void __wrap_AMPI_Node_Setup(int ranks) {
    bool described = ranks_prepare(ranks);
    if (described) {
        images_before_load(ranks);
        loading = true;
    }
    __real_AMPI_Node_Setup(ranks);
    loading = false;
    if (!described)
        return;
    const char *method = images_after_load();
    unwinding_prepare(is_asked_for("exceptions"));
    if (images_are_bytes() && is_asked_for("malloc"))
        allocation_bind(images_originals());
    ranks_describe_job(method);
    ranks_observe();
    if (is_asked_for("crash"))
        crash_prepare();
    copies_come_with_ranks = !strcmp(method, "pie");
    rank_hooks_event(RANK_DEBUG_EVENT_BEFORE_COPIES, NULL, RANK_DEBUG_NONE);
    if (!copies_come_with_ranks)
        rank_hooks_event(RANK_DEBUG_EVENT_AFTER_COPIES, NULL, RANK_DEBUG_NONE);
}

void *__wrap_dlopen(const char *path, int flags) {
    void *handle = __real_dlopen(path, flags);
    if (loading)
        images_loaded(handle);
    return handle;
}

void *__wrap_dlmopen(Lmid_t space, const char *path, int flags) {
    void *handle = __real_dlmopen(space, path, flags);
    if (loading)
        images_loaded(handle);
    return handle;
}

CthThread __wrap_CthCreateMigratable(CthVoidFn function, void *argument, int size, CmiIsomallocContext share) {
    CthThread thread = __real_CthCreateMigratable(function, argument, size, share);
    latest.thread = thread;
    latest.share = share.opaque;
    latest.entry = (uintptr_t)function;
    return thread;
}

void __wrap_TCHARM_Element_Setup(int rank, int ranks, CmiIsomallocContext share) {
    __real_TCHARM_Element_Setup(rank, ranks, share);
    if (latest.share && latest.share == share.opaque)
        rank_created(rank, latest.thread, share, latest.entry);
    crash_prepare_thread();
}

/* The first of all ranks that passes has waited for all others to be made; none has run its main yet. */
void __wrap_TCHARM_Barrier(void) {
    __real_TCHARM_Barrier();
    ranks_observe();
    if (copies_come_with_ranks && !atomic_flag_test_and_set(&all_copied))
        rank_hooks_event(RANK_DEBUG_EVENT_AFTER_COPIES, NULL, RANK_DEBUG_NONE);
}

/* Every rank asks for its number when it begins. */
int __wrap_TCHARM_Element(void) {
    ranks_observe();
    return __real_TCHARM_Element();
}

void __wrap_TCHARM_Done(int status) {
    rank_exited(__real_TCHARM_Element());
    __real_TCHARM_Done(status);
}

CthThread __wrap_CthPup(pup_er pupper, CthThread thread) {
    int rank = pup_isPacking(pupper) ? rank_packing(thread) : -1;
    CthThread now = __real_CthPup(pupper, thread);
    if (rank >= 0)
        rank_packed(rank, pup_isDeleting(pupper));
    if (pup_isUnpacking(pupper))
        rank_unpacked(now);
    crash_prepare_thread();
    return now;
}

void __wrap_CthFree(CthThread thread) {
    if (thread)
        rank_freed(thread);
    __real_CthFree(thread);
}

void __wrap_CmiIsomallocContextJustMigrated(CmiIsomallocContext share) {
    __real_CmiIsomallocContextJustMigrated(share);
    if (share.opaque)
        rank_memory_here(share);
}

/* What charmc calls of every module; there is nothing to register with Charm++.  The name is C++'s. */
void register_module(void) __asm__("_Z18_registerrankdebugv");
void register_module(void) {}
