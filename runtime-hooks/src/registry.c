/*
 * registry.c: the registry of rank_debug.h, in a memfd mapping of its own.
 *
 * Takes records from a runtime (rank_hooks.h) and lays them out for readers.  It never reads them back, never frees,
 * and knows nothing of how ranks are made.
 */
#define _GNU_SOURCE
#include "rank_hooks.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const struct rank_debug_header *rank_debug_registry;

static struct rank_debug_header *registry;
static struct rank_hooks_capacity room;
static pthread_mutex_t changing; /* by a process that shares this memory, maybe */

/* Not inlined and not empty to the compiler, so that a debugger's breakpoint on it is always met. */
__attribute__((noinline, noclone)) void rank_debug_event(uint32_t kind, int32_t rank) {
    __asm__ volatile("" : : "r"(kind), "r"(rank) : "memory");
}

/* The ELF header of the file that this is linked into; linkers define the name. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* Reserves `count` records for a table after what is taken so far. */
static void lay_out(struct rank_debug_table *table, uint64_t base, uint64_t *taken, uint32_t count, uint32_t stride) {
    *taken = (*taken + 63) & ~UINT64_C(63);
    table->address = base + *taken;
    table->count = 0;
    table->stride = stride;
    *taken += (uint64_t)count * stride;
}

static uint64_t lay_out_all(struct rank_debug_header *header, uint64_t base,
                            const struct rank_hooks_capacity *capacity) {
    uint64_t taken = sizeof *header;
    lay_out(&header->ranks, base, &taken, capacity->ranks, sizeof(struct rank_debug_rank));
    lay_out(&header->objects, base, &taken, capacity->objects, sizeof(struct rank_debug_object));
    lay_out(&header->segments, base, &taken, capacity->segments, sizeof(struct rank_debug_segment));
    lay_out(&header->copies, base, &taken, capacity->copies, sizeof(struct rank_debug_copy));
    lay_out(&header->tls_blocks, base, &taken, capacity->tls_blocks, sizeof(struct rank_debug_tls_block));
    lay_out(&header->redirections, base, &taken, capacity->redirections, sizeof(struct rank_debug_redirection));
    lay_out(&header->roots, base, &taken, capacity->roots, sizeof(struct rank_debug_root));
    lay_out(&header->context_registers, base, &taken, capacity->context_registers, sizeof(struct rank_debug_register));
    lay_out(&header->calls, base, &taken, capacity->calls, sizeof(struct rank_debug_call));
    header->calls.count = capacity->calls > 0; /* "": memory of a memfd is zero */
    lay_out(&header->blocks, base, &taken, capacity->blocks, sizeof(struct rank_debug_block));
    lay_out(&header->kept, base, &taken, capacity->kept, sizeof(struct rank_debug_kept));
    lay_out(&header->processing_elements, base, &taken, capacity->processing_elements,
            sizeof(struct rank_debug_processing_element));
    lay_out(&header->events, base, &taken, capacity->events, sizeof(struct rank_debug_event_entry));
    header->events.count = capacity->events;
    lay_out(&header->loads, base, &taken, capacity->loads, sizeof(struct rank_debug_load));
    header->loads.count = capacity->loads;
    lay_out(&header->element_loads, base, &taken, capacity->element_loads, sizeof(struct rank_debug_element_load));
    header->element_loads.count = capacity->element_loads;
    lay_out(&header->strings, base, &taken, capacity->strings, 1);
    return taken;
}

static void make_lock(void) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&changing, &how);
}

int rank_hooks_create(const struct rank_hooks_capacity *capacity) {
    if (registry)
        return EEXIST;
    struct rank_debug_header draft = {.magic = RANK_DEBUG_MAGIC};
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t size = (lay_out_all(&draft, 0, capacity) + page - 1) & ~(page - 1);
    int file = memfd_create(RANK_DEBUG_MAPPING_NAME, MFD_CLOEXEC);
    if (file < 0)
        return errno;
    void *memory = MAP_FAILED;
    if (ftruncate(file, (off_t)size) == 0)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory == MAP_FAILED) {
        int error = errno;
        close(file);
        return error;
    }
    lay_out_all(&draft, (uint64_t)(uintptr_t)memory, capacity);
    draft.abi_version = RANK_DEBUG_ABI_VERSION;
    draft.header_size = sizeof draft;
    draft.mapping_address = (uint64_t)(uintptr_t)memory;
    draft.mapping_size = size;
    draft.machine = __ehdr_start.e_machine;
    draft.process_id = (uint32_t)getpid();
    draft.process_count = 1;
    draft.event_function = (uint64_t)(uintptr_t)rank_debug_event;
    make_lock();
    room = *capacity;
    registry = memcpy(memory, &draft, sizeof draft);
    rank_debug_registry = registry;
    return 0;
}

/*
 * The writer's half of a sequence lock: the fences keep the records' plain stores between the two generation stores.
 */
void rank_hooks_begin(void) {
    pthread_mutex_lock(&changing);
    __atomic_store_n(&registry->generation, registry->generation + 1, __ATOMIC_RELAXED);
    atomic_thread_fence(memory_order_release);
}

void rank_hooks_commit(void) {
    __atomic_store_n(&registry->generation, registry->generation + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&changing);
}

struct rank_debug_header *rank_hooks_header(void) {
    return registry;
}

static void *record_at(const struct rank_debug_table *table, uint32_t index) {
    return (void *)(uintptr_t)(table->address + (uint64_t)index * table->stride);
}

