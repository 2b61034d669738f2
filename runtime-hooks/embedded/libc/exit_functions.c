/*
 * exit_functions.c: __cxa_atexit() and on_exit() in front of libc's.
 *
 * libc would keep one list for the whole process, and drop it where the process ends by _exit().  A list's entries are
 * added without a lock, because kernel threads of a rank's own may add some; only the rank that ends takes them off.
 */
#define _GNU_SOURCE
#include "libc/exit_functions.h"
#include "image/image_table.h"
#include "image/method.h"
#include "libc/current_rank.h"
#include "libc/cxx_streams.h"
#include "libc/second_runtime_instance.h"

#include <dlfcn.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);
extern int __cxa_atexit(void (*function)(void *), void *argument, void *object);

struct exit_function {
    struct exit_function *before; /* registered before it */
    void *function, *argument;
    const void *object; /* an address in the object that registered it */
    bool takes_status;
};

static struct exit_function *of_loaded, *of_all;
static bool is_loading, has_begun;

void exit_functions_loading(void) {
    of_loaded = NULL;
    is_loading = has_begun = true;
}

struct exit_function *exit_functions_loaded(void) {
    is_loading = false;
    return of_loaded;
}

/* ---- registering ---- */

static int add(struct exit_function **list, struct rank_heap *heap, const struct exit_function *function) {
    struct exit_function *entry = heap ? heap_allocate(heap, sizeof *entry, 16) : __libc_malloc(sizeof *entry);
    if (!entry)
        return -1;
    *entry = *function;
    entry->before = __atomic_load_n(list, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(list, &entry->before, entry, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return 0;
}

/*
 * The rank that is to call it.  Of an object that all ranks use, a rank calls its own functions (atexit), but destroys
 * nothing (they have an argument): others may still use it.  NULL: it is not one rank's alone.
 */
static struct image *owner(const struct exit_function *function) {
    struct image *image = rank_image_with_copy(function->object);
    if (image || current_rank() < 0 || !rank_images_is_original(function->object))
        return image;
    return function->argument && !function->takes_status && !rank_images_have_private_pages()
               ? NULL
               : rank_image(current_rank());
}

/* False: it belongs to a library that is not part of the program, which is libc's to call when that is closed. */
static bool register_function(const struct exit_function *function, int *error) {
    if (!has_begun)
        return false;
    struct image *image = is_loading ? NULL : owner(function);
    if (is_loading)
        *error = add(&of_loaded, NULL, function);
    else if (image)
        *error = add(&image->exit_functions, image->heap, function);
    else if (rank_images_is_original(function->object))
        *error = add(&of_all, NULL, function);
    else
        return false;
    return true;
}

#define PASS_ON(function, ...)                                                                                         \
    if (is_second_instance())                                                                                          \
    return ((__typeof__(&function))first_instance_function((void *)(uintptr_t)function))(__VA_ARGS__)

int __cxa_atexit(void (*function)(void *), void *argument, void *object) {
    PASS_ON(__cxa_atexit, function, argument, object);
    static __typeof__(&__cxa_atexit) real;
    struct exit_function what = {NULL, (void *)(uintptr_t)function, argument, object, false};
    int error;
    if (register_function(&what, &error))
        return error;
    struct rank_heap *heap = heap_here;
    heap_here = NULL; /* libc's list is the process's */
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "__cxa_atexit");
    error = real(function, argument, object);
    heap_here = heap;
    return error;
}

static int add_with_status(void (*function)(int, void *), void *argument, const void *object) {
    PASS_ON(add_with_status, function, argument, object);
    struct exit_function what = {NULL, (void *)(uintptr_t)function, argument, object, true};
    int error;
    return register_function(&what, &error) ? error : -1;
}

int on_exit(void (*function)(int, void *), void *argument) {
    return add_with_status(function, argument, __builtin_return_address(0));
}

/* ---- calling ---- */

/*
 * The streams of libstdc++ are counted: std::ios_base::Init's constructor ran once for all ranks, and its destructor
 * writes them out for the last alone.
 */
static void call(uint64_t function, uint64_t argument, bool takes_status, int status) {
    if (cxx_streams_end_by((void *)function))
        cxx_streams_flush();
    else if (takes_status)
        ((void (*)(int, void *))function)(status, (void *)argument);
    else
        ((void (*)(void *))function)((void *)argument);
}

/* Calls and releases all of a list, the newest first. */
static void call_all(struct exit_function **list, int status) {
    struct exit_function *newest;
    while ((newest = __atomic_load_n(list, __ATOMIC_ACQUIRE))) {
        struct exit_function entry = *newest;
        if (!__atomic_compare_exchange_n(list, &newest, entry.before, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        struct rank_heap *heap = heap_of(newest);
        if (heap)
            heap_release(heap, newest);
        else
            __libc_free(newest);
        call((uint64_t)entry.function, (uint64_t)entry.argument, entry.takes_status, status);
    }
}

/* What stands in a level of its own (method hls) is called once, as what all ranks use. */
static bool is_shared(const struct exit_function *function, const struct image_plan *plan) {
    return plan->method->is_shared && plan->method->is_shared((uint64_t)function->argument);
}

void exit_functions_call(struct image *image, const struct image_plan *plan, int status) {
    struct copies copies = {image->copies, image->heap ? heap_start(image->heap) : 0};
    call_all(&image->exit_functions, status);
    while (image->originals_left) {
        const struct exit_function *function = image->originals_left;
        image->originals_left = function->before;
        if (is_shared(function, plan))
            continue;
        call(rewrite_address((uint64_t)function->function, &plan->originals, &copies),
             rewrite_address((uint64_t)function->argument, &plan->originals, &copies), function->takes_status, status);
        call_all(&image->exit_functions, status);
    }
}

void exit_functions_call_shared(const struct image_plan *plan, int status) {
    call_all(&of_all, status);
    for (const struct exit_function *function = plan->originals.exit_functions; function; function = function->before)
        if (is_shared(function, plan) || rank_images_is_shared(function->object))
            call((uint64_t)function->function, (uint64_t)function->argument, function->takes_status, status);
}
