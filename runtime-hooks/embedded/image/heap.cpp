/*
 * heap.cpp: heaps in ranks' ranges, by Boost.Interprocess.
 *
 * The managed memory holds the allocator's state; what stands here (limits, lock, record) is the process's own and is
 * rebuilt where an image arrives.
 */
#define NDEBUG /* Boost's assertions would allocate */
#include "image/heap.h"
#include "image/ranges.h"
#include "image/shared_memory.h"
#include "machine/machine.h"

/* Newer Boosts put scripts for GDB into all that include them, and GDB warns that it does not run them. */
#define BOOST_ALL_NO_EMBEDDED_GDB_SCRIPTS
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace {

using Algorithm = boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family>;

constexpr uint64_t step = 64 << 10; /* a heap grows by at least this much */
constexpr uint64_t page = MACHINE_PAGE;

/*
 * Boost keeps a word before each block (SizeHolder in rbtree_best_fit.hpp): the highest bit says that the block is
 * allocated, the next one that the block before it is.  heap_create() tries out whether this Boost does so.
 */
constexpr uint64_t allocated_bit = uint64_t{1} << 63, previous_allocated_bit = uint64_t{1} << 62;
bool bits_are_known;

std::vector<rank_heap *> heaps; /* by range */
rank_heap *recorded_heap;
std::vector<rank_debug_block> recorded_blocks;

} // namespace

struct rank_heap {
    uint64_t start;
    uint64_t size;
    uint64_t limit;
    Algorithm *algorithm;
    rank_debug_rank *record;
    pthread_mutex_t lock; /* a rank of another processing element may free a block of ours */
};

__thread rank_heap *heap_here;

namespace {

class Locked {
  public:
    explicit Locked(pthread_mutex_t &mutex) : held(mutex) {
        pthread_mutex_lock(&held);
    }
    ~Locked() {
        pthread_mutex_unlock(&held);
    }

  private:
    pthread_mutex_t &held;
};

void publish(rank_heap *heap) {
    if (!heap->record)
        return;
    heap->record->heap_size = heap->size;
    heap->record->heap_used = heap->algorithm->get_size() - heap->algorithm->get_free_memory();
}

rank_heap *adopt(uint32_t range, uint64_t start, uint64_t size, uint64_t limit) {
    if (start + size > limit) {
        errno = ENOMEM;
        return nullptr;
    }
    int opened = range_is_shared(range) ? range_open(start, limit - start) : 0;
    if (int error = opened ? opened : range_commit(start, size)) {
        errno = error;
        return nullptr;
    }
    auto *heap = static_cast<rank_heap *>(range_is_shared(range) ? shared_memory_map(sizeof(rank_heap))
                                                                 : std::calloc(1, sizeof(rank_heap)));
    if (!heap)
        return nullptr;
    heap->start = start, heap->size = size, heap->limit = limit;
    shared_lock_init(&heap->lock);
    if (heaps.size() <= range)
        heaps.resize(range + 1);
    heaps[range] = heap;
    return heap;
}

uint64_t *word_before(const void *block) {
    return static_cast<uint64_t *>(const_cast<void *>(block)) - 1;
}

/* The word after a block is the one before the next: there the bit of the previous block is this one's. */
bool is_allocated(const rank_heap *heap, const void *block) {
    auto address = reinterpret_cast<uint64_t>(block);
    uint64_t end = heap->start + heap->size;
    if (address % 16 || address < heap->start + sizeof(Algorithm) || address >= end)
        return false;
    if (!(*word_before(block) & allocated_bit))
        return false;
    uint64_t size = heap->algorithm->size(block);
    if (size % 8 || size > end - address - 8)
        return false;
    return *reinterpret_cast<const uint64_t *>(address + size) & previous_allocated_bit;
}

bool has(const rank_heap *heap, const void *block) {
    return !bits_are_known || is_allocated(heap, block);
}

/* Where Boost merges a block with a free one before it, the block's own word is left as it was. */
void deallocate(rank_heap *heap, void *block) {
    heap->algorithm->deallocate(block);
    if (bits_are_known)
        *word_before(block) &= ~allocated_bit;
}

void try_bits(rank_heap *heap) {
    void *block = heap->algorithm->allocate(1);
    bits_are_known = block && is_allocated(heap, block);
    heap->algorithm->deallocate(block);
    bits_are_known = bits_are_known && !is_allocated(heap, block);
}

bool grow(rank_heap *heap, uint64_t wanted) {
    uint64_t more = std::max(step, (wanted + wanted / 8 + page - 1) & ~(page - 1));
    more = std::min(more, heap->limit - heap->start - heap->size);
    if (more < wanted + page || range_commit(heap->start + heap->size, more))
        return false;
    heap->algorithm->grow(more);
    heap->size += more;
    return true;
}

/* Copies what is not zero: pages that were never written stay without memory. */
void copy_image(char *to, const char *from, uint64_t size) {
    static const char zero[page] = {};
    for (uint64_t at = 0; at < size; at += page) {
        uint64_t part = std::min(page, size - at);
        if (std::memcmp(from + at, zero, part) != 0)
            std::memcpy(to + at, from + at, part);
    }
}

auto recorded_at(const void *block) {
    auto address = reinterpret_cast<uint64_t>(block);
    return std::lower_bound(recorded_blocks.begin(), recorded_blocks.end(), address,
                            [](const rank_debug_block &one, uint64_t key) { return one.address < key; });
}

/* The list itself must not be allocated from the heap that it describes. */
class FromLibc {
  public:
    FromLibc() : saved(heap_here) {
        heap_here = nullptr;
    }
    ~FromLibc() {
        heap_here = saved;
    }

