/*
 * image.h: one rank's image: guard page, stack, copies, heap, in this order in its range.
 *
 * Takes the originals and the words to rewrite; makes copies as the PIEglobals method does.  Knows nothing of MPI or of
 * how ranks are scheduled.
 */
#ifndef RANK_IMAGE_H
#define RANK_IMAGE_H

#include "heap.h"
#include "rewrite.h"

struct image {
    uint64_t *copies; /* by object index: base of the copy */
    uint64_t stack_start, stack_size;
    struct rank_heap *heap;
};

/* How every image of a job is made. */
struct image_plan {
    struct originals originals;
    struct rewrite_list rewrites;
    enum rewrite_mode mode;
    uint64_t stack_size;
    struct rank_heap *constructor_heap;
    FILE *log;
};

/* Makes the stack and, with `copies`, the private copies and heap of a rank; 0, or an errno value. */
int image_make(struct image *image, const struct image_plan *plan, int rank, bool copies);

/* Runs what the copies' objects have in DT_INIT and DT_INIT_ARRAY, or DT_FINI_ARRAY and DT_FINI. */
void image_construct(const struct image *image, const struct originals *originals, int argc, char **argv);
void image_destruct(const struct image *image, const struct originals *originals);

#endif
