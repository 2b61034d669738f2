/*
 * options.h: what the user typed behind rankrun.
 */
#ifndef RANK_OPTIONS_H
#define RANK_OPTIONS_H

#include "methods/method.h"
#include "rewrite.h"

#include <stdbool.h>
#include <stdint.h>

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
    int argument_count; /* of the program, its name included */
    char **arguments;
};

/* Parses the command line; on a mistake, writes one sentence to standard error and exits with status 2. */
struct options options_parse(int argc, char **argv);

#endif
