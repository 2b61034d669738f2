/*
 * file_limit.h: raises the limit of open files: a launcher holds several for each process of its job.
 */
#ifndef RANK_FILE_LIMIT_H
#define RANK_FILE_LIMIT_H

#include <sys/resource.h>

/* As many open files as this process may have. */
static inline void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

#endif
