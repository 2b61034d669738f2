// places.cpp: as places.c, with what C++ adds: namespaces, templates, virtual functions, constructors that allocate.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace app {
int total = 3;
std::vector<int> history = {1, 2, 3};

template <typename T> struct Box { static T shared; };
template <typename T> T Box<T>::shared = 7;

struct Shape {
    virtual ~Shape() = default;
    virtual int corners() const {
        return 0;
    }
};
struct Square : Shape {
    int corners() const override {
        return 4;
    }
};

int work(int by) {
    static int calls = 0;
    return calls += by;
}
int *calls_of_work = nullptr;
} // namespace app

namespace {
int hidden = 4;
app::Square square;

int rank;

void place(const char *kind, const char *name, const void *address) {
    std::printf("place %d %s %s 0 %p\n", rank, kind, name, address);
}

const void *code_of(int (*function)(int)) {
    const void *address;
    std::memcpy(&address, &function, sizeof address);
    return address;
}
} // namespace

int main(int argc, char **argv) {
    int unused, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    place("data", "app::total", &app::total);
    place("data", "app::history", &app::history);
    place("data", "app::Box<int>::shared", &app::Box<int>::shared);
    place("data", "(anonymous namespace)::hidden", &hidden);
    place("code", "app::work(int)", code_of(app::work));
    place("heap", "-", app::history.data());
    const char *table;
    std::memcpy(&table, static_cast<const void *>(&square), sizeof table);
    place("data", "vtable for app::Square", table - 16);
    std::fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        std::puts("ready");
        std::fflush(stdout);
    }
    MPI_Recv(&unused, 1, MPI_INT, (rank + 1) % ranks, 7 + app::work(0), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return square.corners();
}
