/*
 * memory_sharing_process.c: starts processes that share memory, by clone() without CLONE_THREAD.
 *
 * Each has a thread control block of its own, so that libc serves it as it does a thread, and thread libraries for
 * debuggers accept it.
 */
#define _GNU_SOURCE
#include "ranks/memory_sharing_process.h"
#include "machine/machine.h"
#include "ranks/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20) /* ranks have stacks of their own */

struct start {
    void *(*main)(void *);
    void *argument;
};

static int begin(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void (*prepare)(void);
    *(void **)&prepare = dlvsym(RTLD_DEFAULT, "__ctype_init", "GLIBC_PRIVATE");
    if (prepare)
        prepare();
    start.main(start.argument);
    _exit(0); /* buffers are the first process's, which flushes them */
}

/*
 * What the block holds is the processor's affair.  Where the thread's number stands, libc itself exports for debuggers
 * (_thread_db_pthread_tid: bits, count, offset); the list of robust mutexes, empty, follows it.
 */
static char *make_control_block(size_t *number_offset) {
    void *(*allocate)(void *block);
    *(void **)&allocate = dlvsym(RTLD_DEFAULT, "_dl_allocate_tls", "GLIBC_PRIVATE");
    const uint32_t *number = dlvsym(RTLD_DEFAULT, "_thread_db_pthread_tid", "GLIBC_PRIVATE");
    char *block = allocate && number ? allocate(NULL) : NULL;
    if (!block) {
        errno = ENOSYS;
        return NULL;
    }
    machine_fill_control_block(block);
    *number_offset = number[2];
    void **list = (void **)(block + *number_offset + 8);
    list[0] = list[1] = &list[1];
    return block;
}

static void *nothing(void *argument) {
    return argument;
}

/* Until a process has had a second thread, libc leaves out its locks. */
static void end_single_thread(void) {
    static int done;
    pthread_t thread;
    if (!done++ && pthread_create(&thread, NULL, nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

pid_t task_start(void *(*main)(void *), void *argument) {
    end_single_thread();
    size_t number_offset;
    char *block = make_control_block(&number_offset);
    struct start *start = malloc(sizeof *start);
    char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (!block || !start || stack == MAP_FAILED)
        return -1;
    *start = (struct start){main, argument};
    pid_t *number = (pid_t *)(block + number_offset);
    return clone(begin, stack + STACK_SIZE - 64,
                 CLONE_VM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, start, number, block,
                 number);
}

pid_t task_fork(void *(*main)(void *), void *argument) {
    fflush(NULL);
    pid_t task = fork();
    if (task != 0)
        return task;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    main(argument);
    fflush(NULL);
    _exit(0);
}

void task_wait_for_all(void) {
    int status;
    for (;;) {
        pid_t task = waitpid(-1, &status, 0);
        if (task < 0 && errno == EINTR)
            continue;
        if (task < 0)
            return;
        if (WIFSIGNALED(status)) {
            int rank = crash_noted(), signal = WTERMSIG(status);
            if (rank >= 0)
                fprintf(stderr, "rankrun: rank %d was ended by signal %d (%s), and the job with it\n", rank, signal,
                        strsignal(signal));
            else
                fprintf(stderr, "rankrun: task %d was ended by signal %d (%s), and the job with it\n", task, signal,
                        strsignal(signal));
            _exit(128 + WTERMSIG(status));
        }
        if (WEXITSTATUS(status))
            _exit(WEXITSTATUS(status));
    }
}
