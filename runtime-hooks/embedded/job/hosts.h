/*
 * hosts.h: the hosts of a job of several, as the launcher has them: it starts an agent on each by the remote shell, and
 * learns of the processes' ends.
 */
#ifndef RANK_JOB_HOSTS_H
#define RANK_JOB_HOSTS_H

#include "job/agent.h"

#include <sys/types.h>

/* What the launcher has to know of a process on another host. */
struct remote_process {
    pid_t pid;        /* there */
    int socket;       /* to it */
    const char *host; /* its name, as the user gave it */
};

/*
 * Has all processes made, and fills in what is known of them.  Ends the launcher (status 2), with a sentence that names
 * the host, if one does not answer in time, can't be reached, or has loaded something else.  `signals`: a signalfd of
 * SIGCHLD, which is blocked.
 */
void hosts_start(const struct launch_plan *plan, struct remote_process *processes, int signals);

/* Something to poll() for; -1: there are no other hosts. */
int hosts_events(void);

/* The next end of a process, without waiting.  process == -1: its host is lost, which is reported already. */
bool hosts_next_end(struct wire_ended *ended);

/* Ends what still runs there, and waits until all that was printed there has arrived here. */
void hosts_end(void);

#endif
