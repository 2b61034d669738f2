// Every rank throws and catches its own exception, and switches to others while it handles it.
#include <mpi.h>

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

static std::vector<int> numbers{1, 2, 3};
static std::map<std::string, int> names{{"a", 1}, {"b", 2}};
static std::string text = "short";

struct Base {
    virtual int twice(int value) = 0;
    virtual ~Base() = default;
};
struct Derived : Base {
    int twice(int value) override {
        return 2 * value;
    }
};
static Base *base = new Derived;

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    numbers.push_back(rank);
    names["rank"] = rank;
    text += std::to_string(rank);
    try {
        throw std::runtime_error("of rank " + std::to_string(rank));
    } catch (const std::exception &error) {
        MPI_Barrier(MPI_COMM_WORLD);
        std::printf("%d: %s %d %d %s %d\n", rank, error.what(), numbers.back(), names["rank"], text.c_str(),
                    base->twice(rank));
    }
    MPI_Finalize();
}
