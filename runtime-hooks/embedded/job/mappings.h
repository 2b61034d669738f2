/*
 * mappings.h: what is mapped in this process, and how much of it a core file has to hold.
 *
 * That is mappings that can be written to, all of the ranks' ranges, and the first page of each file's mapping, which
 * holds its build-id.
 */
#ifndef RANK_JOB_MAPPINGS_H
#define RANK_JOB_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

struct mapping {
    uint64_t start, end, offset;
    uint32_t flags;   /* PF_R, PF_W, PF_X */
    uint64_t written; /* bytes of it that a core file has */
    char *path;       /* NULL: none */
};

struct mappings {
    struct mapping *items;
    size_t count, room;
};

/* 0, or an errno value (EFBIG: there are more than a core file can have). */
int mappings_read(struct mappings *all);
void mappings_free(struct mappings *all);

#endif
