/*
 * table.c: the methods that this runtime was built with.
 */
#include "methods/method.h"

#include <stdio.h>
#include <string.h>

extern const struct method *const __start_rank_methods[];
extern const struct method *const __stop_rank_methods[];

const struct method *method_named(const char *name) {
    for (const struct method *const *one = __start_rank_methods; one < __stop_rank_methods; one++)
        if (!strcmp((*one)->name, name))
            return *one;
    return NULL;
}

void method_names(char *text, size_t room) {
    size_t used = 0;
    for (const struct method *const *one = __start_rank_methods; one < __stop_rank_methods && used < room; one++) {
        const char *before = one == __start_rank_methods ? "" : one + 1 == __stop_rank_methods ? " or " : ", ";
        used += (size_t)snprintf(text + used, room - used, "%s%s", before, (*one)->name);
    }
}

void method_help(void) {
    for (const struct method *const *one = __start_rank_methods; one < __stop_rank_methods; one++)
        printf("  %-11s %s\n", (*one)->name, (*one)->summary);
}
