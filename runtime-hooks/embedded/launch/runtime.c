/*
 * runtime.c: from the command line to running ranks: loads the program, makes the images, fills the registry.
 *
 * Everything happens in the order of rank_runtime_main(); each step is a module of its own.
 */
#define _GNU_SOURCE
#include "launch/runtime.h"
#include "image/image.h"
#include "image/method.h"
#include "image/object_byte_copies.h"
#include "image/ranges.h"
#include "image/shared_heap.h"
#include "job/checkpoint.h"
#include "job/hosts.h"
#include "job/launcher.h"
#include "job/loaded_files.h"
#include "job/migration.h"
#include "job/process.h"
#include "launch/options.h"
#include "launch/program.h"
#include "launch/reexec.h"
#include "mpi/calls/library_start.h"
#include "rank_hooks.h"
#include "ranks/context.h"
#include "ranks/crash.h"
#include "ranks/fatal.h"
#include "ranks/kernel_threads.h"
#include "ranks/rank_lifecycle.h"
#include "ranks/scheduler.h"
#include "ranks/user_level_threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct options options;
static struct program program;
static struct image_plan plan;
static char job_id[JOB_ID_SIZE];
static struct checkpoint_job description;

/*
 * The buffers of the standard streams are the process's: they must not be taken from the first rank that prints, nor be
 * shared with other processes.
 */
static void buffer_streams(void) {
    char *input = malloc(BUFSIZ), *output = malloc(BUFSIZ);
    if (!input || !output)
        rank_job_abort(2, "there is not enough memory for the standard streams");
    setvbuf(stdin, input, _IOFBF, BUFSIZ);
    bool several = options.method->has_private_pages || options.processes > 1; /* other processes write as well */
    bool lines = isatty(STDOUT_FILENO) || several;
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
        .events = RANK_HOOKS_EVENTS,
        .loads = ranks,
        .element_loads = (uint32_t)options.elements,
    };
    return rank_hooks_create(&capacity);
}

/* Before there are processes, which have it in common. */
static void name_job(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(job_id, sizeof job_id, "%x-%lx-%lx", (unsigned)getpid(), now.tv_sec, now.tv_nsec);
}

static void describe_job(const struct job *job) {
    struct rank_debug_header *header = rank_hooks_header();
    rank_hooks_begin();
    header->rank_count = (uint32_t)options.ranks;
    gethostname(header->node, sizeof header->node - 1);
    header->process_index = (uint32_t)job->index;
    header->process_count = (uint32_t)job->processes;
    snprintf(header->job_id, sizeof header->job_id, "%s", job_id);
    snprintf(header->method, sizeof header->method, "%s", options.method->name);
    snprintf(header->runtime, sizeof header->runtime, "embedded 1");
    if (options.method->byte_copies)
        snprintf(header->rewrite_mode, sizeof header->rewrite_mode, "%s",
                 options.rewrite == REWRITE_SCAN ? "scan" : "exact");
    context_describe();
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

static void make_plan(void) {
    plan = (struct image_plan){
        .method = options.method,
        .originals = program.originals,
        .mode = options.rewrite,
        .main = program.main,
        .stack_size = options.stack_size,
        .ranks = options.ranks,
        .residents = options_residents(&options),
        .elements = options.elements,
        .share_code = options.share_code,
        .constructor_heap = program.constructor_heap,
    };
    char why[1024];
    if (options.method->refuses && options.method->refuses(&plan, why, sizeof why))
        rank_job_abort(2, why);
    if (options.method->byte_copies)
        plan.rewrites = rewrites_find(&plan.originals, plan.mode, plan.share_code);
}

static void make_ranks(const struct job *job) {
    int first = process_first_rank(job->index), end = process_first_rank(job->index + 1);
    if (options.rewrite_log && !(plan.log = fopen(options.rewrite_log, job->sockets ? "ae" : "we")))
        rank_job_abort(2, "the file for --rewrite-log can't be written");
    if (options.restart)
        checkpoint_restore(options.restart, first, end);
    else
        lifecycle_make_ranks(first, end);
    if (plan.log && fclose(plan.log))
        rank_job_abort(2, "the file for --rewrite-log can't be written");
}

static void write_content(FILE *file) {
    for (int i = 0; i < plan.originals.objects.count; i++) {
        fprintf(file, "content %lx ", byte_copies_digest(&plan, i));
        loaded_encode(file, plan.originals.objects.items[i].path);
        fputc('\n', file);
    }
}

/* What has to be the same on all hosts; pages that do not migrate have to be so byte by byte. */
static const char *describe_loaded(void) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        rank_job_abort(2, "there is not enough memory for the job");
    loaded_write(file, "");
    if (plan.pristine && options.migration == MIGRATE_LEAN)
        write_content(file);
    if (options.restart) {
        fprintf(file, "checkpoint %s %d ", options.restart->job.job_id, options.restart->job.number);
        loaded_encode(file, options.restart->path);
        fputc('\n', file);
    }
    fclose(file);
    return text;
}

