// planted_cxx.cpp: what C++ keeps addresses in: virtual tables, strings, trees, and objects built in plain bytes.
//
// Everything is made by constructors at load time.  The ranks meet, rank 0 prints "ready", and all wait for ever.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mpi.h>
#include <new>
#include <string>
#include <vector>

namespace app {
long anchor[8];

struct Shape {
    explicit Shape(long *where) : place(where) {}
    virtual ~Shape() = default;
    virtual long value() const {
        return *place;
    }
    long *place;
};

struct Circle : Shape {
    using Shape::Shape;
    long value() const override {
        return *place + 1;
    }
};

Circle circle(&anchor[1]);                                       // a virtual table's address in data
Shape *shape = new Circle(&anchor[2]);                           // and in a block that a constructor allocated
alignas(8) unsigned char raw[sizeof(Circle)];                    // bytes by type, an object in truth
Shape *in_raw = new (raw) Circle(&anchor[3]);                    // the pointer to it
std::string text = "short";                                      // points into itself
std::map<int, long *> tree = {{1, &anchor[4]}, {2, &anchor[5]}}; // nodes point to the header in data
std::vector<Shape *> list = {&circle, shape};
long Shape::*const *unused_member = nullptr;
long (Shape::*method)() const = &Shape::value;
volatile long eight = 8; // computed at load time, or it would be a relocation
long planted_integer = static_cast<long>(reinterpret_cast<std::uintptr_t>(&anchor[6])) + eight;

#pragma pack(push, 1)
struct Packet {
    char kind;
    Shape *shape;
};
#pragma pack(pop)
Packet packet = {'c', &circle};
} // namespace app

int main(int argc, char **argv) {
    int rank = 0;
    int unused = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    app::anchor[1] = rank;
    long sum = app::circle.value() + app::shape->value() + app::in_raw->value() + (app::circle.*app::method)();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("ready %ld\n", sum);
        std::fflush(stdout);
    }
    MPI_Recv(&unused, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return unused;
}
