/*
 * table.c: the methods that this runtime was built with.
 */
#include "methods/table.h"
#include "image/method.h"

#include <stdio.h>
#include <string.h>

extern const struct method *const __start_rank_methods[];
extern const struct method *const __stop_rank_methods[];

const struct method *method_named(const char *name) {
    for (const struct method *const *entry = __start_rank_methods; entry < __stop_rank_methods; entry++)
        if (!strcmp((*entry)->name, name))
            return *entry;
    return NULL;
}

void method_names(char *text, size_t room) {
    size_t used = 0;
    for (const struct method *const *entry = __start_rank_methods; entry < __stop_rank_methods && used < room;
         entry++) {
        const char *before = entry == __start_rank_methods ? "" : entry + 1 == __stop_rank_methods ? " or " : ", ";
        used += (size_t)snprintf(text + used, room - used, "%s%s", before, (*entry)->name);
    }
}

void method_help(void) {
    for (const struct method *const *entry = __start_rank_methods; entry < __stop_rank_methods; entry++)
        printf("  %-11s %s\n", (*entry)->name, (*entry)->summary);
}
