/*
 * method.h: a method of privatization, as rankrun knows it.
 *
 * A method is one file in this folder: it says whether ranks get images of their own, and refuses, before any damage is
 * done, a program that it can't serve.
 */
#ifndef RANK_METHOD_H
#define RANK_METHOD_H

#include "../rewrite.h"

#include <stdbool.h>

struct method {
    const char *name;
    const char *summary;
    bool copies; /* every rank runs in copies of its own, on a heap of its own */
    /* Writes one sentence into `why` and returns true if these originals can't be served. */
    bool (*refuses)(const struct originals *originals, char *why, size_t room);
};

extern const struct method method_pie;
extern const struct method method_none;

#endif
