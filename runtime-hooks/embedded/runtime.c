/*
 * runtime.c: from the command line to running ranks: loads the program, makes the images, fills the registry.
 *
 * Everything happens in the order of rank_runtime_main(); each step is a module of its own.
 */
#define _GNU_SOURCE
#include "runtime.h"
#include "context.h"
#include "image.h"
#include "options.h"
#include "program.h"
#include "ranges.h"
#include "rank_hooks.h"
#include "ranks.h"
#include "scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern void mpi_register_calls(void);

typedef int program_main(int argc, char **argv, char **environment);

static struct options options;
static struct program program;
static struct image *images;

/* What a C program may do with its argument strings, it does with its own. */
static char **copy_arguments(void) {
    char **copy = malloc(((size_t)options.argument_count + 1) * sizeof *copy);
    for (int i = 0; copy && i < options.argument_count; i++)
        if (!(copy[i] = strdup(options.arguments[i])))
            return NULL;
    if (copy)
        copy[options.argument_count] = NULL;
    return copy;
}

static void destruct_current(void) {
    if (options.method->copies)
        image_destruct(&images[rank_number(rank_current())], &program.originals);
}

static int run_program(void *argument) {
    const struct image *image = argument;
    char **arguments = copy_arguments();
    if (!arguments)
        rank_job_abort(2, "a rank's range has no room for its arguments; use a larger --range-size");
    uint64_t entry = program.main;
    if (options.method->copies) {
        entry = image->copies[0] + (program.main - program.originals.objects.items[0].base);
        if (options.rewrite == REWRITE_EXACT)
            image_construct(image, &program.originals, options.argument_count, arguments);
    }
    int status = ((program_main *)entry)(options.argument_count, arguments, environ);
    destruct_current();
    return status;
}

/* A rank that calls exit() ends as if its main had returned; the process goes on for the others. */
__attribute__((noreturn)) void exit(int status) {
    if (rank_current()) {
        destruct_current();
        rank_exit(status & 0xff);
    }
    void (*libc_exit)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "exit");
    libc_exit(status);
    abort();
}

/* The buffers of the standard streams are the process's: they must not be taken from the first rank that prints. */
static void buffer_streams(void) {
    static char input[BUFSIZ], output[BUFSIZ];
    setvbuf(stdin, input, _IOFBF, sizeof input);
    setvbuf(stdout, output, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof output);
}

static int create_registry(void) {
    uint32_t ranks = (uint32_t)options.ranks;
    struct rank_hooks_capacity capacity = {
        .strings = 1 << 20,
        .objects = 1024,
        .segments = 8192,
        .ranks = ranks,
        .copies = ranks * 64,
        .tls_blocks = ranks,
        .redirections = ranks,
        .roots = ranks,
        .context_registers = 64,
        .calls = 256,
        .blocks = 1 << 20,
    };
    return rank_hooks_create(&capacity);
}

static void describe_job(void) {
    struct rank_debug_header *header = rank_hooks_header();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    rank_hooks_begin();
    header->rank_count = (uint32_t)options.ranks;
    gethostname(header->node, sizeof header->node - 1);
    snprintf(header->job_id, sizeof header->job_id, "%x-%lx-%lx", (unsigned)getpid(), now.tv_sec, now.tv_nsec);
    snprintf(header->method, sizeof header->method, "%s", options.method->name);
    snprintf(header->runtime, sizeof header->runtime, "embedded 1");
    if (options.method->copies)
        snprintf(header->rewrite_mode, sizeof header->rewrite_mode, "%s",
                 options.rewrite == REWRITE_SCAN ? "scan" : "exact");
    context_describe();
    rank_hooks_add_call("");
    rank_hooks_commit();
    mpi_register_calls();
}

static void describe_program(void) {
    const struct originals *originals = &program.originals;
    struct rank_debug_header *header = rank_hooks_header();
    rank_hooks_begin();
    objects_register(&originals->objects);
    if (options.method->copies && options.rewrite == REWRITE_SCAN) {
        header->constructor_heap = originals->heap_start;
        header->constructor_heap_size = originals->heap_size;
        for (size_t i = 0; i < originals->block_count; i++)
            rank_hooks_add_block(&originals->blocks[i]);
    }
    rank_hooks_commit();
}

static void describe_rank(int number, const struct image *image) {
    struct rank_debug_rank rank = {
        .rank = number,
        .state = RANK_DEBUG_STATE_STARTING,
        .processing_element = ranks_element_of(number),
        .range_start = range_start((uint32_t)number),
        .range_size = range_size(),
        .stack_start = image->stack_start,
        .stack_size = image->stack_size,
        .heap_start = image->heap ? heap_start(image->heap) : 0,
        .wait_peer = -2,
        .wait_tag = -2,
    };
    rank_hooks_begin();
    struct rank_debug_rank *record = rank_hooks_rank(rank_hooks_add_rank(&rank));
    for (int i = 0; image->copies && i < program.originals.objects.count; i++)
        rank_hooks_add_copy(&(struct rank_debug_copy){number, (uint32_t)i, image->copies[i]});
    if (image->heap)
        heap_publish(image->heap, record);
    rank_hooks_commit();
    ranks_add(number, record, image->heap, run_program, (void *)(uintptr_t)image);
}

static void make_images(void) {
    struct image_plan plan = {
        .originals = program.originals,
        .mode = options.rewrite,
        .stack_size = options.stack_size,
        .constructor_heap = program.constructor_heap,
    };
    if (options.rewrite_log && !(plan.log = fopen(options.rewrite_log, "we")))
        rank_job_abort(2, "the file for --rewrite-log can't be written");
    if (options.method->copies)
        plan.rewrites = rewrites_find(&plan.originals, plan.mode);
    rank_debug_event(RANK_DEBUG_EVENT_BEFORE_COPIES, -1);
    for (int i = 0; i < options.ranks; i++) {
        if (image_make(&images[i], &plan, i, options.method->copies))
            rank_job_abort(2, "no room for a rank's image; use fewer ranks or a larger --range-size");
        describe_rank(i, &images[i]);
    }
    rank_debug_event(RANK_DEBUG_EVENT_AFTER_COPIES, -1);
    for (int i = 0; i < options.ranks; i++)
        rank_debug_event(RANK_DEBUG_EVENT_CREATED, i);
    if (plan.log && fclose(plan.log))
        rank_job_abort(2, "the file for --rewrite-log can't be written");
}

int rank_runtime_main(int argc, char **argv) {
    options = options_parse(argc, argv);
    buffer_streams();
    images = calloc((size_t)options.ranks, sizeof *images);
    if (!images || create_registry() || ranks_prepare(options.ranks, options.elements))
        rank_job_abort(2, "memory for the ranks can't be had");
    if (ranges_reserve((uint32_t)options.ranks, options.range_size))
        rank_job_abort(2, "the ranks' address ranges can't be had; use fewer ranks or a smaller --range-size");
    describe_job();
    program = program_load(options.arguments[0], (uint32_t)options.ranks);
    char why[1024];
    if (options.method->refuses(&program.originals, why, sizeof why))
        rank_job_abort(2, why);
    describe_program();
    make_images();
    int status = ranks_run(options.exit_on_deadlock);
    /* The originals' destructors belong to objects that no rank ever used: they are not run. */
    fflush(NULL);
    _exit(status);
}
