/*
 * ranks.c: keeps the registry's records of ranks true.
 */
#define _GNU_SOURCE
#include "ranks.h"
#include "currents.h"
#include "images.h"
#include "rank_hooks.h"
#include "threads.h"
#include "unwinding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* isomalloc's range, the same in every process; rank r's share of it begins at r/(count + 1). */
struct region {
    uint64_t start, end;
};
extern struct region IsoRegion;

enum presence { UNKNOWN, HERE, COMING, GONE };

struct hosted {
    CthThread thread;
    void *share;
    uint64_t stack_start, stack_size;
    struct copies copies;
    uint32_t record, kept; /* indices in the registry; RANK_DEBUG_NONE until it has been here once */
    enum presence presence;
};

static struct hosted *hosted;
static int job_ranks;

bool ranks_prepare(int count) {
    uint32_t ranks = (uint32_t)count;
    struct rank_hooks_capacity capacity = {
        .strings = 1 << 20,
        .objects = MOST_OBJECTS,
        .segments = MOST_OBJECTS * 16,
        .ranks = ranks,
        .copies = ranks * MOST_OBJECTS,
        .tls_blocks = ranks * MOST_OBJECTS,
        .redirections = ranks < 4096 ? ranks * 4096 : 1 << 24,
        .context_registers = 16,
        .kept = ranks,
        .processing_elements = (uint32_t)CmiMyNodeSize(),
        .events = RANK_HOOKS_EVENTS,
    };
    hosted = calloc((size_t)count, sizeof *hosted);
    if (!hosted || rank_hooks_create(&capacity))
        return false;
    for (int i = 0; i < count; i++)
        hosted[i].record = RANK_DEBUG_NONE;
    job_ranks = count;
    return true;
}

/* Charm++'s launchers give every process of a job the same words about the launcher, after the process's own number. */
static void name_job(char *name, size_t room) {
    const char *start = getenv("NETSTART");
    char launcher[48] = "";
    if (start && sscanf(start, "%*s %47[^\n]", launcher) == 1)
        snprintf(name, room, "%s", launcher);
    else if (CmiNumNodes() == 1)
        snprintf(name, room, "%x", (unsigned)getpid());
}

void ranks_describe_job(const char *method) {
    struct rank_debug_header *header = rank_hooks_header();
    rank_hooks_begin();
    header->rank_count = (uint32_t)job_ranks;
    header->process_index = (uint32_t)CmiMyNode();
    header->process_count = (uint32_t)CmiNumNodes();
    gethostname(header->node, sizeof header->node - 1);
    name_job(header->job_id, sizeof header->job_id);
    snprintf(header->method, sizeof header->method, "%s", method);
    snprintf(header->runtime, sizeof header->runtime, "AMPI");
    images_describe();
    currents_prepare((uint32_t)CmiMyNodeSize(), (uint32_t)CmiNodeFirst(CmiMyNode()));
    rank_hooks_commit();
}

void ranks_observe(void) {
    currents_observe((uint32_t)CmiMyRank(), (uintptr_t)CthSelf());
}

static void know_entry(uint64_t entry) {
    struct rank_debug_header *header = rank_hooks_header();
    if (header->entry_function || !entry)
        return;
    header->entry_function = entry;
    header->entry_function_size = function_size(entry);
    describe_contexts();
}

/* The rank's thread pointer, where the thread itself has it; 0 without one. */
static uint64_t thread_pointer(CthThread thread, const struct thread_form *form) {
    uint64_t size, alignment;
    if (!images_tls_block(&size, &alignment))
        return 0;
    uint64_t end = form->stack_start + form->stack_size;
    uint64_t pointer = (end + alignment - 1) / alignment * alignment + size;
    return thread_has_word(thread, form, pointer) ? pointer : 0;
}

/* Everything that a rank's thread and its share tell; between begin and commit. */
static void describe(int rank, uint64_t entry) {
    struct hosted *one = &hosted[rank];
    CmiIsomallocRegion used = CmiIsomallocContextGetUsedExtent((CmiIsomallocContext){one->share});
    uint64_t start = (uintptr_t)used.start, end = (uintptr_t)used.end;
    struct thread_form form = thread_form_of(one->thread, (uintptr_t)CthPointer(one->thread, 0), entry);
    struct share_form share = share_form_of(one->share, start, end);
    one->stack_start = form.stack_start;
    one->stack_size = form.stack_size;
    uint64_t pointer = thread_pointer(one->thread, &form);
    uint64_t stack_end = form.stack_start + form.stack_size;
    uint64_t behind = pointer ? pointer : stack_end;
    struct rank_debug_rank record = {
        .rank = rank,
        .state = RANK_DEBUG_STATE_STARTING,
        .processing_element = (uint32_t)CmiMyPe(),
        .range_start = share.start,
        .range_size = share.size,
        .stack_start = form.stack_size ? form.stack_start : 0,
        .stack_size = form.stack_size,
        .heap_start = behind >= start && behind <= end ? images_end(&one->copies, behind, end) : 0,
        .wait_peer = -2,
        .wait_tag = -2,
    };
    struct rank_debug_kept kept = {
        .rank = rank,
        .context = form.context,
        .thread = (uintptr_t)one->thread,
        .range_end = share.used_end,
    };
    know_entry(form.entry);
    if (one->record == RANK_DEBUG_NONE) {
        one->record = rank_hooks_add_rank(&record);
        one->kept = rank_hooks_add_kept(&kept);
        images_add(rank, &one->copies, pointer);
    } else {
        *rank_hooks_rank(one->record) = record;
        *rank_hooks_kept(one->kept) = kept;
    }
}

