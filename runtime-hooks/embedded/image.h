/*
 * image.h: one rank's image: guard page, stack, what its method gives it, heap, in this order in its range.
 *
 * Takes the originals and a method of privatization; knows nothing of MPI or of how ranks are scheduled.
 */
#ifndef RANK_IMAGE_H
#define RANK_IMAGE_H

#include "heap.h"
#include "rewrite.h"

#define PAGE UINT64_C(4096)

static inline uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

struct image {
    uint64_t *copies; /* by object index: base of the copy, 0 where the rank uses the original */
    uint64_t stack_start, stack_size;
    struct rank_heap *heap;
    unsigned long
        *modules;   /* by object index: the loader's number of the copy, for its thread-local variables; or NULL */
    uint64_t token; /* what the method is told when the rank runs (method.h) */
    void *own;      /* the method's, for this rank */
};

/* How every image of a job is made. */
struct image_plan {
    const struct method *method;
    struct originals originals;
    struct rewrite_list rewrites;
    enum rewrite_mode mode;
    uint64_t main; /* of the program, in the original */
    uint64_t stack_size;
    int ranks, elements;
    bool share_code; /* what no rank writes is mapped from the file, not copied */
    struct rank_heap *constructor_heap;
    FILE *log;
};

/* Makes the stack, the private globals and the heap of a rank; 0, or an errno value. */
int image_make(struct image *image, const struct image_plan *plan, int rank);

/* Where the rank's main is. */
uint64_t image_main(const struct image *image, const struct image_plan *plan);

/* Runs what the copies' objects have in DT_INIT and DT_INIT_ARRAY, or DT_FINI_ARRAY and DT_FINI. */
void image_construct(const struct image *image, const struct originals *originals, int argc, char **argv);
void image_destruct(const struct image *image, const struct originals *originals);

#endif
