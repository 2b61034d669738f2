/*
 * options.h: what the user typed after rankrun.
 */
#ifndef RANK_OPTIONS_H
#define RANK_OPTIONS_H

#include "image/rewrite.h"
#include "job/checkpoint.h"
#include "job/migration.h"

#include <stdbool.h>
#include <stdint.h>

struct method;

struct options {
    int ranks;
    int elements;
    uint64_t stack_size;
    uint64_t range_size;
    const struct method *method;
    enum rewrite_mode rewrite;
    const char *rewrite_log;
    bool share_code;
    bool exit_on_deadlock;
    bool exact_load;
    int processes; /* 0: one, which is this */
    enum migration_mode migration;
    const char *migration_log;
    const char *checkpoint;           /* folder */
    double every;                     /* seconds between checkpoints */
    const struct checkpoint *restart; /* what the job begins from */
    int argument_count;               /* of the program, its name included */
    char **arguments;
};

/* How many ranks begin in one process, at most. */
int options_residents(const struct options *options);

/* Parses the command line; on a mistake, writes one sentence to standard error and exits with status 2. */
struct options options_parse(int argc, char **argv);

#endif
