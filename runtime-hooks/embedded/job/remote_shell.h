/*
 * remote_shell.h: the command that starts rankrun on another host, and what is written to its standard input.
 */
#ifndef RANK_JOB_REMOTE_SHELL_H
#define RANK_JOB_REMOTE_SHELL_H

#include "job/agent.h"

#include <sys/types.h>

struct remote_shell {
    const char *command, *host; /* run as COMMAND HOST rankrun --agent */
    struct orders orders;       /* but for the counts and sizes of what follows them */
    const char *strings[4];     /* after the host's name, in the orders' order */
    char **arguments;           /* ended by NULL; the environment is this process's own */
    bool has_input;             /* this process's standard input goes there, after the orders */
};

/* Starts the command, and a process that writes to it; both end with this one.  0, or an errno value. */
int remote_shell_start(const struct remote_shell *shell, pid_t *command, pid_t *feeder);

#endif
