/*
 * dlopen.c: dlopen() as called by the program, not by a copy of it.
 *
 * The system's loader looks for a library where the object says that calls it (DT_RUNPATH, $ORIGIN), and knows that by
 * the address that the call returns to.  A copy's is none of its objects; the original's is.
 */
#include "libc/libc_state/rank_private.h"
#include "libc/run_path.h"

#include <dlfcn.h>

/* It runs in the original, and may use nothing that is a rank's own. */
RANK_PRIVATE void *rank_open_from_here(void *(*open)(const char *, int), const char *file, int mode) {
    return open(file, mode);
}

RANK_PRIVATE void *dlopen(const char *file, int mode) {
    return rank_open_library(rank_open_from_here, file, mode);
}
