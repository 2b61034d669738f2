/*
 * ranges.c: reserves the ranks' address ranges, and commits parts of them.
 *
 * What is reserved but not committed can't be touched, costs no memory and is left out of core dumps.
 */
#define _GNU_SOURCE
#include "image/ranges.h"
#include "machine/machine.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__ /* has shadow memory for few places only; this one is a part of the libraries' */
#define FIRST_RANGE UINT64_C(0x7ea000000000)
#else
#define FIRST_RANGE MACHINE_FIRST_RANGE
#endif

static uint64_t ranges_end;
static uint64_t one_range;
static bool is_shared;
static uint32_t private_range;
static bool are_mobile;

static int reserve_over(uint64_t start, uint64_t total, int flags) {
    void *place = (void *)start;
    void *mapped = mmap(place, total, PROT_NONE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return errno;
    if (mapped != place) { /* a kernel older than MAP_FIXED_NOREPLACE takes the address for a wish */
        munmap(mapped, total);
        return EEXIST;
    }
    madvise(mapped, total, MADV_DONTDUMP);
    return 0;
}

static int reserve(uint64_t start, uint64_t total, int sharing) {
    return reserve_over(start, total, sharing | MAP_FIXED_NOREPLACE);
}

uint64_t range_start(uint32_t index) {
    return FIRST_RANGE + index * one_range;
}

int ranges_reserve(uint32_t count, uint64_t size, bool shared) {
    one_range = size;
    is_shared = shared;
    private_range = count;
    ranges_end = FIRST_RANGE + (count + UINT64_C(2)) * size;
    if (!shared)
        return reserve(FIRST_RANGE, ranges_end - FIRST_RANGE, MAP_PRIVATE);
    int error = reserve(range_start(0), count * size, MAP_SHARED);
    if (!error)
        error = reserve(range_start(count), size, MAP_PRIVATE);
    return error ? error : reserve(range_start(count + 1), size, MAP_SHARED);
}

uint64_t range_size(void) {
    return one_range;
}

bool range_is_shared(uint32_t index) {
    return is_shared && index != private_range;
}

int64_t range_of(const void *address) {
    uint64_t at = (uintptr_t)address;
    return at < FIRST_RANGE || at >= ranges_end ? -1 : (int64_t)((at - FIRST_RANGE) / one_range);
}

void ranges_set_mobile(void) {
    are_mobile = true;
}

bool ranges_are_mobile(void) {
    return are_mobile;
}

void range_release(uint32_t index) {
    reserve_over(range_start(index), one_range, MAP_FIXED | MAP_PRIVATE);
}

static uint64_t page_of(uint64_t address) {
    return address & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static uint64_t pages_of(uint64_t start, uint64_t size) {
    return page_of(start + size + (uint64_t)sysconf(_SC_PAGESIZE) - 1) - page_of(start);
}

int range_open(uint64_t start, uint64_t size) {
    return mprotect((void *)page_of(start), pages_of(start, size), PROT_READ | PROT_WRITE) ? errno : 0;
}

int range_commit(uint64_t start, uint64_t size) {
    int error = range_open(start, size);
    if (!error)
        madvise((void *)page_of(start), pages_of(start, size), MADV_DODUMP);
    return error;
}
