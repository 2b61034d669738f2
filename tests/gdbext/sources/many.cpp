// many.cpp: values of every kind, other ones in each rank; even and odd ranks wait in functions of their own.
#include <mpi.h>

#include <cstdio>
#include <list>
#include <map>
#include <string>
#include <vector>

enum Color { RED, GREEN, BLUE };

struct Node {
    int number;
    Node *next;
    const char *text;
    void (*function)(int);
};

struct Counted {
    static int total;
    int own;
};

struct Shape {
    virtual ~Shape() = default;
    double size = 0.5;
};

namespace space {
int seen;
Color color;
} // namespace space

int Counted::total;
int shadowed, rank, numbers[4];
static int hidden;
double ratio;
Node node, *start;
Counted counted;
Shape shape;
Shape *base = &shape;
std::vector<int> several;
std::vector<int *> pointers;
std::map<std::string, int> named;
std::list<double> listed;
std::string text;
int &alias = numbers[2];
int *elsewhere;
char letters[16];

static void call(int n) {
    shadowed += n;
}

struct Waiter {
    int held;
    int shadowed;
    __attribute__((noinline)) void wait(int from) {
        int word = 7 * rank + 1, kept = held + from, *to = &word;
        double share = ratio * kept;
        Node local = {kept, &node, "local", call};
        MPI_Recv(&word, 1, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::printf("%d %f %d %d\n", kept, share, local.number, *to);
    }
};

static Waiter here, there;

__attribute__((noinline)) static void wait_oddly(int from) {
    int shadowed = 1000 + rank, word;
    int hidden = -rank;
    MPI_Recv(&word, 1, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::printf("%d %d\n", shadowed, hidden);
}

int main(int argc, char **argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    shadowed = 10 * rank;
    hidden = 100 * rank;
    ratio = 1.5 * rank;
    space::seen = rank * rank;
    space::color = Color(rank % 3);
    for (int &number : numbers)
        number = rank + int(&number - numbers);
    node = {rank, &node, "a \"0x1\" text", call};
    start = rank % 3 ? &node : nullptr;
    Counted::total = rank;
    counted.own = -rank;
    shape.size = rank;
    for (int i = 0; i < rank; i++) {
        several.push_back(i * rank);
        pointers.push_back(i % 2 ? &numbers[i % 4] : new int(i));
        named["key" + std::to_string(i)] = rank;
        listed.push_back(i + 0.5);
    }
    text = "0x" + std::to_string(rank) + " <name>";
    std::snprintf(letters, sizeof letters, "rank %d", rank);
    here = {rank, 4 * rank};
    there = {2 * rank, 5 * rank};
    if (rank == 0)
        elsewhere = &hidden; // also in the other ranks
    MPI_Bcast(&elsewhere, sizeof elsewhere, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == size - 1) {
        for (int i = 0, is_there; i < 4 * size; i++) // let the others come to where they wait
            MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        std::puts("ready");
        std::fflush(stdout);
        for (;;)
            ratio += 1e-9;
    }
    if (rank % 2)
        wait_oddly(size - 1);
    else
        (rank % 4 ? here : there).wait(size - 1);
    MPI_Finalize();
}
