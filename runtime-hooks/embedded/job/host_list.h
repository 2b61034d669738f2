/*
 * host_list.h: the hosts of a job as --hosts names them, and which of them has which processes.
 *
 * `a,b:4,[::1]:2`: a place on a, four on b, two on ::1.  A host that is named again has so many places more.  The job's
 * processes are dealt out in blocks, in proportion to the places.
 */
#ifndef RANK_JOB_HOST_LIST_H
#define RANK_JOB_HOST_LIST_H

#include <stdbool.h>

struct host {
    char *name; /* as the remote shell knows it */
    int places;
};

struct host_list {
    int count; /* 0: the job is on this host, without agents */
    struct host *items;
};

/* False: the text is not such a list. */
bool host_list_parse(struct host_list *list, const char *text);

int host_list_places(const struct host_list *list);

/* The first of `processes` that a host has; host == count: processes. */
int host_list_first(const struct host_list *list, int host, int processes);

#endif
