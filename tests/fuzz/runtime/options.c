/*
 * options.c: an input is rankrun's command line, words with a NUL after each.
 */
#include "launch/options.h"
#include "refusals.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), *words[MOST_WORDS + 2] = {"rankrun"};
    int count = 1;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at < size && count <= MOST_WORDS; at += strlen(text + at) + 1)
        words[count++] = text + at;
    optind = 0;
    if (!setjmp(next_input)) {
        struct options options = options_parse(count, words);
        if (options.ranks < 1 || options.processes > options.ranks || !options.method || !options.argument_count ||
            options.stack_size > options.range_size)
            abort();
    }
    free(text);
    return 0;
}
