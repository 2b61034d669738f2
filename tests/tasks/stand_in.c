/*
 * Stands for Process-in-Process where it can't be had: tasks in linker namespaces, as threads or as processes that
 * share all memory, with the structures of v3 as they were measured.  `stand_in thread|process COUNT TASK.so`
 */
#define _GNU_SOURCE
#include "ranks/crash.h"
#include "ranks/memory_sharing_process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stand_in_set(void *root, void *task);
void *stand_in_get(void);

/* What task.c asks the runtime for when a signal has ended a task; there is no runtime here. */
int crash_noted(void) {
    return -1;
}

struct misc {
    void *thread;
    char rest[0x2e8];
};

struct annex {
    char before[0x70];
    void *root;
    struct misc *misc;
};

struct record {
    char before[0x78];
    struct annex *annex;
};

struct root {
    char magic[8];
    uint32_t version;
    uint64_t whole, own, record, annex, misc;
    char rest[0x438 - 56];
};

struct start {
    int number;
    struct misc *misc;
    int (*main)(int);
};

static void *enter(void *argument) {
    struct start *start = argument;
    __asm__("movq %%fs:0x10, %0" : "=r"(start->misc->thread));
    start->main(start->number);
    return NULL;
}

int main(int count, char **words) {
    int tasks = count == 4 ? atoi(words[2]) : 0, is_process = count == 4 && !strcmp(words[1], "process");
    if (tasks < 1 || tasks > 9)
        return 2;
    size_t records = (size_t)tasks + 1; /* the root's is behind the tasks' */
    size_t whole = sizeof(struct root) + records * (sizeof(struct record) + sizeof(struct annex) + sizeof(struct misc));
    struct root *root = calloc(1, whole);
    struct record *record = (void *)(root + 1);
    struct annex *annex = (void *)(record + records);
    struct misc *misc = (void *)(annex + records);
    root->version = 0x4100;
    root->whole = whole;
    root->own = sizeof *root;
    root->record = sizeof *record;
    root->annex = sizeof *annex;
    root->misc = sizeof *misc;
    memcpy(root->magic, "PrcInPrc", 8);
    for (size_t i = 0; i < records; i++) {
        record[i].annex = &annex[i];
        annex[i].root = root;
        annex[i].misc = &misc[i];
    }
    stand_in_set(root, &record[tasks]);
    pthread_t threads[9];
    for (int number = tasks - 1; number >= 0; number--) {
        void *handle = dlmopen(LM_ID_NEWLM, words[3], RTLD_NOW);
        void (*set)(void *, void *) = handle ? dlsym(handle, "stand_in_set") : NULL;
        struct start *start = malloc(sizeof *start);
        *start = (struct start){number, &misc[number], handle ? dlsym(handle, "task_main") : NULL};
        if (!set || !start->main) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
        set(root, &record[number]);
        if (is_process ? task_start(enter, start) < 0 : pthread_create(&threads[number], NULL, enter, start) != 0)
            return 2;
    }
    if (is_process)
        task_wait_for_all();
    for (int number = 0; !is_process && number < tasks; number++)
        pthread_join(threads[number], NULL);
    return stand_in_get() == &record[tasks] ? 0 : 3;
}
