/*
 * gate.h: TCP connections between the hosts of a job, whose ends have proved to each other that they know its key.
 *
 * The key itself is never sent, and no proof is good for another connection.  What is sent afterwards is neither
 * encrypted nor signed, as under other MPIs.
 */
#ifndef RANK_JOB_GATE_H
#define RANK_JOB_GATE_H

#include "job/secret.h"

#include <stdint.h>

#define GATE_ADDRESSES 1024 /* characters of a host's addresses, at most */

/* What a connection is for. */
enum visit_kind {
    VISIT_AGENT,   /* from the agent of host `one` to the launcher */
    VISIT_PROCESS, /* from process `one` to the launcher */
    VISIT_PAIR,    /* from process `one` to process `other` */
};

struct visit {
    uint32_t kind;
    int32_t one, other;
};

struct gate {
    int events;    /* something to poll() for */
    uint16_t port; /* in the machine's byte order */
    int listening, strangers;
    const struct secret *secret;
};

/* This host's addresses, numeric, with commas between them: those that other hosts may reach come first. */
void gate_addresses(char text[GATE_ADDRESSES]);

/* Listens at all of this host's addresses; 0, or an errno value. */
int gate_open(struct gate *gate, const struct secret *secret);

/* The next connection that has been proved, without waiting; -1: none for now.  Strangers are left without an answer.
 */
int gate_admit(struct gate *gate, struct visit *visit);

void gate_close(const struct gate *gate);

/* Calls at the first of the addresses where somebody knows the key; -1 with errno set (EACCES: whoever answers does
 * not accept it).  Each part of it takes `seconds` at most. */
int gate_call(const char *addresses, uint16_t port, const struct secret *secret, const struct visit *visit,
              double seconds);

/* Has a read or write fail once the other host has been silent for so long, data under way or not.  Only for a reader
 * that always reads: one that a debugger has stopped looks the same. */
void gate_limit_silence(int socket, double seconds);

#endif
