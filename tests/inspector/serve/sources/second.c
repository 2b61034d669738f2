/* second.c: a library with a thread-local variable, which own.c loads as it runs. */
_Thread_local int second = 9;

int *second_here(void) {
    return &second;
}
