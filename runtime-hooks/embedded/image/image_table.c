/*
 * image_table.c: a table of images by rank, and of objects that are copied.
 */
#include "image/image_table.h"
#include "image/method.h"
#include "image/ranges.h"

#include <errno.h>
#include <stdlib.h>

static const struct image_plan *plan;
static struct image *images; /* by rank */
static bool *is_copied;      /* by object: ranks have copies of it */

int rank_images_prepare(const struct image_plan *image_plan) {
    plan = image_plan;
    images = calloc((size_t)plan->ranks, sizeof *images);
    is_copied = calloc((size_t)plan->originals.objects.count, sizeof *is_copied);
    return images && is_copied ? 0 : ENOMEM;
}

struct image *rank_image(int rank) {
    return &images[rank];
}

/* Index of the object of whose copy an address is; -1: of none. */
static int object_copied(const struct image *image, uint64_t address) {
    for (int i = 0; image->copies && i < plan->originals.objects.count; i++)
        if (image->copies[i] && address - image->copies[i] < plan->originals.objects.items[i].span)
            return i;
    return -1;
}

struct image *rank_image_with_copy(const void *address) {
    int64_t range = range_of(address);
    if (!plan || range >= 0)
        return plan && range < plan->ranks ? &images[range] : NULL;
    for (int rank = 0; !plan->method->byte_copies && rank < plan->ranks; rank++)
        if (object_copied(&images[rank], (uint64_t)address) >= 0)
            return &images[rank];
    return NULL;
}

const void *rank_images_original(const void *address) {
    const struct image *image = plan && plan->method->byte_copies ? rank_image_with_copy(address) : NULL;
    int object = image ? object_copied(image, (uint64_t)address) : -1;
    if (object < 0)
        return address;
    return (const void *)((uint64_t)address - image->copies[object] + plan->originals.objects.items[object].base);
}

void rank_images_note_copy(int object) {
    is_copied[object] = true;
}

bool rank_images_have_copy(int object) {
    return is_copied[object];
}

bool rank_images_is_original(const void *address) {
    return plan && object_of(&plan->originals.objects, (uint64_t)address) >= 0;
}

bool rank_images_is_shared(const void *address) {
    int object = object_of(&plan->originals.objects, (uint64_t)address);
    return object >= 0 && !is_copied[object];
}

bool rank_images_have_private_pages(void) {
    return plan->method->has_private_pages;
}
