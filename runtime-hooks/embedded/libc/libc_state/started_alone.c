/*
 * started_alone.c: the entry of a program that was started directly, without rankrun.
 *
 * It is a shared object then, its relocations are not made, and it has no libc: it would die of a fault at its first
 * byte.  Says how it is started, and ends with 2.
 *
 * rankcc makes it the file's entry.  In assembler, text and all, so that programs get nothing but these bytes of code:
 * what else a compiler adds would move their constants and unwind tables.
 */
#include "machine/machine.h"

#include <sys/syscall.h>

#define TEXT_OF(number) #number
#define NUMBER(number) TEXT_OF(number)

__asm__(
    "    .text\n"
    "    .globl rank_program_started_alone\n"
    "    .hidden rank_program_started_alone\n"
    "    .type rank_program_started_alone, %function\n"
    "rank_program_started_alone:\n" MACHINE_WRITE_AND_EXIT(
        NUMBER(SYS_write),
        NUMBER(
            SYS_exit_group)) "1:  .ascii \"this is a program for rankrun: start it by `rankrun -n RANKS PROGRAM`\\n\"\n"
                             "2:  .size rank_program_started_alone, . - rank_program_started_alone\n");
