/*
 * none.c: all ranks share the program's globals, for programs that have none, and as the baseline of measurements.
 */
#include "image/image.h"
#include "image/method.h"

static const struct method none = {
    .name = "none",
    .summary = "share all globals between the ranks",
    .shares_heap = true,
};
RANK_METHOD(none);
