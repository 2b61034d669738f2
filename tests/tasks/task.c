/* A task that says where its variables are, and goes on until there is a file "go". */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int g_rank = -1;
static int s_rank = -1;
static __thread int tls_rank = -1;

__attribute__((noinline)) static void tick(int turn) {
    usleep(20000);
    s_rank += !turn;
}

int task_main(int me) {
    g_rank = tls_rank = me;
    s_rank = me - 1;
    tick(0);
    dprintf(1, "TRUTH %d %p %p %p %d\n", me, (void *)&g_rank, (void *)&tls_rank, (void *)&me, (int)syscall(SYS_gettid));
    for (int turn = 1; access("go", F_OK); turn++)
        tick(turn);
    dprintf(1, "ENDED %d %d %d %d\n", me, g_rank, s_rank, tls_rank);
    return 0;
}
