/* A library with a global of its own. */
int own_count = 5;
int own_step(int by) {
    own_count += by;
    return own_count;
}
