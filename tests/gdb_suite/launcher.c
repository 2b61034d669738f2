/* launcher.c: PROGRAM.rankrun/PATH/OF/PROGRAM ARGUMENTS is `rankrun -n 3 PROGRAM ARGUMENTS`, so that a test may set all
 * arguments. A program with thread-local variables, which the default method refuses, is loaded once for every rank
 * instead. */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define ENDING ".rankrun/"
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

int rank_runtime_main(int argc, char **argv);

static bool has_thread_locals(const char *program) {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    bool found = false;
    int file = open(program, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    if (pread(file, &header, sizeof header, 0) == sizeof header)
        for (int at = 0; at < header.e_phnum && !found; at++)
            found = pread(file, &segment, sizeof segment, (off_t)(header.e_phoff + (Elf64_Off)at * sizeof segment)) ==
                        sizeof segment &&
                    segment.p_type == PT_TLS;
    close(file);
    return found;
}

int main(int argc, char **argv) {
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return 2;
    program[length] = '\0';
    char *end = strstr(program, ENDING);
    if (!end)
        return 2;
    *end = '\0';
    char *first[] = {"rankrun", "-n", "3", "--method", has_thread_locals(program) ? "fs" : "pie", program};
    char *arguments[COUNT(first) + argc];
    memcpy(arguments, first, sizeof first);
    memcpy(arguments + COUNT(first), argv + 1, (size_t)argc * sizeof *argv);
    return rank_runtime_main(COUNT(first) + argc - 1, arguments);
}
