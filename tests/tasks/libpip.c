/* What a debugger may know of libpip: two variables of its own, one pair in each linker namespace. */
static void *volatile pip_root, *volatile pip_task;

void stand_in_set(void *root, void *task) {
    pip_root = root;
    pip_task = task;
}

void *stand_in_get(void) {
    return pip_root ? pip_task : 0;
}
