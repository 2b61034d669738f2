/*
 * image.h: one rank's image: guard page, stack, what its method gives it, heap, in this order in its range.
 *
 * Takes the originals and a method of privatization; knows nothing of MPI or of how ranks are scheduled.
 */
#ifndef RANK_IMAGE_H
#define RANK_IMAGE_H

#include "image/heap.h"
#include "image/rewrite.h"
#include "machine/machine.h"

#define PAGE MACHINE_PAGE

static inline uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

struct image {
    uint64_t *copies; /* by object index: base of the copy, 0 where the rank uses the original */
    uint64_t stack_start, stack_size;
    struct rank_heap *heap;
    unsigned long
        *modules;   /* by object index: the loader's number of the copy, for its thread-local variables; or NULL */
    uint64_t token; /* what the method gets when the rank runs (method.h) */
    void *own;      /* the method's, for this rank */
    struct exit_function *exit_functions;       /* what the rank has registered (exit_functions.h), in its heap */
    const struct exit_function *originals_left; /* of what the originals registered: not called yet */
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
    int residents;   /* ranks that begin in one process, at most */
    bool share_code; /* what no rank writes is mapped from the file, not copied */
    struct rank_heap *constructor_heap;
    const unsigned char *const *pristine; /* by object: its writable segments as they were loaded; NULL: as they are */
    FILE *log;
};

/* Makes the stack, the private globals and the heap of a rank; 0, or an errno value. */
int image_make(struct image *image, const struct image_plan *plan, int rank);

/* The same place for a rank that comes from elsewhere, without its content; heap included, of `heap_size` bytes. */
int image_place(struct image *image, const struct image_plan *plan, int rank, uint64_t heap_size);
/* What it would be had it not run yet, for pages that did not come with it: copies filled, the rest zero. */
int image_fill(struct image *image, const struct image_plan *plan, int rank);
/* Whether [address, address+size) in a copy of object `object` is still what image_fill() would make it; the bytes of
 * one page at most. */
bool image_is_first_content(const struct image *image, const struct image_plan *plan, int object, uint64_t address,
                            uint64_t size);
/* Once the content is there: protects it. */
int image_settle(struct image *image, const struct image_plan *plan);
/* Before and after the memory of a rank that leaves is sent. */
void image_unsettle(const struct image *image, const struct image_plan *plan);
void image_forget(struct image *image, int rank);

/* A run of a rank's memory that moves with it. */
struct image_piece {
    uint64_t address, size;
    int object; /* index of the copy's object, -1: none */
};

/* Calls `each` for the stack, the copies' segments and the heap: all that moves, in ascending order. */
void image_pieces(const struct image *image, const struct image_plan *plan,
                  void (*each)(void *context, const struct image_piece *piece), void *context);

/* Where the rank's main is. */
uint64_t image_main(const struct image *image, const struct image_plan *plan);

/* Runs what the copies' objects have in DT_INIT and DT_INIT_ARRAY, or DT_FINI_ARRAY and DT_FINI; or an original has. */
void image_construct(const struct image *image, const struct originals *originals, int argc, char **argv);
void image_destruct(const struct image *image, const struct originals *originals);
void original_destruct(const struct object *object);

#endif
