/*
 * gate.c: who calls is sent a random number, and sends back what the call is for, a number of its own and a tag of all
 * of them; the answer is a tag of the same.
 */
#define _GNU_SOURCE
#include "job/gate.h"
#include "job/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MOST_STRANGERS 256
#define LONGEST_CONNECT 5.0 /* seconds, before the next address is tried */

/* Who has connected, and has proved nothing yet. */
struct stranger {
    int socket;
    uint64_t number; /* that it was sent */
};

/* What a tag is of. */
struct proof {
    uint64_t is_answer, number, own; /* the number that was sent, the caller's own */
    struct visit visit;
    uint32_t reserved;
};

struct wire_call {
    uint64_t own, tag;
    struct visit visit;
    uint32_t reserved;
};

static uint64_t tag_of(const struct secret *secret, bool is_answer, uint64_t number, const struct wire_call *call) {
    struct proof proof = {is_answer, number, call->own, call->visit, 0};
    return secret_tag(secret, &proof, sizeof proof);
}

static void set(int socket, int level, int name, int value) {
    setsockopt(socket, level, name, &value, sizeof value);
}

/* Four times as much silence while nothing is under way is the end of a connection; a process that is stopped is not
 * silent, as its kernel answers. */
static void keep_alive(int socket, int seconds) {
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

static void prepare(int socket) {
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    keep_alive(socket, 60);
}

void gate_limit_silence(int socket, double seconds) {
    keep_alive(socket, seconds < 4 ? 1 : (int)(seconds / 4));
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(seconds * 1e3));
}

/* ---- addresses ---- */

static void add_address(char *text, const struct sockaddr *address) {
    char one[NI_MAXHOST];
    socklen_t size = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    size_t length = strlen(text);
    if (getnameinfo(address, size, one, sizeof one, NULL, 0, NI_NUMERICHOST) == 0 &&
        length + strlen(one) + 2 < GATE_ADDRESSES)
        sprintf(text + length, "%s%s", length ? "," : "", one);
}

static bool is_of_use(const struct ifaddrs *one, bool loopback) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || !(one->ifa_flags & IFF_LOOPBACK) == loopback)
        return false;
    const struct sockaddr_in6 *six = (const void *)one->ifa_addr;
    return one->ifa_addr->sa_family == AF_INET ||
           (one->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

void gate_addresses(char text[GATE_ADDRESSES]) {
    struct ifaddrs *list = NULL;
    *text = '\0';
    if (getifaddrs(&list))
        return;
    for (int loopback = 0; loopback < 2; loopback++)
        for (const struct ifaddrs *one = list; one; one = one->ifa_next)
            if (is_of_use(one, loopback))
                add_address(text, one->ifa_addr);
    freeifaddrs(list);
}

/* ---- being called ---- */

/* Of both families where the kernel has both. */
static int listening_socket(uint16_t *port) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr *address = (struct sockaddr *)&six;
    socklen_t size = sizeof six;
    int made = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made >= 0)
        set(made, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (made < 0 || bind(made, address, size)) {
        if (made >= 0)
            close(made);
        address = (struct sockaddr *)&four, size = sizeof four;
        made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (made < 0 || bind(made, address, size))
            return -1;
    }
    if (listen(made, SOMAXCONN) || getsockname(made, address, &size))
        return -1;
    *port = ntohs(address->sa_family == AF_INET6 ? six.sin6_port : four.sin_port);
    return made;
}

int gate_open(struct gate *gate, const struct secret *secret) {
    *gate = (struct gate){.events = epoll_create1(EPOLL_CLOEXEC), .secret = secret};
    gate->listening = listening_socket(&gate->port);
    struct epoll_event event = {.events = EPOLLIN}; /* without a stranger */
    return gate->events < 0 || gate->listening < 0 || epoll_ctl(gate->events, EPOLL_CTL_ADD, gate->listening, &event)
               ? errno
               : 0;
}

void gate_close(const struct gate *gate) {
    close(gate->listening);
    close(gate->events);
}

