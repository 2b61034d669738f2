/*
 * paths.cpp: a C++ program whose every rank goes its own deterministic way through calls, loops and MPI.
 *
 * It takes the number of turns. Nothing in it depends on how fast ranks are.
 */
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

int my_rank = -1;
int ranks;
long total;
static int depth_reached;

/* What is called next finds 0 where its variables will be: whoever looks at them too early sees the same everywhere. */
__attribute__((noinline)) static void clear_stack() {
    char below[8192];
    std::memset(below, 0, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

namespace field {

struct Cell {
    virtual ~Cell() = default;
    virtual long weight(int n) const = 0;
    int id = 3;
};

struct Plain : Cell {
    long weight(int n) const override {
        long sum = id;
        for (int i = 0; i < n % 3 + 1; i++)
            sum += i * my_rank;
        return sum;
    }
};

struct Twofold : Cell {
    static int built;
    std::array<int, 3> parts{{1, 2, 3}};
    Twofold() {
        built++;
    }
    long weight(int n) const override {
        Plain inner;
        inner.id = parts[static_cast<std::size_t>(n) % 3];
        clear_stack();
        return 2 * inner.weight(n);
    }
};
int Twofold::built = 0;

template <typename T> T mixed(T first, T second) {
    T between = first + second;
    between += my_rank;
    return between / 2;
}

} // namespace field

__attribute__((noinline)) static int descend(int n) {
    depth_reached = n;
    if (n <= 0)
        return my_rank;
    clear_stack();
    int below = descend(n - 1);
    return below + n;
}

__attribute__((noinline)) int pass_on(int value) {
    int right = (my_rank + 1) % ranks, left = (my_rank + ranks - 1) % ranks;
    MPI_Sendrecv_replace(&value, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return value;
}

__attribute__((noinline)) void turn(int number) {
    field::Plain plain;
    field::Twofold twofold;
    std::vector<const field::Cell *> cells{&plain, &twofold};
    clear_stack();
    for (const field::Cell *cell : cells) {
        clear_stack(); // iterators have left addresses there
        total += cell->weight(number);
        clear_stack(); // no inlined function begins where a watched `total` has changed: GCC 15 inlines iterators
    }
    int got = pass_on(number + 10 * my_rank);
    clear_stack();
    double mean = field::mixed(0.5 * got, 1.0);
    auto add = [got](int more) { return got + more; };
    clear_stack();
    int deep = descend(number % 3 + my_rank % 2);
    std::string word = "turn " + std::to_string(add(deep));
    if ((number + my_rank) % 2 == 0)
        MPI_Barrier(MPI_COMM_SELF);
    total += static_cast<long>(word.size()) + static_cast<long>(mean);
    int most = 0;
    MPI_Allreduce(&deep, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    total += most;
}

int main(int argc, char **argv) {
    int turns = argc > 1 ? std::atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int number = 0; number < turns; number++) {
        clear_stack();
        turn(number);
    }
    std::printf("rank %d: %ld\n", my_rank, total);
    MPI_Finalize();
}
