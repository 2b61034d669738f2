/*
 * fs.c: the program's file is copied for every rank, and each copy is loaded as a library of its own (FSglobals).
 *
 * Libraries that the program brings in stay one for all.  A symbol that the loader makes unique (STB_GNU_UNIQUE: C++
 * inline variables and statics of templates) stays one for all as well, wherever the program was built without
 * -fno-gnu-unique; the registry says where.
 * Described in "virtualization 2022" (docs/references.md has the source, and what differs).
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "image/method.h"
#include "image/unique.h"
#include "libc/exit_functions.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[PATH_MAX];

static void copy_path(char *path, size_t room, int rank) {
    snprintf(path, room, "%s/rank%d.so", folder, rank);
}

/* Removes the copies once this process has ended, by whatever: the pipe's other end is closed then. */
static void remove_copies(int ended, int ranks) {
    char path[PATH_MAX + 32], byte;
    setsid(); /* not ended together with the job */
    while (read(ended, &byte, 1) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < ranks; i++) {
        copy_path(path, sizeof path, i);
        unlink(path);
    }
    rmdir(folder);
    _exit(0);
}

static int make_folder(int ranks) {
    const char *base = getenv("TMPDIR");
    int ended[2];
    snprintf(folder, sizeof folder, "%s/rankrun-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder) || pipe2(ended, O_CLOEXEC))
        return errno;
    pid_t remover = fork();
    if (remover == 0) {
        dup2(ended[0], 0);
        close_range(1, ~0U, 0);
        if (fork() != 0) /* no process waits for it */
            _exit(0);
        remove_copies(0, ranks);
    }
    close(ended[0]);
    if (remover > 0)
        waitpid(remover, NULL, 0);
    return remover > 0 ? 0 : errno;
}

static int copy_file(const char *from, const char *to) {
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700), error = 0;
    struct stat state;
    if (in < 0 || out < 0 || fstat(in, &state))
        error = errno;
    for (off_t left = error ? 0 : state.st_size; left > 0 && !error;) {
        ssize_t done = sendfile(out, in, NULL, (size_t)left);
        error = done < 0 ? errno : done == 0 ? EIO : 0;
        left -= done;
    }
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) && !error)
        error = errno;
    return error;
}

static int finish(struct image *image, const struct image_plan *plan, int rank) {
    const struct object *program = &plan->originals.objects.items[0];
    int error = *folder ? 0 : make_folder(plan->ranks);
    if (error)
        return error;
    char path[PATH_MAX + 32];
    copy_path(path, sizeof path, rank);
    error = copy_file(program->path, path);
    if (error)
        return error;
    exit_functions_loading();
    heap_here = image->heap; /* what the constructors allocate is the rank's */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    heap_here = NULL;
    image->exit_functions = exit_functions_loaded();
    struct link_map *map;
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map)) {
        fprintf(stderr, "rankrun: %s\n", dlerror());
        return ENOMEM;
    }
    image->copies[0] = map->l_addr + (program->base - program->bias);
    image->modules = calloc((size_t)plan->originals.objects.count, sizeof *image->modules);
    return image->modules && !dlinfo(handle, RTLD_DI_TLS_MODID, &image->modules[0]) ? 0 : ENOMEM;
}

static void describe(const struct image *image, const struct image_plan *plan, int rank) {
    unique_describe(&plan->originals.objects.items[0], 0, rank, image->copies[0]);
}

static const struct method fs = {
    .name = "fs",
    .summary = "load a copy of the program's file for every rank",
    .compile = "-fno-gnu-unique",
    .finish = finish,
    .describe = describe,
};
RANK_METHOD(fs);
