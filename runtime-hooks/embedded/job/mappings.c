/*
 * mappings.c: reads /proc/self/smaps.
 */
#include "job/mappings.h"
#include "image/ranges.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE UINT64_C(4096)
#define MOST_MAPPINGS 60000 /* below PN_XNUM, which would need another header */

static bool is_kernels(const struct mapping *mapping) {
    return mapping->path && !strncmp(mapping->path, "[v", 2) && strcmp(mapping->path, "[vdso]") != 0;
}

/* `own`: it has pages that are no longer the file's, as what the loader relocates and then protects. */
static uint64_t written_part(const struct mapping *mapping, bool is_changed) {
    uint64_t size = mapping->end - mapping->start;
    bool is_file = mapping->path && mapping->path[0] == '/';
    if (!(mapping->flags & PF_R) || is_kernels(mapping))
        return 0;
    if (!is_file || is_changed || mapping->flags & PF_W || range_of((const void *)mapping->start) >= 0)
        return size;
    return mapping->offset == 0 ? PAGE : 0;
}

/* False: the line is none that a mapping begins with. */
static bool parse_mapping(struct mapping *mapping, char *line) {
    char protection[8];
    int name = 0;
    if (sscanf(line, "%lx-%lx %7s %lx %*s %*u %n", &mapping->start, &mapping->end, protection, &mapping->offset,
               &name) < 4)
        return false;
    line[strcspn(line, "\n")] = '\0';
    mapping->flags =
        (protection[0] == 'r' ? PF_R : 0) | (protection[1] == 'w' ? PF_W : 0) | (protection[2] == 'x' ? PF_X : 0);
    mapping->path = name && line[name] ? strdup(line + name) : NULL;
    return true;
}

static int add_mapping(struct mappings *all, struct mapping mapping, bool is_changed) {
    mapping.written = written_part(&mapping, is_changed);
    if (mapping.flags == 0) {
        free(mapping.path);
        return 0;
    }
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 256;
        struct mapping *grown = room > 2 * MOST_MAPPINGS ? NULL : realloc(all->items, room * sizeof *grown);
        if (!grown)
            return room > 2 * MOST_MAPPINGS ? EFBIG : ENOMEM;
        all->room = room;
        all->items = grown;
    }
    all->items[all->count++] = mapping;
    return 0;
}

/* smaps tells after each mapping how much of it is anonymous memory. */
int mappings_read(struct mappings *all) {
    FILE *file = fopen("/proc/self/smaps", "re");
    char *line = NULL;
    size_t room = 0;
    bool begun = false, is_changed = false;
    struct mapping mapping = {0}, next = {0};
    unsigned long anonymous;
    int error = file ? 0 : errno;
    while (!error && getline(&line, &room, file) > 0) {
        if (sscanf(line, "Anonymous: %lu", &anonymous) == 1)
            is_changed = anonymous > 0;
        if (!parse_mapping(&next, line))
            continue;
        if (begun)
            error = add_mapping(all, mapping, is_changed);
        mapping = next;
        next = (struct mapping){0};
        begun = true;
    }
    if (!error && begun)
        error = add_mapping(all, mapping, is_changed);
    free(line);
    if (file)
        fclose(file);
    return error || all->count <= MOST_MAPPINGS ? error : EFBIG;
}

void mappings_free(struct mappings *all) {
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].path);
    free(all->items);
}
