/*
 * pie.c: code and data of the program are copied for every rank (PIEglobals).
 *
 * Position-independent code reaches its data relative to the program counter, so a copy of both together uses data of
 * its own; what is left to do is to rewrite the pointers (rewrite.c).
 */
#include "method.h"

#include <stdio.h>

/*
 * Thread-local storage is reached through the thread pointer, which all ranks of a kernel thread share.  That is
 * harmless in a library as its authors meant it per thread (libgfortran keeps the unit of asynchronous I/O there), and
 * wrong in the program.
 */
static bool refuses(const struct originals *originals, char *why, size_t room) {
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

const struct method method_pie = {"pie", "copy code and data for every rank", true, refuses};
