/*
 * open_files.c: walks libc's list of open streams (_IO_list_all) under its lock; libc exports both.
 */
#define _GNU_SOURCE
#include "libc/open_files.h"
#include "image/ranges.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdio_ext.h>

static FILE *first_stream(void) {
    FILE **first = dlsym(RTLD_DEFAULT, "_IO_list_all");
    return first ? *first : NULL;
}

static void call(const char *name) {
    void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, name);
    if (function)
        function();
}

/* fflush(NULL) would wait for each stream's lock, which a thread that reads from it has until there is input. */
void open_files_flush(void) {
    call("_IO_list_lock");
    for (FILE *file = first_stream(); file; file = file->_chain)
        if (!ftrylockfile(file)) {
            if (__fpending(file) > 0)
                fflush_unlocked(file);
            funlockfile(file);
        }
    call("_IO_list_unlock");
}

bool open_files_of(int rank) {
    bool any = false;
    call("_IO_list_lock");
    for (FILE *file = first_stream(); file && !any; file = file->_chain)
        any = range_of(file) == rank;
    call("_IO_list_unlock");
    return any;
}
