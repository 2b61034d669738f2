/*
 * Where a program begins that was started by itself, without rankrun: it is a shared object, its relocations are not
 * made, and it has no libc.  Says how it is started and ends with 2, where it would die of a fault at its first byte.
 *
 * rankcc makes it the file's entry.  In assembler, text and all, so that programs get nothing but these bytes of code:
 * what else a compiler adds would move their constants and unwind tables.
 */
#include <sys/syscall.h>

#define TEXT_OF(number) #number
#define NUMBER(number) TEXT_OF(number)

#if defined(__x86_64__)
#define CALL_KERNEL                                                                                                    \
    "    mov $" NUMBER(SYS_write) ", %eax\n"                                                                           \
                                  "    mov $2, %edi\n"                                                                 \
                                  "    lea 1f(%rip), %rsi\n"                                                           \
                                  "    mov $2f - 1f, %edx\n"                                                           \
                                  "    syscall\n"                                                                      \
                                  "    mov $" NUMBER(SYS_exit_group) ", %eax\n"                                        \
                                                                     "    mov $2, %edi\n"                              \
                                                                     "    syscall\n"
#elif defined(__aarch64__)
#define CALL_KERNEL                                                                                                    \
    "    mov x8, #" NUMBER(SYS_write) "\n"                                                                             \
                                      "    mov x0, #2\n"                                                               \
                                      "    adr x1, 1f\n"                                                               \
                                      "    mov x2, #2f - 1f\n"                                                         \
                                      "    svc #0\n"                                                                   \
                                      "    mov x8, #" NUMBER(SYS_exit_group) "\n"                                      \
                                                                             "    mov x0, #2\n"                        \
                                                                             "    svc #0\n"
#endif

__asm__("    .text\n"
        "    .globl rank_program_started_alone\n"
        "    .hidden rank_program_started_alone\n"
        "    .type rank_program_started_alone, %function\n"
        "rank_program_started_alone:\n" CALL_KERNEL
        "1:  .ascii \"this is a program for rankrun: start it by `rankrun -n RANKS PROGRAM`\\n\"\n"
        "2:  .size rank_program_started_alone, . - rank_program_started_alone\n");
