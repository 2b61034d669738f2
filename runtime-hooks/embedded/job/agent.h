/*
 * agent.h: rankrun on each host of a job of several: it forks the host's processes, and says how they end.
 *
 * The launcher starts `rankrun --agent` by the remote shell and writes its orders to that one's standard input, which
 * no other user can read: the key of the job, where to work, and the launcher's own arguments and environment.  With
 * those the agent starts itself anew, so that the program is loaded at the same addresses as everywhere; it calls the
 * launcher, proves that what is loaded is the same, and connects its processes with those of the other hosts.
 */
#ifndef RANK_JOB_AGENT_H
#define RANK_JOB_AGENT_H

#include "job/authenticated_tcp.h"
#include "job/launch_plan.h"
#include "job/process.h"

#include <stdbool.h>
#include <stdint.h>

/* The environment variable that makes rankrun an agent, by the name of its host.  Its value is always as long, since
 * addresses of arguments and environment depend on it. */
#define AGENT_MARK "RANKRUN_HOST"
#define AGENT_MARK_FORMAT "%-255s"

#define ORDERS_VERSION UINT64_C(0x31736f48526b6e52)

/* After it come strings, each with its end: the host's name, the working folder, the launcher's addresses, the job's
 * id, a file that the folder for checkpoints has (or nothing), the arguments, and the environment. */
struct orders {
    uint64_t version;
    struct job_key key;
    uint64_t guards[2];   /* libc's, in the launcher */
    uint64_t stack_limit; /* likewise: where libraries are placed depends on it */
    double silence;       /* plan.silence */
    uint32_t host, port;
    uint32_t argument_count, environment_count;
    uint64_t bytes; /* of the strings */
};

/* Frames between an agent and the launcher, in this order. */
enum agent_frame {
    AGENT_READY,   /* where it can be called; what is loaded, as text */
    AGENT_BEGIN,   /* from the launcher: where each host can be called */
    AGENT_STARTED, /* pids of the host's processes */
    AGENT_ENDED,   /* one of them has ended */
};

struct wire_place {
    uint32_t port, reserved;
    char addresses[TCP_ADDRESSES];
};

struct wire_ended {
    int32_t process, status; /* as waitpid() has it */
    int32_t crashed;         /* the rank that a signal ended it in, plus one; 0 */
    int32_t reserved;
};

/* Before anything else: takes orders if this is to be an agent, and starts anew with them. */
void agent_begin(int argc, char **argv);

bool agent_is_one(void);

/* Like launch(), in an agent. */
struct job agent_serve(const struct launch_plan *plan);

#endif
