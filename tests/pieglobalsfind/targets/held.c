/*
 * held.c: a process with one of everything that a target can show, at addresses that it prints itself.
 *
 * Prints "NAME ADDRESS" lines and "ready", then waits; its bytes are known to the tests.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char rodata[] = "held in rodata";
char data[32] = "held in data";
char zeros[8192];

static void *wait_there(void *name) {
    char local[64];
    snprintf(local, sizeof local, "held on the stack of %s", (const char *)name);
    printf("%s %p\n", (const char *)name, (void *)local);
    fflush(stdout);
    for (;;)
        pause();
    return NULL;
}

int main(void) {
    long page = sysconf(_SC_PAGESIZE);
    int file = memfd_create("held_memory", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 2 * page))
        return 1;
    char *shared = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *guard = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *heap = malloc(64);
    if (shared == MAP_FAILED || guard == MAP_FAILED || !heap || mprotect(guard + page, (size_t)page, PROT_NONE))
        return 1;
    strcpy(shared + page - 8, "held in a memfd, across two pages");
    strcpy(guard, "held before a guard page");
    strcpy(heap, "held on the heap");
    printf("rodata %p\ndata %p\nzeros %p\ncode %p\nmemfd %p\nguard %p\nheap %p\n", (const void *)rodata, (void *)data,
           (void *)zeros, (void *)main, (void *)(shared + page - 8), (void *)guard, (void *)heap);
    fflush(stdout);
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_there, "second"))
        return 1;
    wait_there("first");
    return 0;
}
