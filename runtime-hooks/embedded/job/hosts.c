/*
 * hosts.c: what launchers leave in the environment, and where a transport for them is.
 */
#define _GNU_SOURCE
#include "job/hosts.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CONTROL 3 /* descriptor; that of the first process here follows */
#define MOST_HOSTS 256
#define BUILD "build it with the launcher's own compiler (rankcc --with-mpi mpicc)"

static int hosts = 1, host;
static bool is_started_by_transport;

static int number_in(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

/* Processes that the launcher started along with this one: Open MPI, Hydra and its kin, PMIx under Slurm. */
static int started_by_launcher(void) {
    if (getenv("OMPI_COMM_WORLD_RANK"))
        return number_in("OMPI_COMM_WORLD_SIZE");
    if (getenv("PMI_RANK"))
        return number_in("PMI_SIZE");
    if (getenv("PMIX_RANK") && getenv("SLURM_STEP_NUM_TASKS"))
        return number_in("SLURM_STEP_NUM_TASKS");
    if (getenv("SLURM_STEP_ID") && number_in("SLURM_STEP_NUM_TASKS") > 1)
        fatal("srun has started %d of rankrun without a way to find each other: add --mpi=pmi2 or --mpi=pmix, as "
              "`srun --mpi=list` has them",
              number_in("SLURM_STEP_NUM_TASKS"));
    return 1;
}

void site_begin(void) {
    const char *mark = getenv(SITE_MARK);
    int count = mark ? sscanf(mark, "%d %d", &host, &hosts) : 0;
    is_started_by_transport = count == 2 && hosts > 1 && host >= 0 && host < hosts;
    if (is_started_by_transport) {
        static char name[HOST_NAME_MAX + 1];
        gethostname(name, HOST_NAME_MAX);
        fatal_on_host(name);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* until control frames are read, whose end is the transport's */
        return;
    }
    host = 0;
    hosts = started_by_launcher();
    hosts = hosts < 1 ? 1 : hosts;
    if (hosts > MOST_HOSTS)
        fatal("a job has at most %d processes, and the launcher has started %d of rankrun: start one on each node",
              MOST_HOSTS, hosts);
}

int site_hosts(void) {
    return hosts;
}

int site_host(void) {
    return host;
}

int site_control(void) {
    return CONTROL;
}

int site_uplink(int place) {
    return CONTROL + 1 + place;
}

/* The transport of the launcher's own kind of MPI if it has been built, or any. */
static bool find_transport(const char *self, char path[PATH_MAX]) {
    const char *kinds[] = {"mpich", "openmpi", "mpi"};
    if (getenv("OMPI_COMM_WORLD_RANK") || !getenv("PMI_RANK"))
        kinds[0] = "openmpi", kinds[1] = "mpich";
    int folder = (int)(strrchr(self, '/') - self);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(path, PATH_MAX, "%.*s/../lib/transport_%s", folder, self, kinds[i]);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

void site_become_transport(int processes, char **arguments) {
    if (hosts == 1 || is_started_by_transport)
        return;
    static char self[PATH_MAX], path[PATH_MAX], counts[2][16];
    const char *chosen = getenv("RANK_TRANSPORT");
    int count = 0;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    if (!chosen && !(*self && find_transport(self, path)))
        fatal("the launcher has started %d of rankrun, and there is no transport between them: " BUILD, hosts);
    while (arguments[count])
        count++;
    char **words = calloc((size_t)count + 4, sizeof *words);
    if (!words)
        fatal("there is not enough memory for the job");
    snprintf(counts[0], sizeof counts[0], "%d", hosts);
    snprintf(counts[1], sizeof counts[1], "%d", processes);
    words[0] = chosen ? (char *)(uintptr_t)chosen : path;
    words[1] = counts[0], words[2] = counts[1], words[3] = self;
    memcpy(words + 4, arguments + 1, ((size_t)count - 1) * sizeof *words);
    execv(words[0], words);
    fatal("the transport between hosts, %s, can't be started: %s; " BUILD, words[0], strerror(errno));
}
