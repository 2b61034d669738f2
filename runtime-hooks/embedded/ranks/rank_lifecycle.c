/*
 * rank_lifecycle.c: makes, enters, takes in and gives up ranks; runs their mains.
 */
#define _GNU_SOURCE
#include "ranks/rank_lifecycle.h"
#include "image/image_table.h"
#include "image/method.h"
#include "image/ranges.h"
#include "libc/cxx_streams.h"
#include "libc/exit_functions.h"
#include "libc/open_files.h"
#include "rank_hooks.h"
#include "ranks/client.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int program_main(int argc, char **argv, char **environment);

static const struct image_plan *plan;
static int argument_count;
static char **arguments;
static uint64_t *thread_blocks; /* by element and object: the thread's own thread-local variables; 0: none */

void lifecycle_prepare(const struct image_plan *image_plan, int argc, char **argv) {
    plan = image_plan;
    argument_count = argc;
    arguments = argv;
    thread_blocks = calloc((size_t)plan->elements * (size_t)plan->originals.objects.count, sizeof *thread_blocks);
    if (!thread_blocks || rank_images_prepare(plan))
        rank_job_abort(2, "there is not enough memory for the ranks");
}

/* ---- what a rank runs ---- */

/* What a C program may do with its argument strings, it does with its own. */
static char **copy_arguments(void) {
    char **copy = malloc(((size_t)argument_count + 1) * sizeof *copy);
    for (int i = 0; copy && i < argument_count; i++)
        if (!(copy[i] = strdup(arguments[i])))
            return NULL;
    if (copy)
        copy[argument_count] = NULL;
    return copy;
}

/* The originals that ranks use as they are. */
static void destruct_shared(int status) {
    exit_functions_call_shared(plan, status);
    for (int i = 0; i < plan->originals.objects.count; i++)
        if (!rank_images_have_copy(i))
            original_destruct(&plan->originals.objects.items[i]);
    cxx_streams_flush();
}

static void destruct_current(int status) {
    struct image *image = rank_image(rank_number(rank_current()));
    exit_functions_call(image, plan, status);
    image_destruct(image, &plan->originals);
    if (plan->method->has_private_pages || rank_was_forked())
        destruct_shared(status);
    if (plan->method->end)
        plan->method->end(image);
}

void lifecycle_end(int status) {
    if (!plan->method->has_private_pages)
        destruct_shared(status);
}

/* On the kernel thread that runs the rank, which it does not leave but for another process. */
static void describe_thread_local(const struct image *image, int rank) {
    for (int i = 0; i < plan->originals.objects.count; i++) {
        const struct object *object = &plan->originals.objects.items[i];
        unsigned long copy = image->modules ? image->modules[i] : 0;
        if (!object->tls_module)
            continue;
        rank_hooks_begin();
        rank_hooks_add_tls_block(&(struct rank_debug_tls_block){
            .rank = rank,
            .object = (uint32_t)i,
            .kind = RANK_DEBUG_TLS_BLOCK,
            .level = copy || plan->method->is_kernel_task ? RANK_DEBUG_TLS_LEVEL_RANK : RANK_DEBUG_TLS_LEVEL_THREAD,
            .address = tls_block(copy ? copy : object->tls_module),
            .size = object->tls_size,
        });
        rank_hooks_commit();
    }
}

/*
 * A rank that leaves between MPI_Init and MPI_Finalize, other than by a main that says all is well, ends the job, as
 * under MPICH's mpiexec: with its status, or with 9, that of the processes that mpiexec kills then.
 */
static void refuse_unfinished(int status, bool at_once) {
    char text[160];
    int number = rank_number(rank_current());
    status &= 0xff;
    if ((!status && !at_once) || !rank_client()->is_unfinished(number))
        return;
    snprintf(text, sizeof text,
             "rank %d has left with exit status %d and without MPI_Finalize, and the job ends with it", number, status);
    rank_job_abort(status ? status : 9, text);
}

static int run_program(void *argument) {
    const struct image *image = argument;
    char **rank_arguments = copy_arguments();
    if (!rank_arguments)
        rank_job_abort(2, "a rank's range has no room for its arguments; use a larger --range-size");
    if (!plan->method->has_thread_pointers)
        describe_thread_local(image, rank_number(rank_current()));
    if (plan->method->begin)
        plan->method->begin(image);
    if (plan->method->byte_copies && plan->mode == REWRITE_EXACT)
        image_construct(image, &plan->originals, argument_count, rank_arguments);
    program_main *entry = (program_main *)image_main(image, plan);
    errno = 0; /* as at the start of every program (C11, 7.5) */
    int status = entry(argument_count, rank_arguments, environ);
    if (rank_was_forked())
        exit(status);
    destruct_current(status);
    refuse_unfinished(status, false);
    return status;
}

/* A rank that calls exit() ends as if its main had returned; the process goes on for the others, unless it is one that
 * the rank has forked: libc would end that by what the other ranks' originals want. */
__attribute__((noreturn)) void exit(int status) {
    if (rank_current()) {
        destruct_current(status);
        if (!rank_was_forked()) {
            refuse_unfinished(status, false);
            rank_exit(status);
        }
        open_files_flush();
        _exit(status);
    }
    void (*libc_exit)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "exit");
    libc_exit(status);
    abort();
}

