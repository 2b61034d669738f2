/*
 * sent_counts.c: a hash table of receivers for each sender, in memory of the process.
 *
 * A reader may look at any time, so a table that is full stays as it is, and a copy with more room takes its place;
 * all that were replaced have less room together than the last.  Only the sender's kernel thread writes.
 */
#include "mpi/objects/sent_counts.h"
#include "mpi/objects/library_memory.h"
#include "rank_hooks.h"

#include <string.h>

enum { FIRST_COUNT = 8 }; /* a power of two */

struct sent_counts {
    uint64_t used;
    struct rank_debug_sent_table table;
    struct rank_debug_sent entries[];
};

static struct sent_counts *counts_of(const struct rank_debug_load *load) {
    return load->sent ? (struct sent_counts *)(uintptr_t)(load->sent - offsetof(struct sent_counts, table)) : NULL;
}

/* The receiver's entry, or the empty one where it belongs; there always is one of them. */
static struct rank_debug_sent *entry_of(struct sent_counts *counts, uint32_t receiver) {
    uint32_t last = counts->table.count - 1, slot = receiver & last;
    while (counts->entries[slot].receiver && counts->entries[slot].receiver != receiver + 1)
        slot = (slot + 1) & last;
    return &counts->entries[slot];
}

static struct sent_counts *make_room(struct rank_debug_load *load, const struct sent_counts *before) {
    uint32_t count = before ? 2 * before->table.count : FIRST_COUNT;
    struct sent_counts *counts = host_allocate_message(sizeof *counts + count * sizeof *counts->entries);
    counts->table = (struct rank_debug_sent_table){count, sizeof *counts->entries};
    for (uint32_t i = 0; before && i < before->table.count; i++)
        if (before->entries[i].receiver)
            *entry_of(counts, before->entries[i].receiver - 1) = before->entries[i];
    counts->used = before ? before->used : 0;
    __atomic_store_n(&load->sent, (uint64_t)(uintptr_t)&counts->table, __ATOMIC_RELEASE);
    return counts;
}

static struct rank_debug_sent *new_entry(struct rank_debug_load *load, uint32_t receiver) {
    struct sent_counts *counts = counts_of(load);
    if (!counts || counts->used >= counts->table.count / 2)
        counts = make_room(load, counts);
    counts->used++;
    struct rank_debug_sent *entry = entry_of(counts, receiver);
    __atomic_store_n(&entry->receiver, receiver + 1, __ATOMIC_RELEASE);
    return entry;
}

void sent_counts_add(int sender, int receiver, enum channel channel, size_t bytes) {
    struct rank_debug_load *load = rank_hooks_load((uint32_t)sender);
    if (!load)
        return;
    struct sent_counts *counts = counts_of(load);
    struct rank_debug_sent *entry = counts ? entry_of(counts, (uint32_t)receiver) : NULL;
    if (!entry || !entry->receiver)
        entry = new_entry(load, (uint32_t)receiver);
    if (channel == CHANNEL_USER) {
        entry->messages++;
        entry->bytes += bytes;
    } else {
        entry->collective_messages++;
        entry->collective_bytes += bytes;
    }
}