/* What a checkpoint will say of this job. */
static void describe_for_checkpoints(void) {
    description = (struct checkpoint_job){
        .ranks = options.ranks,
        .stack_size = options.stack_size,
        .range_size = options.range_size,
        .share_code = options.share_code,
        .program = program.path,
        .argument_count = options.argument_count,
        .arguments = options.arguments,
    };
    snprintf(description.job_id, sizeof description.job_id, "%s", job_id);
    snprintf(description.method, sizeof description.method, "%s", options.method->name);
    snprintf(description.rewrite, sizeof description.rewrite, "%s", options.rewrite == REWRITE_SCAN ? "scan" : "exact");
    checkpoint_guards(description.guards);
}

/* Forks the processes of a job, if it is to have any; returns in each of them. */
static struct job start_job(void) {
    if (!options.processes && !options.checkpoint && !options.restart)
        return (struct job){.ranks = options.ranks, .processes = 1};
    if (options.restart)
        checkpoint_match(options.restart);
    int error = options.checkpoint && site_host() == 0 ? checkpoint_try(options.checkpoint) : 0;
    if (error)
        fatal("checkpoints can't be written to %s: %s", options.checkpoint, strerror(error));
    describe_for_checkpoints();
    if (options.method->byte_copies && !(plan.pristine = byte_copies_pristine(&plan.originals)))
        rank_job_abort(2, "there is not enough memory for the originals' first content");
    struct launch_plan launch_plan = {
        .ranks = options.ranks,
        .processes = options.processes ? options.processes : 1,
        .ranks_can_move = options.method->can_move,
        .exit_on_deadlock = options.exit_on_deadlock,
        .checkpoint = options.checkpoint,
        .every = options.every ? options.every : 60,
        .restart = options.restart,
        .description = &description,
        .job_id = job_id,
        .loaded = site_hosts() > 1 ? describe_loaded() : NULL,
    };
    return launch(&launch_plan);
}

static int open_migration_log(void) {
    int file = options.migration_log
                   ? open(options.migration_log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)
                   : -1;
    if (options.migration_log && file < 0)
        rank_job_abort(2, "the file for --migration-log can't be written");
    return file;
}

int rank_runtime_main(int argc, char **argv) {
    site_begin();
    options = options_parse(argc, argv);
    site_become_transport(options.processes, argv);
    reexec_with_settings(&options, argv);
    buffer_streams();
    bool pages = options.method->has_private_pages;
    uint32_t count = (uint32_t)options.ranks;
    if (ranges_reserve(count, options.range_size, pages))
        rank_job_abort(2, "the ranks' address ranges cannot be reserved; use fewer ranks or a smaller --range-size");
    if (pages && shared_heap_begin(count + 1))
        rank_job_abort(2, "there is not enough memory for the ranks");
    name_job();
    int log = open_migration_log();
    program = program_load(options.restart ? options.restart->job.program : options.arguments[0], count);
    make_plan();
    struct job job = start_job();
    process_join(&job);
    if (create_registry() || ranks_prepare(options.ranks, options.elements, options.method, options.exact_load))
        rank_job_abort(2, "there is not enough memory for the ranks");
    describe_job(&job);
    describe_program();
    lifecycle_prepare(&plan, options.argument_count, options.arguments);
    if (job.sockets) {
        migration_prepare(&plan, options.migration, log);
        checkpoint_prepare();
    }
    make_ranks(&job);
    static int crashed;
    crash_watch(options.method->is_process ? &crashed : job.crashed);
    int status = ranks_run(options.exit_on_deadlock);
    lifecycle_end(status);
    fflush(NULL);
    _exit(status);
}
