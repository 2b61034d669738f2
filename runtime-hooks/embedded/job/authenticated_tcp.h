/*
 * authenticated_tcp.h: TCP connections between the hosts of a job, whose ends have proved to each other that they know
 * its key.
 *
 * The key itself is never sent, and no proof is good for another connection.  What is sent afterwards is neither
 * encrypted nor signed, as under other MPIs.
 */
#ifndef RANK_JOB_AUTHENTICATED_TCP_H
#define RANK_JOB_AUTHENTICATED_TCP_H

#include "job/job_key.h"

#include <stdint.h>

#define TCP_ADDRESSES 1024 /* characters of a host's addresses, at most */

/* What a connection is for. */
enum tcp_purpose_kind {
    PURPOSE_AGENT,   /* from the agent of host `from` to the launcher */
    PURPOSE_PROCESS, /* from process `from` to the launcher */
    PURPOSE_PAIR,    /* from process `from` to process `to` */
};

struct tcp_purpose {
    uint32_t kind;
    int32_t from, to;
};

struct tcp_listener {
    int events;    /* something to poll() for */
    uint16_t port; /* in the machine's byte order */
    int listening, strangers;
    const struct job_key *key;
};

/* This host's addresses, numeric, with commas between them: those that other hosts may reach come first. */
void tcp_addresses(char text[TCP_ADDRESSES]);

/* Listens at all of this host's addresses; 0, or an errno value. */
int tcp_listen(struct tcp_listener *listener, const struct job_key *key);

/* The next connection that has been proved, without waiting; -1: none for now.  Strangers are left without an answer.
 */
int tcp_accept(struct tcp_listener *listener, struct tcp_purpose *purpose);

void tcp_close(const struct tcp_listener *listener);

/* Calls at the first of the addresses where a process answers that knows the key; -1 with errno set (EACCES: what
 * answers does not accept it).  Each part of it takes `seconds` at most. */
int tcp_connect(const char *addresses, uint16_t port, const struct job_key *key, const struct tcp_purpose *purpose,
                double seconds);

/* Has a read or write fail once the other host has been silent for so long, data under way or not.  Only for a reader
 * that always reads: one that a debugger has stopped looks the same. */
void tcp_limit_silence(int socket, double seconds);

#endif
