/*
 * hosts.h: the hosts of a job, each of which the site's launcher (mpiexec, srun) has started rankrun on.
 *
 * Rankrun then becomes the transport (transport/relay.c), which speaks MPI and starts rankrun again on each
 * host, with sockets that lead to it.  Started otherwise, rankrun is on one host, and nothing here does anything.
 */
#ifndef RANK_JOB_HOSTS_H
#define RANK_JOB_HOSTS_H

#include <stdbool.h>

/* The environment variable by which the transport tells rankrun that it is on one of several hosts.  Its value is
 * always as long, since addresses of arguments and environment depend on it. */
#define SITE_MARK "RANKRUN_HOST"

/* Reads from the environment how many hosts there are; to be called first of all. */
void site_begin(void);

/* How many hosts the job has, and which of them this is. */
int site_hosts(void);
int site_host(void);

/* Becomes the transport if the launcher has started several rankruns and this is not yet one that a transport started;
 * ends the process (status 2) if there is none to become. */
void site_become_transport(int processes, char **arguments);

/* In rankrun as the transport started it: sockets that lead to the transport; of all frames to other hosts, and of
 * those from or to the process `place` of this host. */
int site_control(void);
int site_uplink(int place);

#endif
