/*
 * open_files.h: the C library's open streams, all of them.
 */
#ifndef RANK_OPEN_FILES_H
#define RANK_OPEN_FILES_H

#include <stdbool.h>

/* Writes what streams hold back, but for those that another thread is using: it may wait for input for ever. */
void open_files_flush(void);

/* Whether a stream lies in the rank's range. */
bool open_files_of(int rank);

#endif
