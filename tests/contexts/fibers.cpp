// Suspends four fibers, each three calls deep, says where their contexts are, and lets them go on once it is told to.
// No MPI, and nothing of this project.
#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fiber.hpp>
#include <csetjmp>
#include <cstdio>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>
#include <utility>

namespace detail = boost::context::detail;

static const size_t stack_size = 64 * 1024;
static char stacks[3][stack_size] __attribute__((aligned(16)));
static int sum;
static volatile int go, started;

// ---- fcontext, as Boost.Context has it within ----

static detail::fcontext_t main_fcontext;

static int leaf_fcontext(int turn) {
    int local = turn * 10;
    detail::transfer_t back = detail::jump_fcontext(main_fcontext, nullptr);
    main_fcontext = back.fctx;
    return local + 1;
}

static int middle_fcontext(int turn) {
    return leaf_fcontext(turn + 1) + 1;
}

static void enter_fcontext(detail::transfer_t from) {
    main_fcontext = from.fctx;
    sum += middle_fcontext(1);
    detail::jump_fcontext(main_fcontext, nullptr);
}

// ---- boost::context::fiber ----

static int leaf_fiber(boost::context::fiber &other, int turn) {
    int local = turn * 100;
    other = std::move(other).resume();
    return local + 1;
}

static int middle_fiber(boost::context::fiber &other, int turn) {
    return leaf_fiber(other, turn + 1) + 1;
}

static boost::context::fiber enter_fiber(boost::context::fiber &&other) {
    sum += middle_fiber(other, 2);
    return std::move(other);
}

// ---- ucontext ----

static ucontext_t main_ucontext, fiber_ucontext, fresh_ucontext;

static int leaf_ucontext(int turn) {
    int local = turn * 1000;
    swapcontext(&fiber_ucontext, &main_ucontext);
    return local + 1;
}

static int middle_ucontext(int turn) {
    return leaf_ucontext(turn + 1) + 1;
}

static void enter_ucontext() {
    sum += middle_ucontext(3);
}

// ---- jmp_buf: a stack made by makecontext, switched by setjmp and longjmp ----

static jmp_buf main_jmp_buf, fiber_jmp_buf;
static ucontext_t begin_jmp_buf, unused;

static int leaf_jmp_buf(int turn) {
    volatile int local = turn * 10000;
    if (!_setjmp(fiber_jmp_buf))
        _longjmp(main_jmp_buf, 1);
    return local + 1;
}

static int middle_jmp_buf(int turn) {
    return leaf_jmp_buf(turn + 1) + 1;
}

static void enter_jmp_buf() {
    sum += middle_jmp_buf(4);
    _longjmp(main_jmp_buf, 1);
}

static void make(ucontext_t *context, int number, void (*enter)()) {
    getcontext(context);
    context->uc_stack.ss_sp = stacks[number];
    context->uc_stack.ss_size = stack_size;
    context->uc_link = &main_ucontext;
    makecontext(context, enter, 0);
}

static void hold(void) {
    while (!go)
        usleep(1000);
}

static void *other_thread(void *nothing) {
    started = 1;
    while (!go)
        usleep(1000);
    return nothing;
}

int main() {
    pthread_t other;
    pthread_create(&other, nullptr, other_thread, nullptr);
    while (!started)
        usleep(1000);
    detail::fcontext_t fctx = detail::make_fcontext(stacks[0] + stack_size, stack_size, enter_fcontext);
    fctx = detail::jump_fcontext(fctx, nullptr).fctx;
    boost::context::fiber fiber(enter_fiber);
    fiber = std::move(fiber).resume();
    make(&fiber_ucontext, 1, enter_ucontext);
    swapcontext(&main_ucontext, &fiber_ucontext);
    make(&begin_jmp_buf, 2, enter_jmp_buf);
    if (!_setjmp(main_jmp_buf))
        swapcontext(&unused, &begin_jmp_buf);
    make(&fresh_ucontext, 1, enter_ucontext); // its stack is in use: it must not be entered
    printf("fcontext fcontext %p\n", fctx);
    printf("fiber fcontext %p\n", *reinterpret_cast<void **>(&fiber));
    printf("ucontext ucontext %p\n", static_cast<void *>(&fiber_ucontext));
    printf("jmp_buf jmp_buf %p\n", static_cast<void *>(&fiber_jmp_buf));
    printf("held\n");
    fflush(stdout);
    hold();
    detail::jump_fcontext(fctx, nullptr);
    fiber = std::move(fiber).resume();
    swapcontext(&main_ucontext, &fiber_ucontext);
    if (!_setjmp(main_jmp_buf))
        _longjmp(fiber_jmp_buf, 1);
    pthread_join(other, nullptr);
    printf("sum %d\n", sum);
    return sum == 20 + 300 + 4000 + 50000 + 4 * 2 ? 0 : 1;
}
