/*
 * lists.cpp: each rank fills containers of its own; then one rank sleeps in libc, and the others wait.
 */
#include <list>
#include <map>
#include <mpi.h>
#include <string>
#include <unistd.h>

static std::list<int> numbers;
static std::map<int, std::string> names;
static struct { unsigned low : 3, high : 5; } bits;

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5; i++)
        numbers.push_back(10 * rank + i);
    names[rank] = "name";
    bits.low = 5;
    bits.high = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
