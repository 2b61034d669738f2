/*
 * pie.c: code and data of the program are copied for every rank (PIEglobals).
 *
 * Position-independent code reaches its data relative to the program counter, so a copy of both together uses data of
 * its own; what is left to do is to rewrite the pointers (rewrite.c).
 */
#include "../byte_copy.h"
#include "method.h"

#include <stdio.h>

/*
 * Thread-local storage is reached through the thread pointer, which all ranks of a kernel thread share.  That is
 * harmless in a library as its authors meant it per thread (libgfortran keeps the unit of asynchronous I/O there), and
 * wrong in the program.
 */
static bool refuses(const struct image_plan *plan, char *why, size_t room) {
    const struct originals *originals = &plan->originals;
    for (int i = 0; i < originals->objects.count; i++) {
        const struct object *object = &originals->objects.items[i];
        if (!object->is_program || object->tls_size == 0)
            continue;
        snprintf(why, room,
                 "%s has %lu bytes of thread-local variables, which method pie can't make private: remove "
                 "thread_local, __thread or threadprivate",
                 object->path, object->tls_size);
        return true;
    }
    return false;
}

static int make(struct image *image, const struct image_plan *plan, int rank, uint64_t *cursor) {
    (void)rank;
    return byte_copies_make(image, plan, cursor);
}

static const struct method pie = {
    .name = "pie",
    .summary = "copy code and data for every rank",
    .byte_copies = true,
    .refuses = refuses,
    .room = byte_copies_room,
    .make = make,
    .finish = byte_copies_finish,
};
RANK_METHOD(pie);
