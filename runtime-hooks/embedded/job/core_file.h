/*
 * core_file.h: this process's memory as an ELF core file, which debuggers and inspectors read as any other, with the
 * tickets of the ranks in a note of their own; and reading the ranks back.
 */
#ifndef RANK_JOB_CORE_FILE_H
#define RANK_JOB_CORE_FILE_H

#include "ranks/user_level_threads.h"

#include <stddef.h>

/* The note that holds the tickets, an array. */
#define CORE_FILE_NOTE_NAME "RANKTICKETS"
#define CORE_FILE_NOTE_TYPE 1u

/* 0, or an errno value.  One call at a time; all ranks are off their threads. */
int core_file_write(const char *path, const struct rank_ticket *tickets, size_t count);

/* An open core file with its program headers checked; NULL with errno set (ENOEXEC: it is none of ours, or cut short).
 */
struct core_file *core_file_open(const char *path);
void core_file_close(struct core_file *core);
const struct rank_ticket *core_file_tickets(const struct core_file *core, size_t *count);

/* Reads all that the file has of [start, start+size) to where it was; 0, or an errno value. */
int core_file_read(const struct core_file *core, uint64_t start, uint64_t size);

#endif
