/* in_process.c: what the main of every program of the suite is called by, in a process and in a rank. With HOLD in the
 * environment it stops before, for a debugger. The kernel enters begin_in_process in either's program, so that one for
 * ranks is an ordinary process where it is started without rankrun. */
#include <stdlib.h>

#define HOLD "RANKLENS_SUITE_HOLD"

int main(int argc, char **argv, char **environment);
int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void),
                      void *);

__attribute__((noinline)) int main_in_process(int argc, char **argv, char **environment) {
    if (getenv(HOLD))
        __asm__ volatile("int3"); // no function of a library, whose source would be the one to list
    return main(argc, argv, environment);
}

__attribute__((used)) static void begin_alone(long *stack, void (*at_exit)(void)) {
    __libc_start_main(main_in_process, (int)stack[0], (char **)(stack + 1), NULL, NULL, at_exit, stack);
}

// What the kernel enters, by the System V ABI for x86-64: the arguments on the stack, the loader's function in %rdx.
__asm__(".text\n.globl begin_in_process\n.type begin_in_process, @function\nbegin_in_process:\n"
        "xor %ebp, %ebp\nmov %rsp, %rdi\nmov %rdx, %rsi\nand $-16, %rsp\ncall begin_alone\nhlt\n");
