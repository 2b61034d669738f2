/*
 * host_list.c: parsing, and the dealing out.
 */
#define _GNU_SOURCE
#include "job/host_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PLACES 256 /* of a host; there are no more processes in a job */

/* The number after a colon. */
static bool is_number(const char *text, int *places) {
    char *end;
    long value = strtol(text, &end, 10);
    *places = (int)value;
    return end > text && !*end && value >= 1 && value <= MOST_PLACES;
}

/* Cuts `:4` off a name.  Two colons within a name are an IPv6 address's, which is `[::1]:4` then. */
static bool take_places(char **name, int *places) {
    char *colon = strchr(*name, ':'), *bracket = strchr(*name, ']');
    *places = 1;
    if (**name == '[') {
        if (!bracket || !colon || colon > bracket || (bracket[1] && bracket[1] != ':'))
            return false;
        bool is_right = !bracket[1] || is_number(bracket + 2, places);
        *bracket = '\0';
        ++*name; /* remote shells take an address without brackets */
        return is_right;
    }
    if (!colon || strchr(colon + 1, ':'))
        return true;
    *colon = '\0';
    return is_number(colon + 1, places);
}

/* One with a dash in front would be an option of the remote shell's. */
static bool is_name(const char *name) {
    return *name && *name != '-' && strlen(name) < 256 && !strpbrk(name, " \t\n[]");
}

static bool add(struct host_list *list, char *name) {
    int places;
    if (!take_places(&name, &places) || !is_name(name))
        return false;
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->items[i].name, name))
            return (list->items[i].places += places) <= MOST_PLACES;
    struct host *grown = realloc(list->items, ((size_t)list->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->items = grown;
    grown[list->count++] = (struct host){name, places};
    return true;
}

bool host_list_parse(struct host_list *list, const char *text) {
    char *rest = strdup(text), *name;
    *list = (struct host_list){0};
    while ((name = strsep(&rest, ",")))
        if (!add(list, name))
            return false;
    return list->count > 0;
}

static int places_before(const struct host_list *list, int host) {
    int places = 0;
    for (int i = 0; i < host; i++)
        places += list->items[i].places;
    return places;
}

int host_list_places(const struct host_list *list) {
    return places_before(list, list->count);
}

/* The smallest process p with p * places / processes >= the places before. */
int host_list_first(const struct host_list *list, int host, int processes) {
    int64_t places = host_list_places(list), before = places_before(list, host);
    return (int)((before * processes + places - 1) / places);
}
