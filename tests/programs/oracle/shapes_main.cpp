/*
 * shapes_main.cpp: the C++ oracle program.
 *
 * It takes nothing, fills its globals with values that depend on its rank, and stops many calls deep: through virtual
 * functions, templates, lambdas and constructors.
 */
#include "hold.h"
#include "shapes.hpp"

#include <cstdio>
#include <mpi.h>

namespace {

PRIVATE int world_size = 0;

int &tally() {
    static PRIVATE int count = 60;
    static PRIVATE std::string title = "the title of a function's static";
    count += static_cast<int>(title.size());
    return count;
}

void fill_containers(int rank) {
    table[rank] = 500 + rank;
    history.push_back(100 * rank);
    grid.assign(2, std::vector<double>(2, 0.5 * rank));
    census["rank"] = rank;
    members.insert(10 + rank);
    greeting += std::to_string(rank);
    short_text += std::to_string(rank);
    corners[1] = {1.0 * rank, 2.0 * rank};
    couple = {rank, "second of a pair"};
    triple = {rank, 0.25 * rank, static_cast<char>('a' + rank)};
    if (rank % 2 == 1)
        perhaps = 7 * rank;
    if (rank % 2 == 1)
        either = std::string("a string in a variant");
    else
        either = 2.5 * rank;
    shared = std::make_shared<geometry::Point>(geometry::Point{1.0 * rank, -1.0 * rank});
    adder = [rank](int value) { return value + rank; };
}

} // namespace

namespace stages {

__attribute__((noinline)) int checkpoint(int rank) {
    int &count = tally();
    count += rank;
    hold(rank, world_size);
    return count;
}

template <typename T> struct Stage {
    T value;
    std::string name;
    static PRIVATE int entered;

    __attribute__((noinline)) int run(const geometry::Shape &shape, T &&step) {
        entered++;
        T next = value + step;
        int corner_count = shape.corners();
        int reached = 0;
        reached = checkpoint(corner_count - 1);
        std::printf("%s %d %d\n", name.c_str(), reached, static_cast<int>(next));
        return reached;
    }
};
template <typename T> PRIVATE int Stage<T>::entered = 2;

class Driver {
  public:
    explicit Driver(int rank) : rank_(rank) {}
    virtual ~Driver() = default;
    virtual int drive(std::vector<int> &steps, const std::string &word) = 0;

  protected:
    int rank_;
};

class DeepDriver final : public Driver {
  public:
    using Driver::Driver;
    __attribute__((noinline)) int drive(std::vector<int> &steps, const std::string &word) override {
        std::map<int, std::string> local_names = {{rank_, word}, {rank_ + 1, "next"}};
        std::vector<std::string> words(2, word);
        geometry::Polygon polygon(std::vector<geometry::Point>(static_cast<std::size_t>(rank_) + 1), rank_);
        Stage<double> stage{0.5 * rank_, "a stage with a name of some length"};
        auto enter = [&](int more) __attribute__((noinline)) {
            int captured = more + rank_;
            int result = 0;
            result = stage.run(polygon, 1.0 * captured);
            return result + captured;
        };
        int sum = 0;
        sum = enter(steps.back());
        for (auto &[key, name] : local_names)
            sum += key + static_cast<int>(name.size());
        return sum + static_cast<int>(words.size());
    }
};

__attribute__((noinline)) int start(Driver *driver, int rank) {
    std::vector<int> steps = {rank, 2 * rank, 3 * rank};
    const std::string word = "word " + std::to_string(rank);
    int result = 0;
    result = driver->drive(steps, word);
    std::printf("%s %d\n", word.c_str(), result);
    return result;
}

} // namespace stages

int main(int argc, char **argv) {
    int rank = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    geometry::fill(rank);
    fill_containers(rank);
    auto driver = std::make_unique<stages::DeepDriver>(rank);
    int result = 0;
    result = stages::start(driver.get(), rank);
    std::printf("%d\n", result);
    MPI_Finalize();
    return 0;
}
