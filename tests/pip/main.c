/* A task of Process-in-Process: tests/tasks/task.c, told its number by PiP. */
#include <pip/pip.h>

int task_main(int me);

int main(void) {
    int me;
    return pip_init(&me, NULL, NULL, 0) ? 2 : task_main(me);
}
