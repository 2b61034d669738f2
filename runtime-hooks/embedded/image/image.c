/*
 * image.c: lays out a rank's range: stack, what the method needs, heap.
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "image/method.h"
#include "image/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
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

/* Whether an object runs code on the stack, as GCC's trampolines of nested functions: the kernel and the loader give
 * threads of such a program executable stacks. */
static bool runs_on_stack(const struct object_list *objects) {
    for (int i = 0; i < objects->count; i++)
        for (int h = 0; h < objects->items[i].header_count; h++) {
            const ElfW(Phdr) *header = &objects->items[i].header[h];
            if (header->p_type == PT_GNU_STACK && header->p_flags & PF_X)
                return true;
        }
    return false;
}

/* *cursor: after the stack. */
static int make_stack(struct image *image, const struct image_plan *plan, int rank, uint64_t *cursor) {
    const struct method *method = plan->method;
    uint64_t start = range_start((uint32_t)rank);
    image->copies = calloc((size_t)plan->originals.objects.count, sizeof *image->copies);
    if (!image->copies)
        return ENOMEM;
    image->stack_start = start + PAGE; /* the page below it stays out of reach: an overflow faults */
    image->stack_size = plan->stack_size;
    *cursor = image->stack_start + image->stack_size + PAGE;
    if (*cursor + (method->room ? method->room(plan) : 0) + 2 * PAGE > start + range_size())
        return ENOMEM;
    int error = range_commit(image->stack_start, image->stack_size);
    if (!error && runs_on_stack(&plan->originals.objects) &&
        mprotect((void *)image->stack_start, image->stack_size, PROT_READ | PROT_WRITE | PROT_EXEC))
        error = errno;
    return error;
}

int image_place(struct image *image, const struct image_plan *plan, int rank, uint64_t heap_size) {
    uint64_t cursor, limit = range_start((uint32_t)rank) + range_size();
    int error = make_stack(image, plan, rank, &cursor);
    if (!error && plan->method->place)
        error = plan->method->place(image, plan, &cursor);
    if (error)
        return error;
    image->heap = heap_arrive((uint32_t)rank, align_up(cursor, PAGE), heap_size, limit);
    return image->heap ? 0 : errno;
}

int image_fill(struct image *image, const struct image_plan *plan, int rank) {
    int error = plan->method->fill ? plan->method->fill(image, plan, rank) : 0;
    uint64_t size = heap_size(image->heap);
    return error || !madvise((void *)heap_start(image->heap), size, MADV_DONTNEED) ? error : errno;
}

bool image_is_first_content(const struct image *image, const struct image_plan *plan, int object, uint64_t address,
                            uint64_t size) {
    if (!plan->method->is_first_content)
        return false;
    return plan->method->is_first_content(image, plan, object, address, size);
}

int image_settle(struct image *image, const struct image_plan *plan) {
    return plan->method->settle ? plan->method->settle(image, plan) : 0;
}

void image_unsettle(const struct image *image, const struct image_plan *plan) {
    if (plan->method->unsettle)
        plan->method->unsettle(image, plan);
}

void image_forget(struct image *image, int rank) {
    heap_leave((uint32_t)rank);
    free(image->copies);
    range_release((uint32_t)rank);
    *image = (struct image){0};
}

void image_pieces(const struct image *image, const struct image_plan *plan,
                  void (*each)(void *context, const struct image_piece *piece), void *context) {
    each(context, &(struct image_piece){image->stack_start, image->stack_size, -1});
    for (int i = 0; i < plan->originals.objects.count; i++) {
        const struct object *object = &plan->originals.objects.items[i];
        for (int h = 0; image->copies[i] && h < object->header_count; h++) {
            const ElfW(Phdr) *header = &object->header[h];
            uint64_t start = image->copies[i] + (object->bias + header->p_vaddr - object->base);
            if (header->p_type == PT_LOAD && !(plan->share_code && !(header->p_flags & PF_W)))
                each(context, &(struct image_piece){start, header->p_memsz, i});
        }
    }
    each(context, &(struct image_piece){heap_start(image->heap), heap_size(image->heap), -1});
}

int image_make(struct image *image, const struct image_plan *plan, int rank) {
    const struct method *method = plan->method;
    uint64_t cursor, limit = range_start((uint32_t)rank) + range_size();
    int error = make_stack(image, plan, rank, &cursor);
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

void original_destruct(const struct object *object) {
    destruct(object, object->base);
}

void image_destruct(const struct image *image, const struct originals *originals) {
    for (int i = 0; i < originals->objects.count; i++)
        if (image->copies[i])
            destruct(&originals->objects.items[i], image->copies[i]);
}
