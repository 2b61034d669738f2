/* Two MPI jobs in one simulation, of 2 and of 3 ranks: the first rank of the first sleeps for good once all wait. */
#include <cstdio>
#include <cstring>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>
#include <unistd.h>
static void run(int, char **) {
    int me = -1, got = 0;
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    bool is_first = simgrid::s4u::Actor::self()->get_property("instance_id") == std::string("alpha");
    std::printf("TRUTH %d %s %p 0\n", me, is_first ? "alpha" : "beta", (void *)&me);
    std::fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_first && me == 0) {
        simgrid::s4u::this_actor::sleep_for(5);
        std::puts("ready");
        std::fflush(stdout);
        for (;;)
            pause();
    }
    MPI_Recv(&got, 1, MPI_INT, 0, 40 + me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int count, char **words) {
    simgrid::s4u::Engine engine(&count, words);
    engine.load_platform(words[1]);
    SMPI_app_instance_register("alpha", run, 2);
    SMPI_app_instance_register("beta", run, 3);
    SMPI_init();
    engine.load_deployment(words[2]);
    engine.run();
    SMPI_finalize();
    return 0;
}
