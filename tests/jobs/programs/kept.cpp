// Rank 3 makes libc keep something, as its first argument says, and moves; rank 2, on the same kernel thread, uses it.
// "own": what libc has given to rank 3 itself goes with it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <iostream>
#include <mpi.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <string>
#include <unistd.h>

static char mine[BUFSIZ] = "A_NAME=put";

static std::string environment(bool first) {
    if (first)
        setenv("A_NAME", "set", 1);
    return getenv("A_NAME") ? getenv("A_NAME") : "nothing";
}

static std::string text_of_mine(bool first) {
    if (first)
        putenv(mine);
    return getenv("A_NAME") ? getenv("A_NAME") : "nothing";
}

static std::string zone(bool) {
    char text[64];
    time_t time = 1700000000;
    struct tm calendar;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    strftime(text, sizeof text, "%H %Z", localtime_r(&time, &calendar));
    return text;
}

static std::string locale(bool first) {
    wchar_t wide[8] = {};
    if (first && !setlocale(LC_ALL, "C.UTF-8"))
        return "no C.UTF-8";
    return mbstowcs(wide, "\xc3\xa4", 8) == 1 && wide[0] == 0xe4 ? "one" : "none";
}

static std::string users(bool) {
    const struct passwd *user = getpwuid(0);
    return user ? user->pw_name : "nobody";
}

static std::string hosts(bool) {
    struct addrinfo hints = {}, *list = nullptr;
    hints.ai_family = AF_INET;
    const struct servent *service = getservbyname("domain", "udp");
    if (getaddrinfo("127.0.0.1", "80", &hints, &list))
        return "no address";
    std::string found = std::to_string(list->ai_addrlen) + " " + (service ? service->s_name : "no service");
    freeaddrinfo(list);
    return found;
}

static std::string errors(bool) {
    return strerror(9999);
}

/* Keys are numbered in the order in which they are made. */
static std::string threads(bool first) {
    pthread_key_t key;
    for (int i = 0; first && i < 40; i++) /* the thread itself has room for 32 */
        if (pthread_key_create(&key, nullptr) || pthread_setspecific(key, stdout))
            return "no key";
    return pthread_getspecific(39) == stdout ? "a value" : "none";
}

static std::string semaphores(bool) {
    std::string name = "/kept-" + std::to_string(getpid());
    sem_t *semaphore = sem_open(name.c_str(), O_CREAT, 0600, 1);
    if (semaphore == SEM_FAILED)
        return "no semaphore";
    sem_unlink(name.c_str());
    return "a semaphore";
}

static std::string buffer(bool first) {
    if (first)
        setvbuf(stdout, mine, _IOFBF, sizeof mine);
    printf("printed\n");
    return "buffered";
}

static std::string opened_again(bool first) {
    if (first && !freopen("/dev/null", "w", stdout))
        return "not opened";
    printf("printed\n");
    return "opened";
}

static std::string cxx_stream(bool first) {
    if (first)
        std::ios::sync_with_stdio(false);
    std::cout << "printed" << std::endl;
    return "apart";
}

static const struct {
    const char *name;
    std::string (*use)(bool first);
} kinds[] = {{"environment", environment}, {"putenv", text_of_mine},  {"zone", zone},
             {"locale", locale},           {"users", users},          {"hosts", hosts},
             {"errors", errors},           {"threads", threads},      {"semaphores", semaphores},
             {"setvbuf", buffer},          {"freopen", opened_again}, {"sync_with_stdio", cxx_stream}};

static void keep_own() {
    struct addrinfo *list = nullptr;
    char *text = nullptr, *copy = strdup("a copy"), *line = nullptr;
    size_t room = 0;
    FILE *file = tmpfile();
    fputs("a line", file);
    rewind(file);
    long got = getline(&line, &room, file);
    fclose(file);
    if (asprintf(&text, "number %d", 7) < 0 || getaddrinfo("127.0.0.1", "80", nullptr, &list) || got != 6)
        abort();
    MPIX_Migrate_to(1);
    printf("%s, %s, %s, %d\n", copy, text, line, list->ai_addr->sa_family == AF_INET);
    freeaddrinfo(list);
    free(text), free(copy), free(line);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 3 && !strcmp(argv[1], "own"))
        keep_own();
    for (const auto &kind : kinds) {
        if (strcmp(kind.name, argv[1]))
            continue;
        std::string first, later;
        if (rank == 3) {
            first = kind.use(true);
            MPIX_Migrate_to(1);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 2) {
            later = kind.use(false);
            later = kind.use(false);
            MPI_Send(later.c_str(), static_cast<int>(later.size()) + 1, MPI_CHAR, 3, 0, MPI_COMM_WORLD);
        } else if (rank == 3) {
            char text[256];
            MPI_Recv(text, sizeof text, MPI_CHAR, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fprintf(stderr, "%s: %s\n", first.c_str(), text);
        }
    }
    MPI_Finalize();
    return 0;
}
