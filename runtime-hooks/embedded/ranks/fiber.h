/*
 * fiber.h: tells a sanitizer which stack runs; empty in an ordinary build.
 *
 * A switch is fiber_leave() on the old stack, context_switch(), fiber_arrive() on the new one.  What the new stack does
 * for the one that was left, it does before fiber_arrive(): for the thread sanitizer it is still the other's doing.
 */
#ifndef RANK_FIBER_H
#define RANK_FIBER_H

#include <stddef.h>

struct fiber {
    void *shadow; /* the sanitizer's */
    const void *stack;
    size_t size; /* bytes */
};

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>

static inline void fiber_make(struct fiber *fiber, const void *stack, size_t size) {
    *fiber = (struct fiber){NULL, stack, size};
}

/* The kernel thread's own stack is known once a rank has arrived from it: fiber_leave() may come first only from there.
 */
static inline void fiber_of_thread(struct fiber *fiber) {
    *fiber = (struct fiber){0};
}

static inline void fiber_leave(struct fiber *from, const struct fiber *to) {
    __sanitizer_start_switch_fiber(&from->shadow, to->stack, to->size);
}

static inline void fiber_arrive(const struct fiber *self, struct fiber *thread) {
    const void *stack;
    size_t size;
    __sanitizer_finish_switch_fiber(self->shadow, &stack, &size);
    if (!thread->stack)
        thread->stack = stack, thread->size = size;
}

#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

static inline void fiber_make(struct fiber *fiber, const void *stack, size_t size) {
    *fiber = (struct fiber){__tsan_create_fiber(0), stack, size};
}

static inline void fiber_of_thread(struct fiber *fiber) {
    *fiber = (struct fiber){.shadow = __tsan_get_current_fiber()};
}

static inline void fiber_leave(struct fiber *from, const struct fiber *to) {
    (void)from, (void)to;
}

static inline void fiber_arrive(const struct fiber *self, struct fiber *thread) {
    (void)thread;
    __tsan_switch_to_fiber(self->shadow, 0);
}

#else
static inline void fiber_make(struct fiber *fiber, const void *stack, size_t size) {
    (void)fiber, (void)stack, (void)size;
}

static inline void fiber_of_thread(struct fiber *fiber) {
    (void)fiber;
}

static inline void fiber_leave(struct fiber *from, const struct fiber *to) {
    (void)from, (void)to;
}

static inline void fiber_arrive(const struct fiber *self, struct fiber *thread) {
    (void)self, (void)thread;
}
#endif

#endif
