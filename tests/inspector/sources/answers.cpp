// answers.cpp: the program of a user who asks what differs and what is wrong: 62 globals of C++, most of them
// containers in namespaces and templates. Ranks 13 and 14 wait for one another, all others for these two.
#include <array>
#include <atomic>
#include <complex>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mpi.h>
#include <optional>
#include <set>
#include <stdio.h>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

struct Particle {
    double position[3];
    int kind;
};

template <class T> struct Field {
    static std::vector<T> values, previous;
    static std::string name;
};
template <class T> std::vector<T> Field<T>::values;
template <class T> std::vector<T> Field<T>::previous;
template <class T> std::string Field<T>::name;

// What every rank has the same values in
#define SAME(apply)                                                                                                    \
    apply(std::vector<int>, extents) apply(std::vector<double>, weights) apply(std::vector<std::string>, inputs)       \
        apply(std::string, title) apply(std::string, revision) apply(std::list<int>, stages)                           \
            apply(std::deque<int>, queue) apply(std::set<int>, materials) apply(std::map<int COMMA int>, levels)       \
                apply(std::optional<int>, limit) apply(std::array<int COMMA 4>, stencil)                               \
                    apply(std::unordered_set<int>, enabled) apply(std::complex<double>, phase)                         \
                        apply(std::unordered_map<int COMMA int>, aliases) apply(std::tuple<int COMMA int>, version)
// And what is a function of the rank
#define OWN(apply)                                                                                                     \
    apply(std::vector<int>, ghosts) apply(std::vector<int>, neighbours) apply(std::vector<std::string>, labels)        \
        apply(std::vector<std::vector<int>>, blocks) apply(std::list<int>, halo) apply(std::deque<double>, history)    \
            apply(std::set<int>, owned) apply(std::map<std::string COMMA int>, counters)                               \
                apply(std::optional<int>, leader) apply(std::array<int COMMA 4>, corner)                               \
                    apply(std::unordered_set<int>, pending) apply(std::string, hostname)                               \
                        apply(std::variant<int COMMA double>, mode) apply(std::unique_ptr<int>, cursor)                \
                            apply(std::shared_ptr<int>, plan) apply(std::pair<int COMMA int>, coordinates)             \
                                apply(std::complex<double>, amplitude) apply(std::atomic<int>, ready)

#define COMMA ,
#define DECLARE(type, name) type name;
namespace setup {
SAME(DECLARE)
}
namespace setup::backup {
SAME(DECLARE)
}
namespace fluid {
OWN(DECLARE)
std::vector<Particle> particles;
} // namespace fluid

double residual = 0;
int lost_steps = 0;
int rank = -1, ranks = 0;
std::string_view heading;

static void fill_same() {
    for (int i = 0; i < 20; i++) {
        setup::extents.push_back(i), setup::weights.push_back(i / 4.0), setup::stages.push_back(i);
        setup::inputs.push_back("input" + std::to_string(i)), setup::queue.push_back(i), setup::materials.insert(i);
        setup::levels[i] = i * i, setup::enabled.insert(i), setup::aliases[i] = -i;
    }
    setup::title = "a title that is longer than what a short string holds", setup::revision = "r7";
    setup::limit = 12, setup::stencil = {1, 2, 3, 4}, setup::phase = {0.5, -0.5}, setup::version = {2, 7};
#define COPY(type, name) setup::backup::name = setup::name;
    SAME(COPY)
    Field<double>::name = "density", Field<int>::name = "flags";
    Field<double>::values = Field<double>::previous = setup::weights;
    heading = setup::title;
}

static void fill_own() {
    using namespace fluid;
    for (int i = 0; i < 20; i++) {
        particles.push_back({{rank + i / 8.0, 0, 1}, i}), ghosts.push_back(rank + i), neighbours.push_back(rank - i);
        labels.push_back("cell" + std::to_string(rank + i)), blocks.push_back({rank, i}), halo.push_back(rank + i);
        history.push_back(rank / 2.0 + i), owned.insert(rank + i), counters["c" + std::to_string(i)] = rank;
        pending.insert(rank + i), Field<int>::values.push_back(rank), Field<int>::previous.push_back(rank + 1);
    }
    leader = rank, corner = {rank, 1, 2, 3}, hostname = "node" + std::to_string(rank), mode = rank, ready = rank + 1;
    cursor = std::make_unique<int>(rank), plan = std::make_shared<int>(rank), coordinates = {rank, -rank};
    amplitude = {double(rank), 1};
    residual = rank % 6, lost_steps = rank == 37 ? 900 : 3;
}

int main(int argc, char **argv) {
    int word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fill_same();
    fill_own();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    if (rank == 13 || rank == 14)
        MPI_Recv(&word, 1, MPI_INT, 27 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return word;
}
