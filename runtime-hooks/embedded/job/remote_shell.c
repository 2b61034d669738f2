/*
 * remote_shell.c: a pipe and two children: the command, and the feeder of its standard input.
 *
 * The feeder is a process of its own since a remote shell may take its input as late as it likes.
 */
#define _GNU_SOURCE
#include "job/remote_shell.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

/* ---- the feeder ---- */

static void add_string(FILE *file, const char *text) {
    fwrite(text, strlen(text) + 1, 1, file);
}

static uint32_t add_strings(FILE *file, char *const *list) {
    uint32_t count = 0;
    for (; list[count]; count++)
        add_string(file, list[count]);
    return count;
}

static char *write_strings(const struct remote_shell *shell, struct orders *orders) {
    char *strings = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&strings, &size);
    if (!file)
        fatal("the orders for other hosts can't be written: %s", strerror(errno));
    add_string(file, shell->host);
    for (size_t i = 0; i < sizeof shell->strings / sizeof *shell->strings; i++)
        add_string(file, shell->strings[i]);
    orders->argument_count = add_strings(file, shell->arguments);
    orders->environment_count = add_strings(file, environ);
    fclose(file);
    orders->bytes = size;
    return strings;
}

static void write_whole(int file, const void *bytes, size_t size) {
    for (const char *from = bytes; size;) {
        ssize_t done = write(file, from, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            _exit(0); /* the reader has gone */
        from += done, size -= (size_t)done;
    }
}

__attribute__((noreturn)) static void feed(const struct remote_shell *shell, int to) {
    static char buffer[65536];
    struct orders orders = shell->orders;
    char *strings = write_strings(shell, &orders);
    write_whole(to, &orders, sizeof orders);
    write_whole(to, strings, orders.bytes);
    signal(SIGTTIN, SIG_IGN); /* a job in the background has no terminal to read from, and must not stop for it */
    ssize_t got = 1;
    while (shell->has_input && got > 0) {
        got = read(STDIN_FILENO, buffer, sizeof buffer);
        write_whole(to, buffer, got < 0 ? 0 : (size_t)got);
    }
    _exit(0);
}

/* ---- the command ---- */

__attribute__((noreturn)) static void become(const struct remote_shell *shell, int input) {
    char command[PATH_MAX], self[PATH_MAX] = "";
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(input, STDIN_FILENO);
    (void)!readlink("/proc/self/exe", self, sizeof self - 1);
    snprintf(command, sizeof command, "exec %s \"$@\"", shell->command);
    execl("/bin/sh", "sh", "-c", command, "sh", shell->host, self, "--agent", NULL);
    _exit(127);
}

/* As fork(); the child ends with this process. */
static pid_t fork_child(void) {
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (child == 0 && getppid() != parent)
        _exit(2);
    return child;
}

int remote_shell_start(const struct remote_shell *shell, pid_t *command, pid_t *feeder) {
    int ends[2];
    *command = *feeder = 0;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    fflush(NULL);
    pid_t child = fork_child();
    if (child == 0)
        become(shell, ends[0]);
    int error = child < 0 ? errno : 0;
    *command = error ? 0 : child;
    close(ends[0]);
    child = error ? -1 : fork_child();
    if (child == 0)
        feed(shell, ends[1]);
    error = error || child >= 0 ? error : errno;
    *feeder = child < 0 ? 0 : child;
    close(ends[1]);
    return error;
}
