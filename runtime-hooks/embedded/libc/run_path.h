/*
 * run_path.h: dlopen() for ranks' copies of a program, of which the system's loader knows nothing.
 *
 * Programs call it (libc_state/loader.c).
 */
#ifndef RANK_RUN_PATH_H
#define RANK_RUN_PATH_H

/* A function of the program that passes the other two on to the first. */
typedef void *open_from(void *(*open)(const char *, int), const char *file, int mode);

/* What dlopen() would return, had it been called by the original of the object whose copy has `from`. */
void *rank_open_library(open_from *from, const char *file, int mode);

#endif