static void set_state(int rank, uint32_t state) {
    rank_hooks_begin();
    rank_hooks_rank(hosted[rank].record)->state = state;
    rank_hooks_commit();
}

/* Where a rank goes, Charm++ has not said when it packs it. */
static void tell(uint32_t kind, int rank) {
    rank_hooks_event(kind, rank_hooks_rank(hosted[rank].record), RANK_DEBUG_NONE);
}

void rank_created(int rank, CthThread thread, CmiIsomallocContext share, uint64_t entry) {
    if (!hosted || rank < 0 || rank >= job_ranks || !share.opaque)
        return;
    struct hosted *one = &hosted[rank];
    CmiIsomallocRegion used = CmiIsomallocContextGetUsedExtent(share);
    one->thread = thread;
    one->share = share.opaque;
    one->copies = images_of(rank, (uintptr_t)used.start, (uintptr_t)used.end);
    one->presence = HERE;
    unwinding_register(&one->copies);
    rank_hooks_begin();
    describe(rank, entry);
    rank_hooks_rank(one->record)->state = RANK_DEBUG_STATE_READY;
    rank_hooks_commit();
    ranks_observe();
    tell(RANK_DEBUG_EVENT_CREATED, rank);
}

static int rank_of_thread(CthThread thread) {
    for (int i = 0; i < job_ranks; i++)
        if (hosted[i].thread == thread && (hosted[i].presence == HERE || hosted[i].presence == COMING))
            return i;
    return -1;
}

int rank_packing(CthThread thread) {
    int rank = rank_of_thread(thread);
    if (rank < 0)
        return -1;
    tell(RANK_DEBUG_EVENT_BEFORE_PACK, rank);
    unwinding_forget(&hosted[rank].copies);
    return rank;
}

void rank_packed(int rank, bool has_left) {
    if (has_left) {
        hosted[rank].presence = GONE;
        hosted[rank].thread = NULL;
        set_state(rank, RANK_DEBUG_STATE_MIGRATED_OUT);
        return;
    }
    unwinding_register(&hosted[rank].copies);
    tell(RANK_DEBUG_EVENT_AFTER_UNPACK, rank);
}

/* Shares are equal but for rounding to whole slots, which are few against a share: the nearest rank is the right one.
 */
static int rank_of_share(uint64_t start) {
    uint64_t span = IsoRegion.end - IsoRegion.start, shares = (uint64_t)job_ranks + 1;
    if (start < IsoRegion.start || start >= IsoRegion.end)
        return -1;
    double share = (double)span / (double)shares;
    int rank = (int)((double)(start - IsoRegion.start) / share + 0.5);
    return rank < job_ranks ? rank : -1;
}

void rank_unpacked(CthThread thread) {
    CmiIsomallocContext share = CmiIsomallocGetThreadContext(thread);
    if (!hosted || !share.opaque)
        return;
    int rank = rank_of_share((uintptr_t)CmiIsomallocContextGetUsedExtent(share).start);
    if (rank < 0)
        return;
    hosted[rank].thread = thread;
    hosted[rank].share = share.opaque;
    hosted[rank].presence = COMING;
    ranks_observe();
}

void rank_memory_here(CmiIsomallocContext share) {
    ranks_observe();
    for (int rank = 0; rank < job_ranks; rank++) {
        struct hosted *one = &hosted[rank];
        if (one->share != share.opaque || one->presence != COMING)
            continue;
        CmiIsomallocRegion used = CmiIsomallocContextGetUsedExtent(share);
        one->copies = images_of(rank, (uintptr_t)used.start, (uintptr_t)used.end);
        one->presence = HERE;
        unwinding_register(&one->copies);
        rank_hooks_begin();
        describe(rank, 0);
        rank_hooks_rank(one->record)->state = RANK_DEBUG_STATE_READY;
        rank_hooks_commit();
        tell(RANK_DEBUG_EVENT_AFTER_UNPACK, rank);
    }
}

void rank_freed(CthThread thread) {
    int rank = rank_of_thread(thread);
    if (rank < 0 || hosted[rank].record == RANK_DEBUG_NONE)
        return;
    unwinding_forget(&hosted[rank].copies);
    hosted[rank].presence = GONE;
    set_state(rank, RANK_DEBUG_STATE_MIGRATED_OUT);
}

void rank_exited(int rank) {
    if (!hosted || rank < 0 || rank >= job_ranks || hosted[rank].presence != HERE)
        return;
    set_state(rank, RANK_DEBUG_STATE_EXITED);
    tell(RANK_DEBUG_EVENT_EXITED, rank);
}

/*
 * Whose stack the pointer is on.  Below all of it, the stack of the thread that Charm++ says it runs has overflowed:
 * other ranks' shares lie there.
 */
int rank_running(uint64_t stack_pointer) {
    CthThread thread = CthSelf();
    int overflowed = -1;
    for (int i = 0; i < job_ranks; i++) {
        if (hosted[i].presence != HERE)
            continue;
        if (stack_pointer - hosted[i].stack_start < hosted[i].stack_size)
            return i;
        if (hosted[i].thread == thread && hosted[i].stack_start - stack_pointer < hosted[i].stack_size)
            overflowed = i;
    }
    return overflowed;
}

uint64_t rank_original(uint64_t address) {
    const struct object_list *originals = images_originals();
    for (int rank = 0; rank < job_ranks; rank++)
        for (int i = 0; hosted[rank].presence == HERE && i < originals->count; i++) {
            uint64_t base = hosted[rank].copies.bases[i];
            if (base && address - base < originals->items[i].span)
                return originals->items[i].base + (address - base);
        }
    return address;
}
