/*
 * mpir.c: the variables of the MPIR interface, by the names that debuggers look up.
 *
 * It is built with debug information, because debuggers read the table's layout from it.
 */
#define _GNU_SOURCE
#include "mpir.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *host_name;
    char *executable_name;
    int pid;
} MPIR_PROCDESC;

#define MPIR_DEBUG_SPAWNED 1

#define EXPORTED __attribute__((visibility("default"), used))

EXPORTED MPIR_PROCDESC *MPIR_proctable;
EXPORTED int MPIR_proctable_size;
EXPORTED volatile int MPIR_being_debugged;
EXPORTED volatile int MPIR_debug_state;
EXPORTED char *MPIR_debug_abort_string;
EXPORTED int MPIR_i_am_starter;      /* its presence says that this process is not part of the job */
EXPORTED int MPIR_partial_attach_ok; /* its presence says that processes wait for the launcher, not for debuggers */
EXPORTED int MPIR_force_to_main;     /* a debugger shows the program's main, and not ours */

EXPORTED __attribute__((noinline)) void MPIR_Breakpoint(void) {
    __asm__ volatile("");
}

static bool mpir_append(char *host, char *program, pid_t pid) {
    MPIR_PROCDESC *table = realloc(MPIR_proctable, ((size_t)MPIR_proctable_size + 1) * sizeof *table);
    if (table)
        MPIR_proctable = table;
    if (!table || !host || !program)
        return false;
    table[MPIR_proctable_size++] = (MPIR_PROCDESC){host, program, pid};
    return true;
}

static char *mpir_program_of(const char *process) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%s/exe", process);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length < 0 ? NULL : strndup(path, (size_t)length);
}

bool mpir_add(pid_t pid) {
    static char host[HOST_NAME_MAX + 1];
    char process[16];
    if (!*host)
        gethostname(host, sizeof host - 1);
    snprintf(process, sizeof process, "%d", pid);
    return mpir_append(host, mpir_program_of(process), pid);
}

bool mpir_add_remote(const char *host, const char *program, pid_t pid) {
    return mpir_append(strdup(host), program ? strdup(program) : mpir_program_of("self"), pid);
}

void mpir_publish(void) {
    MPIR_debug_state = MPIR_DEBUG_SPAWNED;
    MPIR_Breakpoint();
}
