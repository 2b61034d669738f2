/* launcher.c: PROGRAM.rankrun ARGUMENTS is `rankrun -n 3 PROGRAM ARGUMENTS`, so that a test may set all arguments. */
#include <string.h>
#include <unistd.h>

#define ENDING ".rankrun"

int rank_runtime_main(int argc, char **argv);

int main(int argc, char **argv) {
    char program[4096];
    char *arguments[argc + 4];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1) - (ssize_t)strlen(ENDING);
    if (length <= 0)
        return 2;
    program[length] = '\0';
    memcpy(arguments, (char *[]){"rankrun", "-n", "3", program}, 4 * sizeof *arguments);
    memcpy(arguments + 4, argv + 1, (size_t)argc * sizeof *arguments);
    return rank_runtime_main(argc + 3, arguments);
}
