/*
 * same_name_second.c: the other function of the same name.
 */
int second(int turn);

__attribute__((noinline)) static int part(int turn) {
    return turn + 1;
}

int second(int turn) {
    return part(turn);
}
