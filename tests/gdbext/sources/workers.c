/*
 * workers.c: each rank starts threads of its own, which call work() and, from the C library, compare().
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int own_rank = -1;
int calls;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static int compare(const void *left, const void *right) {
    return *(const int *)left - *(const int *)right;
}

__attribute__((noinline)) static void work(int number) {
    int numbers[] = {3 * own_rank, number};
    calls += 1;
    qsort(numbers, 2, sizeof numbers[0], compare);
}

static void *begin(void *argument) {
    pthread_mutex_lock(&one_at_a_time);
    work(*(int *)argument);
    pthread_mutex_unlock(&one_at_a_time);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    int numbers[] = {10, 20};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, begin, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("rank %d made %d calls\n", own_rank, calls);
    MPI_Finalize();
    return 0;
}
