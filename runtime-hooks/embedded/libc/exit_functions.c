/*
 * exit_functions.c: __cxa_atexit() and on_exit() in front of libc's.
 *
 * libc would keep one list for the whole process, and drop it where the process ends by _exit().  A list's entries are
 * added without a lock, because kernel threads of a rank's own may add some; only the rank that ends takes them off.
 */
#define _GNU_SOURCE
#include "libc/exit_functions.h"
#include "image/method.h"
#include "image/rank_images.h"
#include "libc/current_rank.h"
#include "libc/cxx_streams.h"
#include "libc/second_instance.h"

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

static int add(struct exit_function **list, struct rank_heap *heap, const struct exit_function *what) {
    struct exit_function *one = heap ? heap_allocate(heap, sizeof *one, 16) : __libc_malloc(sizeof *one);
    if (!one)
        return -1;
    *one = *what;
    one->before = __atomic_load_n(list, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(list, &one->before, one, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return 0;
}

/*
 * The rank that is to call it.  Of an object that all ranks use, a rank calls its own functions (atexit), but destroys
 * nothing (they have an argument): others may still use it.  NULL: it is nobody's alone.
 */
static struct image *owner(const struct exit_function *what) {
    struct image *image = rank_image_with_copy(what->object);
    if (image || current_rank() < 0 || !rank_images_is_original(what->object))
        return image;
    return what->argument && !what->takes_status && !rank_images_have_private_pages() ? NULL
                                                                                      : rank_image(current_rank());
}

/* False: it belongs to a library that is no part of the program, which is libc's to call when that is closed. */
static bool register_one(const struct exit_function *what, int *error) {
    if (!has_begun)
        return false;
    struct image *image = is_loading ? NULL : owner(what);
    if (is_loading)
        *error = add(&of_loaded, NULL, what);
    else if (image)
        *error = add(&image->exit_functions, image->heap, what);
    else if (rank_images_is_original(what->object))
        *error = add(&of_all, NULL, what);
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
    if (register_one(&what, &error))
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
    return register_one(&what, &error) ? error : -1;
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
    struct exit_function *one;
    while ((one = __atomic_load_n(list, __ATOMIC_ACQUIRE))) {
        struct exit_function what = *one;
        if (!__atomic_compare_exchange_n(list, &one, what.before, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        struct rank_heap *heap = heap_of(one);
        if (heap)
            heap_release(heap, one);
        else
            __libc_free(one);
        call((uint64_t)what.function, (uint64_t)what.argument, what.takes_status, status);
    }
}

/* What stands in a level of its own (method hls) is called once, as what all ranks use. */
static bool is_shared(const struct exit_function *one, const struct image_plan *plan) {
    return plan->method->is_shared && plan->method->is_shared((uint64_t)one->argument);
}

void exit_functions_call(struct image *image, const struct image_plan *plan, int status) {
    struct copies copies = {image->copies, image->heap ? heap_start(image->heap) : 0};
    call_all(&image->exit_functions, status);
    while (image->originals_left) {
        const struct exit_function *one = image->originals_left;
        image->originals_left = one->before;
        if (is_shared(one, plan))
            continue;
        call(rewrite_address((uint64_t)one->function, &plan->originals, &copies),
             rewrite_address((uint64_t)one->argument, &plan->originals, &copies), one->takes_status, status);
        call_all(&image->exit_functions, status);
    }
}

void exit_functions_call_shared(const struct image_plan *plan, int status) {
    call_all(&of_all, status);
    for (const struct exit_function *one = plan->originals.exit_functions; one; one = one->before)
        if (is_shared(one, plan) || rank_images_is_shared(one->object))
            call((uint64_t)one->function, (uint64_t)one->argument, one->takes_status, status);
}
