/*
 * image.c: lays out a rank's range: stack, what the method needs, heap.
 */
#define _GNU_SOURCE
#include "image.h"
#include "methods/method.h"
#include "ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int make_heap(struct image *image, const struct image_plan *plan, int rank, uint64_t start, uint64_t limit) {
    const struct method *method = plan->method;
    if (method->shares_heap)
        return 0;
    image->heap = method->byte_copies && plan->mode == REWRITE_SCAN
                      ? heap_replay((uint32_t)rank, start, limit, plan->constructor_heap)
                      : heap_create((uint32_t)rank, start, limit);
    return image->heap ? 0 : errno;
}

int image_make(struct image *image, const struct image_plan *plan, int rank) {
    const struct method *method = plan->method;
    uint64_t start = range_start((uint32_t)rank), limit = start + range_size();
    image->copies = calloc((size_t)plan->originals.objects.count, sizeof *image->copies);
    if (!image->copies)
        return ENOMEM;
    image->stack_start = start + PAGE; /* the page below it stays out of reach: an overflow faults */
    image->stack_size = plan->stack_size;
    uint64_t cursor = image->stack_start + image->stack_size + PAGE;
    if (cursor + (method->room ? method->room(plan) : 0) + 2 * PAGE > limit)
        return ENOMEM;
    int error = range_commit(image->stack_start, image->stack_size);
    if (!error && method->make)
        error = method->make(image, plan, rank, &cursor);
    if (!error)
        error = make_heap(image, plan, rank, align_up(cursor, PAGE), limit);
    if (!error && method->finish)
        error = method->finish(image, plan, rank);
    return error;
}

uint64_t image_main(const struct image *image, const struct image_plan *plan) {
    const struct object *program = &plan->originals.objects.items[0];
    return image->copies[0] ? image->copies[0] + (plan->main - program->base) : plan->main;
}

/* ---- constructors and destructors in the copy ---- */

typedef void initializer(int, char **, char **);
typedef void finalizer(void);

/* Addresses in the dynamic section name the original; what they point to is at the same place in the copy. */
static uint64_t in_copy(const struct object *object, uint64_t copy, uint64_t original) {
    return original ? copy + (original - object->base) : 0;
}

static void construct(const struct object *object, uint64_t copy, int argc, char **argv) {
    uint64_t single = in_copy(object, copy, object_dynamic_address(object, DT_INIT));
    uint64_t array = in_copy(object, copy, object_dynamic_address(object, DT_INIT_ARRAY));
    uint64_t count = object_dynamic_value(object, DT_INIT_ARRAYSZ) / sizeof(uint64_t);
    if (single)
        ((initializer *)single)(argc, argv, environ);
    for (uint64_t i = 0; i < count; i++)
        ((initializer *)((uint64_t *)array)[i])(argc, argv, environ);
}

static void destruct(const struct object *object, uint64_t copy) {
    uint64_t array = in_copy(object, copy, object_dynamic_address(object, DT_FINI_ARRAY));
    uint64_t count = object_dynamic_value(object, DT_FINI_ARRAYSZ) / sizeof(uint64_t);
    while (array && count--)
        ((finalizer *)((uint64_t *)array)[count])();
    uint64_t single = in_copy(object, copy, object_dynamic_address(object, DT_FINI));
    if (single)
        ((finalizer *)single)();
}

void image_construct(const struct image *image, const struct originals *originals, int argc, char **argv) {
    for (int i = originals->objects.count; i-- > 0;) /* what is needed comes after what needs it */
        if (image->copies[i])
            construct(&originals->objects.items[i], image->copies[i], argc, argv);
}

void image_destruct(const struct image *image, const struct originals *originals) {
    for (int i = 0; i < originals->objects.count; i++)
        if (image->copies[i])
            destruct(&originals->objects.items[i], image->copies[i]);
}
