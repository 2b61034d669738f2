// What a program's end calls, in which order, and whether it still has what it needs; each line is of one rank.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mpi.h>
#include <string>
#include <vector>

static int number = -1;

static void say(const char *what, const std::string &of) {
    printf("rank %d: %s %s\n", number, what, of.c_str());
    fflush(stdout);
}

struct Named {
    std::string name;
    std::vector<std::unique_ptr<std::string>> parts; // made by a constructor, in blocks of the heap
    Named *next = nullptr;
    explicit Named(const char *of) : name(of) {
        for (int i = 0; i < 3; i++)
            parts.push_back(std::make_unique<std::string>(name + ", part " + std::to_string(i) + " of a long name"));
    }
    ~Named() {
        for (const auto &part : parts)
            say("destroys", *part);
        say("destroys", name + (next ? " before " + next->name : ""));
    }
};

static Named last_of_all("the first global");
Named array[2] = {Named("array 0"), Named("array 1")};
static Named linked("the last global");

static void registered_late() {
    say("calls", "what was registered by a function of the end");
}

static void of_atexit() {
    say("calls", "atexit");
    atexit(registered_late);
}

static void of_on_exit(int status, void *argument) {
    say("calls", "on_exit " + std::to_string(status) + " " + *static_cast<std::string *>(argument));
}

static void leaves_again() {
    say("calls", "exit anew");
    exit(5);
}

static Named &in_function() {
    static Named one("a function's static");
    return one;
}

__attribute__((destructor)) static void of_the_object() {
    say("calls", "the object's destructor");
}

int main(int argc, char **argv) {
    static std::string text = "with an argument";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    std::ios::sync_with_stdio(false);
    linked.name += " of rank " + std::to_string(number);
    linked.next = &array[number % 2];
    atexit(of_atexit);
    in_function().name += " of rank " + std::to_string(number);
    on_exit(of_on_exit, &text);
#ifdef MOVES
    MPIX_Migrate_to(number % 2);
#endif
    if (number == 1)
        atexit(leaves_again);
    MPI_Finalize();
    std::cout << "rank " << number << ": kept in a stream\n";
    if (number == 2)
        exit(3);
    return 4;
}
