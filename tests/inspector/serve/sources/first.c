/* first.c: a library with thread-local variables, which own.c is linked with. */
_Thread_local long before_first[3] = {1, 2, 3};
_Thread_local int first = 8;

int *first_here(void) {
    return &first + before_first[0] - 1;
}
