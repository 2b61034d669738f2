/*
 * pip.c: the system's loader loads the program once more for every rank, in a namespace of its own (PIPglobals).
 *
 * A namespace holds a second instance of every library, so of this one too.  It stays idle: whatever in the namespace
 * names it is made to name this one, and its malloc family calls this one's (second_runtime_instance.h).  Code and data
 * are private then, libc's included; a rank's output is flushed when its main has returned. Described in
 * "virtualization 2022", after "PiP 2018" (docs/references.md has the source, and what differs).
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "image/method.h"
#include "libc/exit_functions.h"
#include "libc/second_runtime_instance.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_NAMESPACES 15 /* glibc's DL_NNS less the base's; four without the tunable rtld.nns */

/* A rank's own of what libc keeps per kernel thread or per namespace. */
struct own {
    void (*prepare_thread)(void); /* __ctype_init(): isalpha() and its kin need it on every kernel thread */
    int (*flush)(FILE *stream);
    int (*set_buffer)(FILE *stream, char *buffer, int mode, size_t size);
    FILE **output;
};

static void tunables(const char *program, int ranks, char *text, size_t room) {
    (void)program;
    /* Each namespace takes static TLS for its libc, for the runtime and for the program. */
    snprintf(text, room, "glibc.rtld.nns=16:glibc.rtld.optional_static_tls=%d", 4096 + ranks * 2048);
}

static bool refuses(const struct image_plan *plan, char *why, size_t room) {
    if (plan->residents <= MOST_NAMESPACES)
        return false;
    snprintf(
        why, room,
        "method %s needs a linker namespace for each rank, and the system's loader has %d, not %d: run fewer ranks, or "
        "use method fs or pie",
        plan->method->name, MOST_NAMESPACES, plan->residents);
    return true;
}

static int find_copies(struct image *image, const struct object_list *objects, const struct link_map *first) {
    for (const struct link_map *map = first; map; map = map->l_next) {
        char path[PATH_MAX];
        if (!realpath(map->l_name, path))
            continue;
        for (int i = 0; i < objects->count; i++)
            if (!strcmp(objects->items[i].path, path)) {
                image->copies[i] = map->l_addr + (objects->items[i].base - objects->items[i].bias);
                dlinfo((void *)(uintptr_t)map, RTLD_DI_TLS_MODID, &image->modules[i]); /* glibc: a map is a handle */
            }
    }
    return image->copies[0] ? 0 : ENOEXEC;
}

/* This library goes first: the loader would not find it from there by the program's wish alone. */
static void *open_namespace(const char *program, struct image *image) {
    Dl_info this;
    Lmid_t space;
    if (!dladdr((void *)(uintptr_t)open_namespace, &this))
        return NULL;
    void *runtime = dlmopen(LM_ID_NEWLM, this.dli_fname, RTLD_NOW | RTLD_LOCAL);
    if (!runtime || dlinfo(runtime, RTLD_DI_LMID, &space))
        return NULL;
    exit_functions_loading();
    heap_here = image->heap; /* what the constructors allocate is the rank's */
    void *handle = dlmopen(space, program, RTLD_NOW | RTLD_LOCAL);
    heap_here = NULL;
    image->exit_functions = exit_functions_loaded();
    return handle;
}

static int load(struct image *image, const struct object_list *objects, struct own *own) {
    struct link_map *map;
    void *handle = open_namespace(objects->items[0].path, image);
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map)) {
        fprintf(stderr, "rankrun: %s\n", dlerror());
        return ENOMEM;
    }
    while (map->l_prev)
        map = map->l_prev;
    int error = find_copies(image, objects, map);
    if (!error)
        error = second_instance_bind(map);
    *(void **)&own->prepare_thread = dlvsym(handle, "__ctype_init", "GLIBC_PRIVATE");
    *(void **)&own->flush = dlsym(handle, "fflush");
    *(void **)&own->set_buffer = dlsym(handle, "setvbuf");
    own->output = dlsym(handle, "stdout");
    return error;
}

static int finish(struct image *image, const struct image_plan *plan, int rank) {
    (void)rank;
    struct own *own = calloc(1, sizeof *own);
    image->own = own;
    image->modules = calloc((size_t)plan->originals.objects.count, sizeof *image->modules);
    return own && image->modules ? load(image, &plan->originals.objects, own) : ENOMEM;
}

static void begin(const struct image *image) {
    const struct own *own = image->own;
    if (own->prepare_thread)
        own->prepare_thread();
    /* A full buffer would be written in the middle of a line, and ranks' buffers are apart. */
    if (own->set_buffer && own->output && !isatty(STDOUT_FILENO))
        own->set_buffer(*own->output, NULL, _IOLBF, BUFSIZ);
}

static void end(const struct image *image) {
    const struct own *own = image->own;
    if (own->flush)
        own->flush(NULL);
}

static const struct method pip = {
    .name = "pip",
    .summary = "load the program into a linker namespace for every rank (at most 15)",
    .tunables = tunables,
    .refuses = refuses,
    .finish = finish,
    .begin = begin,
    .end = end,
};
RANK_METHOD(pip);

static const struct method pipthread = {
    .name = "pipthread",
    .summary = "as pip, and every rank is a kernel thread",
    .is_kernel_task = true,
    .tunables = tunables,
    .refuses = refuses,
    .finish = finish,
    .begin = begin,
    .end = end,
};
RANK_METHOD(pipthread);

static const struct method pipprocess = {
    .name = "pipprocess",
    .summary = "as pip, and every rank is a process that shares the others' memory",
    .is_kernel_task = true,
    .is_process = true,
    .tunables = tunables,
    .refuses = refuses,
    .finish = finish,
    .begin = begin,
    .end = end,
};
RANK_METHOD(pipprocess);
