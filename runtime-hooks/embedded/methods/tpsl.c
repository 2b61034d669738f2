/*
 * tpsl.c: every rank is a process of its own with private pages of the program at the same addresses, while stacks,
 * heaps and the runtime are shared between all (thread-private shared library).
 *
 * So there is one copy of nothing: what a variable holds depends on whose page tables it is read through.
 * Described in "TPSL 2015" (docs/references.md has the source, and what differs).
 */
#include "image/image.h"
#include "image/method.h"

static const struct method tpsl = {
    .name = "tpsl",
    .summary = "give every rank private pages of the program at the same addresses, all else shared",
    .is_kernel_task = true,
    .is_process = true,
    .has_private_pages = true,
};
RANK_METHOD(tpsl);
