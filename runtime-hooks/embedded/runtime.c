/*
 * runtime.c: from the command line to running ranks: loads the program, makes the images, fills the registry.
 *
 * Everything happens in the order of rank_runtime_main(); each step is a module of its own.
 */
#define _GNU_SOURCE
#include "runtime.h"
#include "context.h"
#include "image.h"
#include "methods/method.h"
#include "options.h"
#include "program.h"
#include "ranges.h"
#include "rank_hooks.h"
#include "ranks.h"
#include "scheduler.h"
#include "shared.h"
#include "start_again.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern void mpi_prepare(void);

typedef int program_main(int argc, char **argv, char **environment);

static struct options options;
static struct program program;
static struct image_plan plan;
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
    const struct image *image = &images[rank_number(rank_current())];
    image_destruct(image, &plan.originals);
    if (options.method->end)
        options.method->end(image);
}

/* On the rank's own kernel thread, which it never leaves. */
static void describe_thread_local(const struct image *image, int rank) {
    for (int i = 0; i < program.originals.objects.count; i++) {
        const struct object *object = &program.originals.objects.items[i];
        unsigned long copy = image->modules ? image->modules[i] : 0;
        if (!object->tls_module)
            continue;
        rank_hooks_begin();
        rank_hooks_add_tls_block(&(struct rank_debug_tls_block){
            .rank = rank,
            .object = (uint32_t)i,
            .kind = RANK_DEBUG_TLS_BLOCK,
            .level = copy || options.method->is_kernel_task ? RANK_DEBUG_TLS_LEVEL_RANK : RANK_DEBUG_TLS_LEVEL_THREAD,
            .address = tls_block(copy ? copy : object->tls_module),
            .size = object->tls_size,
        });
        rank_hooks_commit();
    }
}

static int run_program(void *argument) {
    const struct image *image = argument;
    char **arguments = copy_arguments();
    if (!arguments)
        rank_job_abort(2, "a rank's range has no room for its arguments; use a larger --range-size");
    if (!options.method->has_thread_pointers)
        describe_thread_local(image, rank_number(rank_current()));
    if (options.method->begin)
        options.method->begin(image);
    if (options.method->byte_copies && options.rewrite == REWRITE_EXACT)
        image_construct(image, &plan.originals, options.argument_count, arguments);
    program_main *entry = (program_main *)image_main(image, &plan);
    int status = entry(options.argument_count, arguments, environ);
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

/*
 * The buffers of the standard streams are the process's: they must not be taken from the first rank that prints, nor be
 * shared with other processes.
 */
static void buffer_streams(void) {
    char *input = malloc(BUFSIZ), *output = malloc(BUFSIZ);
    if (!input || !output)
        rank_job_abort(2, "memory for the standard streams can't be had");
    setvbuf(stdin, input, _IOFBF, BUFSIZ);
    bool lines = isatty(STDOUT_FILENO) || options.method->has_private_pages; /* other processes write as well */
    setvbuf(stdout, output, lines ? _IOLBF : _IOFBF, BUFSIZ);
}

static int create_registry(void) {
    uint32_t ranks = (uint32_t)options.ranks;
    struct rank_hooks_capacity capacity = {
        .strings = 1 << 20,
        .objects = 1024,
        .segments = 8192,
        .ranks = ranks,
        .copies = ranks * 64,
        .tls_blocks = ranks * 64,
        .redirections = ranks < 4096 ? ranks * 4096 : 1 << 24,
        .roots = ranks * 16,
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
    if (options.method->byte_copies)
        snprintf(header->rewrite_mode, sizeof header->rewrite_mode, "%s",
                 options.rewrite == REWRITE_SCAN ? "scan" : "exact");
    context_describe();
    rank_hooks_add_call("");
    rank_hooks_commit();
    mpi_prepare();
}

static void describe_program(void) {
    const struct originals *originals = &program.originals;
    struct rank_debug_header *header = rank_hooks_header();
    rank_hooks_begin();
    objects_register(&originals->objects);
    if (options.method->byte_copies && options.rewrite == REWRITE_SCAN) {
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
        .address_space = options.method->is_process ? (uint32_t)getpid() : 0, /* until it has a process of its own */
        .heap_start = image->heap ? heap_start(image->heap) : 0,
        .wait_peer = -2,
        .wait_tag = -2,
    };
    rank_hooks_begin();
    struct rank_debug_rank *record = rank_hooks_rank(rank_hooks_add_rank(&rank));
    for (int i = 0; i < program.originals.objects.count; i++)
        if (image->copies[i])
            rank_hooks_add_copy(&(struct rank_debug_copy){number, (uint32_t)i, image->copies[i]});
    if (image->heap)
        heap_publish(image->heap, record);
    if (options.method->describe)
        options.method->describe(image, &plan, number);
    rank_hooks_commit();
    struct rank_work work = {run_program, (void *)(uintptr_t)image, image->heap, image->token};
    ranks_add(number, record, &work);
}

__attribute__((noreturn)) static void refuse_image(int rank, int error) {
    char text[256];
    if (error == ENOMEM)
        snprintf(text, sizeof text,
                 "no room for the image of rank %d: use fewer ranks, a larger --range-size, or a larger "
                 "vm.max_map_count if there are thousands of ranks",
                 rank);
    else
        snprintf(text, sizeof text, "the image of rank %d can't be made: %s", rank, strerror(error));
    rank_job_abort(2, text);
}

static void make_plan(void) {
    plan = (struct image_plan){
        .method = options.method,
        .originals = program.originals,
        .mode = options.rewrite,
        .main = program.main,
        .stack_size = options.stack_size,
        .ranks = options.ranks,
        .elements = options.elements,
        .share_code = options.share_code,
        .constructor_heap = program.constructor_heap,
    };
    char why[1024];
    if (options.method->refuses && options.method->refuses(&plan, why, sizeof why))
        rank_job_abort(2, why);
}

static void make_images(void) {
    if (options.rewrite_log && !(plan.log = fopen(options.rewrite_log, "we")))
        rank_job_abort(2, "the file for --rewrite-log can't be written");
    if (options.method->byte_copies)
        plan.rewrites = rewrites_find(&plan.originals, plan.mode, plan.share_code);
    rank_debug_event(RANK_DEBUG_EVENT_BEFORE_COPIES, -1);
    for (int i = 0; i < options.ranks; i++) {
        int error = image_make(&images[i], &plan, i);
        if (error)
            refuse_image(i, error);
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
    start_again(&options, argv);
    buffer_streams();
    images = calloc((size_t)options.ranks, sizeof *images);
    bool pages = options.method->has_private_pages;
    uint32_t count = (uint32_t)options.ranks;
    if (ranges_reserve(count, options.range_size, pages))
        rank_job_abort(2, "the ranks' address ranges can't be had; use fewer ranks or a smaller --range-size");
    if (!images || (pages && shared_begin(count + 1)) || create_registry() ||
        ranks_prepare(options.ranks, options.elements, options.method))
        rank_job_abort(2, "memory for the ranks can't be had");
    describe_job();
    program = program_load(options.arguments[0], (uint32_t)options.ranks);
    make_plan();
    describe_program();
    make_images();
    int status = ranks_run(options.exit_on_deadlock);
    /* The originals' destructors belong to objects that no rank ever used: they are not run. */
    fflush(NULL);
    _exit(status);
}