  private:
    rank_heap *saved;
};

void note_allocated(rank_heap *heap, void *block, size_t size) {
    if (heap != recorded_heap || !block)
        return;
    FromLibc guard;
    recorded_blocks.insert(recorded_at(block), {reinterpret_cast<uint64_t>(block), size});
}

void note_released(rank_heap *heap, const void *block) {
    if (heap != recorded_heap)
        return;
    auto recorded = recorded_at(block);
    if (recorded != recorded_blocks.end() && recorded->address == reinterpret_cast<uint64_t>(block))
        recorded_blocks.erase(recorded);
}

} // namespace

extern "C" {

rank_heap *heap_create(uint32_t range, uint64_t start, uint64_t limit) {
    rank_heap *heap = adopt(range, start, step, limit);
    if (!heap)
        return nullptr;
    heap->algorithm = new (reinterpret_cast<void *>(start)) Algorithm(step, 0);
    try_bits(heap);
    return heap;
}

rank_heap *heap_replay(uint32_t range, uint64_t start, uint64_t limit, const rank_heap *original) {
    rank_heap *heap = adopt(range, start, original->size, limit);
    if (heap) {
        copy_image(reinterpret_cast<char *>(start), reinterpret_cast<const char *>(original->start), original->size);
        heap->algorithm = reinterpret_cast<Algorithm *>(start);
    }
    return heap;
}

rank_heap *heap_arrive(uint32_t range, uint64_t start, uint64_t size, uint64_t limit) {
    rank_heap *heap = adopt(range, start, size, limit);
    if (heap)
        heap->algorithm = reinterpret_cast<Algorithm *>(start);
    return heap;
}

void heap_leave(uint32_t range) {
    std::free(heaps[range]);
    heaps[range] = nullptr;
}

uint64_t heap_start(const rank_heap *heap) {
    return heap->start;
}

uint64_t heap_size(const rank_heap *heap) {
    return heap->size;
}

void heap_publish(rank_heap *heap, rank_debug_rank *record) {
    heap->record = record;
    publish(heap);
}

rank_heap *heap_of(const void *address) {
    int64_t range = range_of(address);
    return range < 0 || static_cast<size_t>(range) >= heaps.size() ? nullptr : heaps[static_cast<size_t>(range)];
}

void *heap_allocate(rank_heap *heap, size_t size, size_t alignment) {
    Locked guard(heap->lock);
    if (size > heap->limit - heap->start)
        return nullptr;
    size_t wanted = std::max<size_t>(size, 1);
    auto attempt = [&] {
        return alignment <= 16 ? heap->algorithm->allocate(wanted)
                               : heap->algorithm->allocate_aligned(wanted, alignment);
    };
    void *block = attempt();
    if (!block && grow(heap, wanted + alignment))
        block = attempt();
    note_allocated(heap, block, wanted);
    publish(heap);
    return block;
}

bool heap_has(rank_heap *heap, const void *block) {
    Locked guard(heap->lock);
    return has(heap, block);
}

bool heap_release(rank_heap *heap, void *block) {
    Locked guard(heap->lock);
    if (!has(heap, block))
        return false;
    note_released(heap, block);
    deallocate(heap, block);
    publish(heap);
    return true;
}

size_t heap_block_size(rank_heap *heap, const void *block) {
    return heap->algorithm->size(block);
}

void heap_record(rank_heap *heap, bool on) {
    recorded_heap = on ? heap : nullptr;
}

size_t heap_recorded(const rank_debug_block **blocks) {
    *blocks = recorded_blocks.data();
    return recorded_blocks.size();
}
}
