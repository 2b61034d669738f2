/* Spawns tasks of Process-in-Process, each told its number by PiP alone, and waits for them. */
#include <pip/pip.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    int tasks = count > 2 ? atoi(words[1]) : 0, number, ended;
    if (tasks < 1 || pip_init(NULL, &tasks, NULL, 0))
        return 2;
    printf("MODE %s\n", pip_get_mode_str());
    fflush(stdout);
    for (int i = 0; i < tasks; i++) {
        char *line[] = {words[2], NULL};
        number = tasks - 1 - i; /* not in the order in which the loader loads them */
        if (pip_spawn(words[2], line, NULL, PIP_CPUCORE_ASIS, &number, NULL, NULL, NULL))
            return 3;
    }
    for (int i = 0; i < tasks; i++)
        pip_wait(i, &ended);
    return 0;
}
