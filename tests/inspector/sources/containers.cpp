/* containers.cpp: one of each kind, with contents that are a function of the rank; natively it is rank 1. */
#include <array>
#include <atomic>
#include <complex>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
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
#ifndef NATIVE
#include <mpi.h>
#endif

struct Particle {
    double x;
    int id;
};
struct alignas(32) Wide {
    int one;
};
struct AlignedMember {
    char first;
    alignas(32) int one;
};
typedef int AlignedName __attribute__((aligned(32)));
struct AlignedByName {
    AlignedName one;
};
struct __attribute__((packed)) Packed {
    long double one;
};
struct __attribute__((packed)) Tight {
    int one;
};
enum class Kind { inner, ghost };

std::string text, long_text, empty_text;
std::u16string wide_text;
std::string_view view;
std::vector<Particle> particles;
std::vector<int> numbers, large, no_numbers;
std::vector<bool> flags;
std::vector<std::string> names;
std::vector<std::vector<double>> rows;
std::array<int, 3> triple;
std::deque<int> queue;
std::deque<std::string> queued_names;
std::list<int> ring;
std::list<Wide> aligned;
std::list<AlignedMember> aligned_members;
std::forward_list<AlignedByName> aligned_names;
std::map<char, AlignedMember> by_aligned;
std::unordered_map<int, AlignedMember> hashed_aligned;
std::list<Packed> packed;
std::map<char, Tight> by_tight;
std::unordered_map<int, Packed> hashed_packed;
std::forward_list<short> forward;
std::map<int, std::string> by_number;
std::map<std::string, Particle> by_name;
std::map<char, long double> extended;
std::set<int> chosen;
std::multiset<int> repeated;
std::unordered_map<int, double> weights;
std::unordered_set<std::string> tags;
std::unordered_set<int> same_elements;
std::optional<int> some, none;
std::optional<std::string> some_text;
std::variant<int, double, std::string> either, other;
std::unique_ptr<Particle> owned, unowned;
std::shared_ptr<int> shared, unshared;
std::tuple<int, double, std::string> mixed;
std::tuple<> nothing;
std::pair<int, std::string> both;
std::complex<double> z;
std::atomic<int> counter;
struct Nested {
    int rank;
    std::vector<std::pair<int, Kind>> kinds;
    std::unordered_map<std::string, std::vector<int>> lists;
} nested[2];
std::vector<int> same, last_differs;
std::map<int, int> large_map;

static void fill(int rank) {
    text = "rank " + std::to_string(rank);
    long_text = std::string(30, 'a' + rank) + " and \"more\"\n";
    wide_text = u"wide";
    view = std::string_view(text).substr(2);
    for (int i = 0; i < 3 + rank; i++) {
        particles.push_back({rank + i / 2.0, i});
        numbers.push_back(rank * 100 + i);
        names.push_back("name " + std::to_string(i * rank));
        rows.push_back(std::vector<double>(i, rank + 0.5));
        queue.push_front(i - rank);
        queued_names.push_back(std::string(3 * i, 'q'));
        ring.push_back(i * rank);
        aligned.push_back({i + rank});
        aligned_members.push_back({'m', i + rank});
        aligned_names.push_front({i + rank});
        by_aligned[(char)('a' + i)] = {'n', i - rank};
        hashed_aligned[i] = {'h', i * rank};
        packed.push_back({i + rank + 0.5L});
        by_tight[(char)('a' + i)] = {1000 * rank + i};
        hashed_packed[i] = {i + rank + 0.25L};
        forward.push_front(i);
        by_number[i * rank] = "number " + std::to_string(i);
        by_name["key " + std::to_string(i)] = {1.5 * rank, i};
        extended[(char)('a' + i)] = rank + 0.25L;
        chosen.insert(rank * 10 - i * i);
        repeated.insert(i / 2);
        weights[i] = rank / 4.0;
        tags.insert("tag " + std::to_string(i % 2));
    }
    for (int i = 0; i < 20; i++)
        same_elements.insert(rank % 2 ? i * 7 : (19 - i) * 7);
    for (int i = 0; i < 70; i++)
        flags.push_back((i + rank) % 3 == 0);
    for (int i = 0; i < 500; i++) {
        large.push_back(i);
        queue.push_back(i);
        large_map[i] = i;
        last_differs.push_back(i);
    }
    large[450] = rank;
    large_map[333] = rank;
    last_differs.back() = rank == 2;
    triple = {rank, rank + 1, rank + 2};
    some = rank;
    some_text = "some";
    either = 2.5 * rank;
    if (rank % 2)
        other = std::string("other");
    else
        other = rank;
    owned = std::make_unique<Particle>(Particle{0.5, rank});
    shared = std::make_shared<int>(1000 + rank);
    mixed = {rank, 0.5, "mixed"};
    both = {rank, "both"};
    z = {1.0 * rank, -2};
    counter = rank;
    for (auto &one : nested) {
        one.rank = rank;
        one.kinds = {{1, Kind::inner}, {rank, Kind::ghost}};
        one.lists["a"] = {1, 2, rank};
    }
    free(malloc(100 + 1000 * rank)); /* heaps are not laid out alike */
    void *moved = malloc(1000 * rank + 1);
    same = {4, 5, 6};
    if (!moved)
        same.clear();
}

__attribute__((noinline)) static void filled(void) {
    puts("ready"); /* filled */
    fflush(stdout);
}

#ifdef NATIVE
int main() {
    fill(1);
    filled();
    return 0;
}
#else
int main(int argc, char **argv) {
    int rank, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fill(rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        filled();
    return MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
#endif
