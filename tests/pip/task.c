/* A task that says where its variables are, and goes on for ever. */
#define _GNU_SOURCE
#include <pip/pip.h>
#include <stdio.h>
#include <unistd.h>

int g_rank = -1;
static int s_rank = -1;
static __thread int tls_rank = -1;

__attribute__((noinline)) static void tick(int turn) {
    usleep(20000);
    s_rank += !turn;
}

int main(void) {
    int me;
    if (pip_init(&me, NULL, NULL, 0))
        return 2;
    g_rank = tls_rank = me;
    s_rank = me - 1;
    tick(0);
    dprintf(1, "TRUTH %d %p %p %p %d\n", me, (void *)&g_rank, (void *)&tls_rank, (void *)&me, (int)gettid());
    for (int turn = 1;; turn++)
        tick(turn);
}
