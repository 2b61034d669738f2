/*
 * rank_hooks.h: what a runtime calls to fill the registry of rank_debug.h.
 *
 * One registry per process.  Structural calls stand between begin and commit, which one thread at a time passes; the
 * [live] fields of a rank's record are written by its scheduler directly, through the pointer that rank_hooks_rank()
 * returns and that stays valid for life.  It knows nothing of how ranks are made, privatized or switched.
 */
#ifndef RANK_HOOKS_H
#define RANK_HOOKS_H

#include "rank_debug.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A ring of so many events is a long past for 800 kB. */
#define RANK_HOOKS_EVENTS 16384u

/* How many records of each table the process can ever need; memory is taken only as it is used. */
struct rank_hooks_capacity {
    uint32_t strings; /* bytes */
    uint32_t objects;
    uint32_t segments;
    uint32_t ranks;
    uint32_t copies;
    uint32_t tls_blocks;
    uint32_t redirections;
    uint32_t roots;
    uint32_t context_registers;
    uint32_t calls;
    uint32_t blocks;
    uint32_t kept;
    uint32_t processing_elements;
    uint32_t events;        /* the newest so many are kept */
    uint32_t loads;         /* one for each rank of the job, from the start */
    uint32_t element_loads; /* likewise for each processing element */
};

/*
 * Creates the mapping and an empty registry, and publishes it in rank_debug_registry.
 * Returns 0, or an errno value (the memory or the file could not be had; EEXIST: there is one already).
 */
int rank_hooks_create(const struct rank_hooks_capacity *capacity);

/* Opens and closes a change: generation becomes odd, then even.  Changes do not nest. */
void rank_hooks_begin(void);
void rank_hooks_commit(void);

/* The header, writable between begin and commit. */
struct rank_debug_header *rank_hooks_header(void);

/* Copies a string into the registry and returns its offset, or RANK_DEBUG_NONE when the table is full. */
uint32_t rank_hooks_string(const char *text);

/*
 * Each appends a copy of the record (between begin and commit) and returns its index, or RANK_DEBUG_NONE when the table
 * is full.
 */
uint32_t rank_hooks_add_object(const struct rank_debug_object *object, const struct rank_debug_segment *segments);
/*
 * Likewise for a file that the dynamic loader has loaded, by its program headers in memory: segments, build-id, path,
 * TLS.  `inside`: any address in the file, such as that of its main function or its link_map's l_ld.  `flags`:
 * RANK_DEBUG_OBJECT_*.  RANK_DEBUG_NONE also if no loaded file has the address.  tls_offset stays 0.
 */
uint32_t rank_hooks_add_program(const void *inside, uint32_t flags);
uint32_t rank_hooks_add_rank(const struct rank_debug_rank *rank); /* one that never moved is in this process */
uint32_t rank_hooks_add_copy(const struct rank_debug_copy *copy);
uint32_t rank_hooks_add_tls_block(const struct rank_debug_tls_block *block);
uint32_t rank_hooks_add_redirection(const struct rank_debug_redirection *redirection);
uint32_t rank_hooks_add_root(const struct rank_debug_root *root);
uint32_t rank_hooks_add_context_register(const struct rank_debug_register *rule);
uint32_t rank_hooks_add_call(const char *name); /* from 1 on: 0, no call, is there from the start */
uint32_t rank_hooks_add_block(const struct rank_debug_block *block);
uint32_t rank_hooks_add_kept(const struct rank_debug_kept *kept);
uint32_t rank_hooks_add_processing_element(const struct rank_debug_processing_element *element);

/* Replaces the record of the same rank, object and kind; appends it if there is none. */
uint32_t rank_hooks_set_tls_block(const struct rank_debug_tls_block *block);

/*
 * Tells what happens to a rank, or (NULL) to all: enters it in the ring of events, and calls rank_debug_event().
 * `other_process`: where the rank goes or comes from, RANK_DEBUG_NONE if that is not known or it is not a migration.
 * Not between begin and commit.
 */
void rank_hooks_event(uint32_t kind, const struct rank_debug_rank *rank, uint32_t other_process);

/* The record at an index of its table: valid for the life of the process. */
struct rank_debug_rank *rank_hooks_rank(uint32_t index);
struct rank_debug_kept *rank_hooks_kept(uint32_t index);
struct rank_debug_processing_element *rank_hooks_processing_element(uint32_t index);

/* Where to count, for life: by rank, and by processing element; NULL beyond the capacity. */
struct rank_debug_load *rank_hooks_load(uint32_t rank);
struct rank_debug_element_load *rank_hooks_element_load(uint32_t element);

#ifdef __cplusplus
}
#endif
#endif