static uint32_t append(struct rank_debug_table *table, uint32_t capacity, const void *record) {
    if (table->count >= capacity)
        return RANK_DEBUG_NONE;
    memcpy(record_at(table, table->count), record, table->stride);
    return table->count++;
}

uint32_t rank_hooks_string(const char *text) {
    struct rank_debug_table *table = &registry->strings;
    size_t length = strlen(text) + 1;
    if (length > room.strings - table->count)
        return RANK_DEBUG_NONE;
    uint32_t offset = table->count;
    memcpy(record_at(table, offset), text, length);
    table->count += (uint32_t)length;
    return offset;
}

uint32_t rank_hooks_add_object(const struct rank_debug_object *object, const struct rank_debug_segment *segments) {
    if (object->segment_count > room.segments - registry->segments.count)
        return RANK_DEBUG_NONE;
    struct rank_debug_object placed = *object;
    placed.first_segment = registry->segments.count;
    uint32_t index = append(&registry->objects, room.objects, &placed);
    for (uint32_t i = 0; index != RANK_DEBUG_NONE && i < object->segment_count; i++)
        append(&registry->segments, room.segments, &segments[i]);
    return index;
}

uint32_t rank_hooks_add_rank(const struct rank_debug_rank *rank) {
    struct rank_debug_rank placed = *rank;
    if (placed.moves == 0)
        placed.process = registry->process_index;
    return append(&registry->ranks, room.ranks, &placed);
}

uint32_t rank_hooks_add_copy(const struct rank_debug_copy *copy) {
    return append(&registry->copies, room.copies, copy);
}

uint32_t rank_hooks_add_tls_block(const struct rank_debug_tls_block *block) {
    return append(&registry->tls_blocks, room.tls_blocks, block);
}

uint32_t rank_hooks_set_tls_block(const struct rank_debug_tls_block *block) {
    for (uint32_t i = 0; i < registry->tls_blocks.count; i++) {
        struct rank_debug_tls_block *known = record_at(&registry->tls_blocks, i);
        if (known->rank == block->rank && known->object == block->object && known->kind == block->kind) {
            *known = *block;
            return i;
        }
    }
    return rank_hooks_add_tls_block(block);
}

uint32_t rank_hooks_add_redirection(const struct rank_debug_redirection *redirection) {
    return append(&registry->redirections, room.redirections, redirection);
}

uint32_t rank_hooks_add_root(const struct rank_debug_root *root) {
    return append(&registry->roots, room.roots, root);
}

uint32_t rank_hooks_add_context_register(const struct rank_debug_register *rule) {
    return append(&registry->context_registers, room.context_registers, rule);
}

uint32_t rank_hooks_add_call(const char *name) {
    struct rank_debug_call call = {""};
    strncpy(call.name, name, sizeof call.name - 1);
    return append(&registry->calls, room.calls, &call);
}

uint32_t rank_hooks_add_block(const struct rank_debug_block *block) {
    return append(&registry->blocks, room.blocks, block);
}

uint32_t rank_hooks_add_kept(const struct rank_debug_kept *kept) {
    return append(&registry->kept, room.kept, kept);
}

uint32_t rank_hooks_add_processing_element(const struct rank_debug_processing_element *element) {
    return append(&registry->processing_elements, room.processing_elements, element);
}

struct rank_debug_rank *rank_hooks_rank(uint32_t index) {
    return record_at(&registry->ranks, index);
}

struct rank_debug_kept *rank_hooks_kept(uint32_t index) {
    return record_at(&registry->kept, index);
}

struct rank_debug_processing_element *rank_hooks_processing_element(uint32_t index) {
    return record_at(&registry->processing_elements, index);
}

struct rank_debug_load *rank_hooks_load(uint32_t rank) {
    return rank < room.loads ? record_at(&registry->loads, rank) : NULL;
}

struct rank_debug_element_load *rank_hooks_element_load(uint32_t element) {
    return element < room.element_loads ? record_at(&registry->element_loads, element) : NULL;
}

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/*
 * One writer at a time, so that entries are in the order of their times.  A reader that sees any part of the new entry
 * sees that the old one's number has gone: each store is a release, after the one that takes it away.
 */
static void enter_event(uint32_t kind, const struct rank_debug_rank *rank, uint32_t other_process) {
    pthread_mutex_lock(&changing);
    uint64_t number = registry->events_written + 1;
    struct rank_debug_event_entry *place = record_at(&registry->events, (uint32_t)((number - 1) % room.events));
    uint32_t element = rank ? rank->processing_element : RANK_DEBUG_NONE;
    __atomic_store_n(&place->number, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&place->monotonic, nanoseconds(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
    __atomic_store_n(&place->realtime, nanoseconds(CLOCK_REALTIME), __ATOMIC_RELEASE);
    __atomic_store_n(&place->kind, kind, __ATOMIC_RELEASE);
    __atomic_store_n(&place->rank, rank ? rank->rank : -1, __ATOMIC_RELEASE);
    __atomic_store_n(&place->processing_element, element, __ATOMIC_RELEASE);
    __atomic_store_n(&place->other_process, other_process, __ATOMIC_RELEASE);
    __atomic_store_n(&place->moves, rank ? rank->moves : 0, __ATOMIC_RELEASE);
    __atomic_store_n(&place->number, number, __ATOMIC_RELEASE);
    __atomic_store_n(&registry->events_written, number, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&changing);
}

void rank_hooks_event(uint32_t kind, const struct rank_debug_rank *rank, uint32_t other_process) {
    if (room.events)
        enter_event(kind, rank, other_process);
    rank_debug_event(kind, rank ? rank->rank : -1);
}