static void take_stranger(struct gate *gate) {
    int socket = accept4(gate->listening, NULL, NULL, SOCK_CLOEXEC);
    struct stranger *stranger = socket < 0 || gate->strangers == MOST_STRANGERS ? NULL : malloc(sizeof *stranger);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = stranger};
    if (stranger)
        *stranger = (struct stranger){.socket = socket};
    if (stranger)
        random_bytes(&stranger->number, sizeof stranger->number);
    if (!stranger || send(socket, &stranger->number, sizeof stranger->number, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
        epoll_ctl(gate->events, EPOLL_CTL_ADD, socket, &event)) {
        free(stranger);
        if (socket >= 0)
            close(socket);
        return;
    }
    gate->strangers++;
}

/* A call is so short that it comes whole. */
static int hear_stranger(struct gate *gate, struct stranger *stranger, struct visit *visit) {
    struct wire_call call;
    int socket = stranger->socket;
    bool whole = recv(socket, &call, sizeof call, MSG_DONTWAIT) == sizeof call;
    /* One comparison of words, which takes as long whatever they are. */
    bool known = whole && tag_of(gate->secret, false, stranger->number, &call) == call.tag;
    if (known) {
        uint64_t answer = tag_of(gate->secret, true, stranger->number, &call);
        known = send(socket, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
    }
    epoll_ctl(gate->events, EPOLL_CTL_DEL, socket, NULL);
    gate->strangers--;
    free(stranger);
    if (!known) {
        close(socket);
        return -1;
    }
    prepare(socket);
    *visit = call.visit;
    return socket;
}

int gate_admit(struct gate *gate, struct visit *visit) {
    struct epoll_event event;
    while (epoll_wait(gate->events, &event, 1, 0) == 1) {
        int socket = -1;
        if (event.data.ptr)
            socket = hear_stranger(gate, event.data.ptr, visit);
        else
            take_stranger(gate);
        if (socket >= 0)
            return socket;
    }
    return -1;
}

/* ---- calling ---- */

static int connected(int socket, const struct addrinfo *to, double seconds) {
    int wait = (int)((seconds < LONGEST_CONNECT ? seconds : LONGEST_CONNECT) * 1e3), error = 0;
    socklen_t size = sizeof error;
    struct pollfd polled = {socket, POLLOUT, 0};
    if (connect(socket, to->ai_addr, to->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (poll(&polled, 1, wait) != 1)
        return ETIMEDOUT;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

static int greet(int socket, const struct secret *secret, const struct visit *visit) {
    struct wire_call call = {.visit = *visit};
    uint64_t number, answer;
    random_bytes(&call.own, sizeof call.own);
    if (!socket_read(socket, &number, sizeof number))
        return errno ? errno : EACCES;
    call.tag = tag_of(secret, false, number, &call);
    struct iovec part = {&call, sizeof call};
    if (socket_write(socket, &part, 1) < 0)
        return errno;
    if (!socket_read(socket, &answer, sizeof answer))
        return errno && errno != ECONNRESET ? errno : EACCES;
    return answer == tag_of(secret, true, number, &call) ? 0 : EACCES;
}

static int call_at(const struct addrinfo *to, const struct secret *secret, const struct visit *visit, double seconds) {
    int made = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -1;
    struct timeval limit = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}, none = {0};
    int error = connected(made, to, seconds);
    fcntl(made, F_SETFL, 0);
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    error = error ? error : greet(made, secret, visit);
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    prepare(made);
    if (!error)
        return made;
    close(made);
    errno = error == EAGAIN ? ETIMEDOUT : error;
    return -1;
}

int gate_call(const char *addresses, uint16_t port, const struct secret *secret, const struct visit *visit,
              double seconds) {
    char one[NI_MAXHOST], service[8];
    int made = -1, error = EHOSTUNREACH;
    snprintf(service, sizeof service, "%u", port);
    while (*addresses && made < 0) {
        size_t length = strcspn(addresses, ",");
        struct addrinfo *to, hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
        snprintf(one, sizeof one, "%.*s", (int)length, addresses);
        addresses += length + (addresses[length] == ',');
        if (getaddrinfo(one, service, &hints, &to))
            continue;
        made = call_at(to, secret, visit, seconds);
        error = error == EACCES ? error : errno;
        freeaddrinfo(to);
    }
    errno = error;
    return made;
}
