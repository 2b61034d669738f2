/*
 * pie.c: code and data of the program are copied for every rank (PIEglobals).
 *
 * Position-independent code reaches its data relative to the program counter, so a copy of both together uses data of
 * its own; what is left to do is to rewrite the pointers (rewrite.c).
 * Described in "virtualization 2022" (docs/references.md has the source, and what differs).
 */
#include "image/image.h"
#include "image/method.h"
#include "image/object_byte_copies.h"

static int make(struct image *image, const struct image_plan *plan, int rank, uint64_t *cursor) {
    (void)rank;
    return byte_copies_make(image, plan, cursor);
}

static int finish(struct image *image, const struct image_plan *plan, int rank) {
    int error = byte_copies_rewrite(image, plan, rank);
    return error ? error : byte_copies_protect(image, plan);
}

static int fill(struct image *image, const struct image_plan *plan, int rank) {
    int error = byte_copies_fill(image, plan);
    return error ? error : byte_copies_rewrite(image, plan, rank);
}

static const struct method pie = {
    .name = "pie",
    .summary = "copy code and data for every rank",
    .byte_copies = true,
    .refuses = byte_copies_refuse,
    .room = byte_copies_room,
    .make = make,
    .finish = finish,
    .can_move = true,
    .place = byte_copies_place,
    .fill = fill,
    .is_first_content = byte_copies_are_first_content,
    .settle = byte_copies_protect,
    .unsettle = byte_copies_unregister,
};
RANK_METHOD(pie);
