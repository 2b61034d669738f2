/* A simulation without MPI: the first actor sleeps for good once the others wait. */
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <unistd.h>
static void worker(int number) {
    if (number > 0) {
        simgrid::s4u::Mailbox::by_name("never")->get<int>();
        return;
    }
    simgrid::s4u::this_actor::sleep_for(5);
    std::puts("ready");
    std::fflush(stdout);
    for (;;)
        pause();
}
int main(int count, char **words) {
    simgrid::s4u::Engine engine(&count, words);
    engine.load_platform(words[1]);
    for (int number = 0; number < 3; number++)
        simgrid::s4u::Actor::create("worker", engine.host_by_name("node0"), worker, number);
    engine.run();
    return 0;
}
