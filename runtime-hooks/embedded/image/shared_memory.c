/*
 * shared_memory.c: mappings that a fork does not copy, and locks that work across processes.
 */
#define _GNU_SOURCE
#include "image/shared_memory.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK ((size_t)64 << 10) /* one mapping serves many small requests: the kernel limits how many there are */

static bool is_on;
static char *chunk;
static size_t chunk_left;

void shared_memory_begin(void) {
    is_on = true;
}

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *shared_memory_map(size_t size) {
    size = (size + 15) & ~(size_t)15;
    if (size > CHUNK)
        return map(size);
    if (size > chunk_left) {
        if (!(chunk = map(CHUNK)))
            return NULL;
        chunk_left = CHUNK;
    }
    void *memory = chunk;
    chunk += size;
    chunk_left -= size;
    return memory;
}

/* The pages stay where they are, with what they hold; only what becomes of them at a fork changes. */
static int make_shared(uint64_t start, uint64_t size) {
    void *memory = map(size);
    if (!memory)
        return errno;
    memcpy(memory, (const void *)start, size);
    return mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED ? errno : 0;
}

/* All of this library's data segment but what the loader has made read-only, which no longer changes. */
static int share_object(struct dl_phdr_info *info, size_t size, void *result) {
    (void)size;
    extern ElfW(Dyn) _DYNAMIC[];
    uint64_t first = 0, end = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool mine = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        mine = mine || (header->p_type == PT_DYNAMIC && start == (uintptr_t)_DYNAMIC);
        if (header->p_type == PT_LOAD && header->p_flags & PF_W) {
            first = first ? first : start & ~(page - 1);
            end = (start + header->p_memsz + page - 1) & ~(page - 1);
        }
    }
    for (int i = 0; mine && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            first = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz) & ~(page - 1);
    if (mine && end > first)
        *(int *)result = make_shared(first, end - first);
    return mine;
}

int shared_memory_variables(void) {
    int error = ENOENT;
    dl_iterate_phdr(share_object, &error);
    return error;
}

static int sharing(void) {
    return is_on ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
}

void shared_lock_init(pthread_mutex_t *lock) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, sharing());
    pthread_mutex_init(lock, &how);
}

void shared_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setpshared(&how, sharing());
    pthread_cond_init(condition, &how);
}

void shared_barrier_init(pthread_barrier_t *barrier, unsigned int count) {
    pthread_barrierattr_t how;
    pthread_barrierattr_init(&how);
    pthread_barrierattr_setpshared(&how, sharing());
    pthread_barrier_init(barrier, &how, count);
}
