/* many.cpp: MPI from C++, for any number of ranks: objects with state per rank, lambdas as operations, exceptions. */
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mpi.h>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

template <typename T> MPI_Datatype type_of();
template <> MPI_Datatype type_of<int>() {
    return MPI_INT;
}
template <> MPI_Datatype type_of<double>() {
    return MPI_DOUBLE;
}
template <> MPI_Datatype type_of<bool>() {
    return MPI_CXX_BOOL;
}

struct Cell {
    double weight;
    int owner;
    char kind;
};

class World {
  public:
    World(int *argc, char ***argv) {
        MPI_Init(argc, argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    World(const World &) = delete;
    World &operator=(const World &) = delete;
    ~World() {
        MPI_Finalize();
    }
    int rank = -1;
    int size = 0;
};

std::map<std::string, int> counters{{"made", 1}}; /* made by a constructor, changed by every rank */
int current_rank;

template <typename T> T fold(T value, MPI_Op op) {
    T result{};
    MPI_Allreduce(&value, &result, 1, type_of<T>(), op, MPI_COMM_WORLD);
    return result;
}

/* Everybody to everybody, counts that differ. */
long exchange(const World &world) {
    std::vector<int> counts(world.size), offsets(world.size), back(world.size), places(world.size);
    for (int i = 0; i < world.size; i++)
        counts[i] = (world.rank + i) % 4;
    MPI_Alltoall(counts.data(), 1, MPI_INT, back.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
    std::exclusive_scan(back.begin(), back.end(), places.begin(), 0);
    std::vector<int> out(offsets.back() + counts.back(), world.rank), in(places.back() + back.back());
    MPI_Alltoallv(out.data(), counts.data(), offsets.data(), MPI_INT, in.data(), back.data(), places.data(), MPI_INT,
                  MPI_COMM_WORLD);
    return std::accumulate(in.begin(), in.end(), 0L);
}

Cell heaviest(const World &world) {
    const int lengths[] = {1, 1, 1};
    const MPI_Aint offsets[] = {offsetof(Cell, weight), offsetof(Cell, owner), offsetof(Cell, kind)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    MPI_Datatype cell;
    MPI_Type_create_struct(3, lengths, offsets, types, &cell);
    MPI_Type_commit(&cell);
    MPI_Op op;
    MPI_Op_create(
        [](void *in, void *inout, int *count, MPI_Datatype *) {
            auto *a = static_cast<Cell *>(in), *b = static_cast<Cell *>(inout);
            for (int i = 0; i < *count; i++)
                if (a[i].weight > b[i].weight)
                    b[i] = a[i];
            if (counters["rank"] != current_rank)
                std::printf("%d runs another rank's operation\n", current_rank);
        },
        1, &op);
    Cell mine{double((world.rank * 37) % 101), world.rank, char('a' + world.rank % 26)}, best{};
    MPI_Allreduce(&mine, &best, 1, cell, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    MPI_Type_free(&cell);
    return best;
}

/* A token goes round; a rank that gets it throws through frames of its own code. */
int relay(const World &world) {
    int token = 0;
    if (world.rank > 0)
        MPI_Recv(&token, 1, MPI_INT, world.rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    try {
        throw std::out_of_range(std::to_string(token + world.rank));
    } catch (const std::out_of_range &error) {
        token = std::stoi(error.what());
        if (world.rank + 1 < world.size)
            MPI_Send(&token, 1, MPI_INT, world.rank + 1, 5, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return token;
}

int halves(const World &world) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, -world.rank, &half);
    int place, first = world.rank;
    MPI_Comm_rank(half, &place);
    MPI_Bcast(&first, 1, MPI_INT, 0, half);
    MPI_Comm_free(&half);
    return 1000 * place + first;
}

} // namespace

int main(int argc, char **argv) {
    World world(&argc, &argv);
    current_rank = world.rank;
    counters["rank"] = world.rank;
    std::printf("%d sum %d max %g any %d all %d\n", world.rank, fold(world.rank, MPI_SUM),
                fold(world.rank * 0.5, MPI_MAX), int(fold(world.rank == 1, MPI_LOR)),
                int(fold(world.rank >= 0, MPI_LAND)));
    std::printf("%d exchange %ld\n", world.rank, exchange(world));
    Cell best = heaviest(world);
    std::printf("%d heaviest %g %d %c\n", world.rank, best.weight, best.owner, best.kind);
    std::printf("%d relay %d\n", world.rank, relay(world));
    std::printf("%d halves %d\n", world.rank, halves(world));
    std::vector<std::unique_ptr<int>> boxes(world.rank + 1);
    std::generate(boxes.begin(), boxes.end(), [] { return std::make_unique<int>(counters["made"]++); });
    std::printf("%d boxes %d of %d\n", world.rank, *boxes.back(), world.size);
    return 0;
}
