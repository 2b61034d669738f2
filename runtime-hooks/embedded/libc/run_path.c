/*
 * run_path.c: calls dlopen() from the original's code, so that the loader finds its DT_RUNPATH.
 */
#include "libc/run_path.h"
#include "image/image_table.h"

#include <dlfcn.h>
#include <stdint.h>

void *rank_open_library(open_from *from, const char *file, int mode) {
    open_from *original = (open_from *)(uintptr_t)rank_images_original((const void *)(uintptr_t)from);
    return original(dlopen, file, mode);
}
