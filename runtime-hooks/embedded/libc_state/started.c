/*
 * Where a program begins that was started by itself, without rankrun: it is a shared object, its relocations are not
 * made, and it has no libc.  Says how it is started, and ends, where it would die of a fault at its first byte.
 */
#include <stddef.h>
#include <sys/syscall.h>

#define STANDARD_ERROR 2
#define BAD_CALL 2

static const char advice[] = "this is a program for rankrun: start it by `rankrun -n RANKS PROGRAM`\n";

static void call_kernel(long number, long first, const void *second, size_t third) {
    __asm__ volatile("syscall" : "+a"(number) : "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
}

/* The entry of the file, by rankcc's `-e`. */
__attribute__((visibility("hidden"), noreturn)) void rank_program_started_alone(void) {
    call_kernel(SYS_write, STANDARD_ERROR, advice, sizeof advice - 1);
    for (;;)
        call_kernel(SYS_exit_group, BAD_CALL, NULL, 0);
}