/* At once, without what a program wants called at its end; but the process goes on for the other ranks. */
__attribute__((noreturn)) void _exit(int status) {
    if (rank_current() && !rank_was_forked()) {
        refuse_unfinished(status, true);
        rank_exit(status);
    }
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

__attribute__((noreturn)) void _Exit(int status) {
    _exit(status);
}

/* ---- making them ---- */

/* Where constructors run in the copies, they register for themselves. */
static const struct exit_function *originals_functions(void) {
    return plan->method->byte_copies && plan->mode == REWRITE_SCAN ? plan->originals.exit_functions : NULL;
}

/* Enters the rank and what stays with it wherever it is; between begin and commit. */
static struct rank_debug_rank *lifecycle_enter(const struct rank_debug_rank *rank, const struct image *image) {
    struct rank_debug_rank *record = rank_hooks_rank(rank_hooks_add_rank(rank));
    for (int i = 0; i < plan->originals.objects.count; i++)
        if (image->copies[i]) {
            rank_images_note_copy(i);
            rank_hooks_add_copy(&(struct rank_debug_copy){rank->rank, (uint32_t)i, image->copies[i]});
        }
    return record;
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
        .address_space = plan->method->is_process ? (uint32_t)getpid() : 0, /* until it has a process of its own */
        .heap_start = image->heap ? heap_start(image->heap) : 0,
        .wait_peer = -2,
        .wait_tag = -2,
        .process = rank_hooks_header()->process_index,
    };
    rank_hooks_begin();
    struct rank_debug_rank *record = lifecycle_enter(&rank, image);
    if (image->heap)
        heap_publish(image->heap, record);
    if (plan->method->describe)
        plan->method->describe(image, plan, number);
    rank_hooks_commit();
    struct rank_work work = {run_program, (void *)(uintptr_t)image, image->heap, image->token};
    ranks_add(number, record, &work);
}

__attribute__((noreturn)) static void refuse_image(int rank, int error) {
    char text[256];
    if (error == ENOMEM)
        snprintf(text, sizeof text,
                 "the image of rank %d has no room: use fewer ranks, a larger --range-size, or a larger "
                 "vm.max_map_count if there are thousands of ranks",
                 rank);
    else
        snprintf(text, sizeof text, "the image of rank %d can't be made: %s", rank, strerror(error));
    rank_job_abort(2, text);
}

void lifecycle_make_ranks(int first, int end) {
    rank_hooks_event(RANK_DEBUG_EVENT_BEFORE_COPIES, NULL, RANK_DEBUG_NONE);
    for (int i = first; i < end; i++) {
        int error = image_make(rank_image(i), plan, i);
        if (error)
            refuse_image(i, error);
        rank_image(i)->originals_left = originals_functions();
        describe_rank(i, rank_image(i));
    }
    rank_hooks_event(RANK_DEBUG_EVENT_AFTER_COPIES, NULL, RANK_DEBUG_NONE);
    for (int i = first; i < end; i++)
        rank_hooks_event(RANK_DEBUG_EVENT_CREATED, ranks_record(i), RANK_DEBUG_NONE);
}

/* ---- coming and going ---- */

void lifecycle_element_starts(uint32_t element) {
    const struct object_list *objects = &plan->originals.objects;
    for (int i = 0; i < objects->count; i++)
        if (objects->items[i].tls_module)
            thread_blocks[element * (uint32_t)objects->count + (uint32_t)i] = tls_block(objects->items[i].tls_module);
}

/* The variables of the kernel thread that runs it now, in place of an earlier one's. */
static void describe_threads_blocks(int rank, uint32_t element) {
    const struct object_list *objects = &plan->originals.objects;
    for (int i = 0; i < objects->count; i++) {
        uint64_t address = thread_blocks[element * (uint32_t)objects->count + (uint32_t)i];
        if (!address)
            continue;
        rank_hooks_set_tls_block(&(struct rank_debug_tls_block){
            .rank = rank,
            .object = (uint32_t)i,
            .kind = RANK_DEBUG_TLS_BLOCK,
            .level = RANK_DEBUG_TLS_LEVEL_THREAD,
            .address = address,
            .size = objects->items[i].tls_size,
        });
    }
}

static void describe_arrival(const struct rank_ticket *ticket, const struct image *image) {
    int rank = ticket->record.rank;
    struct rank_work work = {run_program, (void *)(uintptr_t)image, image->heap, image->token};
    struct rank_debug_rank *record = ranks_record(rank);
    rank_hooks_begin();
    if (record)
        *record = ticket->record;
    else
        record = lifecycle_enter(&ticket->record, image);
    record->state = RANK_DEBUG_STATE_STARTING;
    record->process = rank_hooks_header()->process_index;
    record->moves = ticket->moves;
    heap_publish(image->heap, record);
    ranks_arrive(ticket, record, &work);
    describe_threads_blocks(rank, record->processing_element);
    rank_hooks_commit();
}

void lifecycle_take_in(const struct rank_ticket *ticket, bool needs_first_content,
                       void (*content)(void *context, const struct image *image), void *context) {
    int rank = ticket->record.rank;
    struct image *image = rank_image(rank);
    int error = image_place(image, plan, rank, ticket->record.heap_size);
    if (!error && (needs_first_content || plan->share_code))
        error = image_fill(image, plan, rank);
    if (error)
        refuse_image(rank, error);
    content(context, image);
    image->exit_functions = ticket->exit_functions;
    image->originals_left = originals_functions();
    if ((error = image_settle(image, plan)))
        refuse_image(rank, error);
    describe_arrival(ticket, image);
}

void lifecycle_give_up(int rank) {
    image_forget(rank_image(rank), rank);
    ranks_forget(rank);
}
