/*
 * authenticated_tcp.c: who calls is sent a random number, and sends back what the call is for, a number of its own and
 * a tag of all of them; the answer is a tag of the same.
 */
#define _GNU_SOURCE
#include "job/authenticated_tcp.h"
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
    struct tcp_purpose purpose;
    uint32_t reserved;
};

struct wire_call {
    uint64_t own, tag;
    struct tcp_purpose purpose;
    uint32_t reserved;
};

static uint64_t tag_of(const struct job_key *key, bool is_answer, uint64_t number, const struct wire_call *call) {
    struct proof proof = {is_answer, number, call->own, call->purpose, 0};
    return job_key_tag(key, &proof, sizeof proof);
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

void tcp_limit_silence(int socket, double seconds) {
    keep_alive(socket, seconds < 4 ? 1 : (int)(seconds / 4));
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(seconds * 1e3));
}

/* ---- addresses ---- */

static void add_address(char *text, const struct sockaddr *address) {
    char name[NI_MAXHOST];
    socklen_t size = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    size_t length = strlen(text);
    if (getnameinfo(address, size, name, sizeof name, NULL, 0, NI_NUMERICHOST) == 0 &&
        length + strlen(name) + 2 < TCP_ADDRESSES)
        sprintf(text + length, "%s%s", length ? "," : "", name);
}

static bool is_of_use(const struct ifaddrs *interface, bool loopback) {
    if (!interface->ifa_addr || !(interface->ifa_flags & IFF_UP) || !(interface->ifa_flags & IFF_LOOPBACK) == loopback)
        return false;
    const struct sockaddr_in6 *six = (const void *)interface->ifa_addr;
    return interface->ifa_addr->sa_family == AF_INET ||
           (interface->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

void tcp_addresses(char text[TCP_ADDRESSES]) {
    struct ifaddrs *list = NULL;
    *text = '\0';
    if (getifaddrs(&list))
        return;
    for (int loopback = 0; loopback < 2; loopback++)
        for (const struct ifaddrs *interface = list; interface; interface = interface->ifa_next)
            if (is_of_use(interface, loopback))
                add_address(text, interface->ifa_addr);
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

int tcp_listen(struct tcp_listener *listener, const struct job_key *key) {
    *listener = (struct tcp_listener){.events = epoll_create1(EPOLL_CLOEXEC), .key = key};
    listener->listening = listening_socket(&listener->port);
    struct epoll_event event = {.events = EPOLLIN}; /* without a stranger */
    return listener->events < 0 || listener->listening < 0 ||
                   epoll_ctl(listener->events, EPOLL_CTL_ADD, listener->listening, &event)
               ? errno
               : 0;
}

void tcp_close(const struct tcp_listener *listener) {
    close(listener->listening);
    close(listener->events);
}

static void accept_stranger(struct tcp_listener *listener) {
    int socket = accept4(listener->listening, NULL, NULL, SOCK_CLOEXEC);
    struct stranger *stranger = socket < 0 || listener->strangers == MOST_STRANGERS ? NULL : malloc(sizeof *stranger);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = stranger};
    if (stranger)
        *stranger = (struct stranger){.socket = socket};
    if (stranger)
        random_bytes(&stranger->number, sizeof stranger->number);
    if (!stranger || send(socket, &stranger->number, sizeof stranger->number, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
        epoll_ctl(listener->events, EPOLL_CTL_ADD, socket, &event)) {
        free(stranger);
        if (socket >= 0)
            close(socket);
        return;
    }
    listener->strangers++;
}

/* A call is so short that it comes whole. */
static int check_proof(struct tcp_listener *listener, struct stranger *stranger, struct tcp_purpose *purpose) {
    struct wire_call call;
    int socket = stranger->socket;
    bool whole = recv(socket, &call, sizeof call, MSG_DONTWAIT) == sizeof call;
    /* One comparison of words, which takes as long whatever they are. */
    bool is_proved = whole && tag_of(listener->key, false, stranger->number, &call) == call.tag;
    if (is_proved) {
        uint64_t answer = tag_of(listener->key, true, stranger->number, &call);
        is_proved = send(socket, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
    }
    epoll_ctl(listener->events, EPOLL_CTL_DEL, socket, NULL);
    listener->strangers--;
    free(stranger);
    if (!is_proved) {
        close(socket);
        return -1;
    }
    prepare(socket);
    *purpose = call.purpose;
    return socket;
}

int tcp_accept(struct tcp_listener *listener, struct tcp_purpose *purpose) {
    struct epoll_event event;
    while (epoll_wait(listener->events, &event, 1, 0) == 1) {
        int socket = -1;
        if (event.data.ptr)
            socket = check_proof(listener, event.data.ptr, purpose);
        else
            accept_stranger(listener);
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

static int greet(int socket, const struct job_key *key, const struct tcp_purpose *purpose) {
    struct wire_call call = {.purpose = *purpose};
    uint64_t number, answer;
    random_bytes(&call.own, sizeof call.own);
    if (!socket_read(socket, &number, sizeof number))
        return errno ? errno : EACCES;
    call.tag = tag_of(key, false, number, &call);
    struct iovec part = {&call, sizeof call};
    if (socket_write(socket, &part, 1) < 0)
        return errno;
    if (!socket_read(socket, &answer, sizeof answer))
        return errno && errno != ECONNRESET ? errno : EACCES;
    return answer == tag_of(key, true, number, &call) ? 0 : EACCES;
}

static int call_at(const struct addrinfo *to, const struct job_key *key, const struct tcp_purpose *purpose,
                   double seconds) {
    int made = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -1;
    struct timeval limit = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}, none = {0};
    int error = connected(made, to, seconds);
    fcntl(made, F_SETFL, 0);
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    error = error ? error : greet(made, key, purpose);
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    prepare(made);
    if (!error)
        return made;
    close(made);
    errno = error == EAGAIN ? ETIMEDOUT : error;
    return -1;
}

int tcp_connect(const char *addresses, uint16_t port, const struct job_key *key, const struct tcp_purpose *purpose,
                double seconds) {
    char address[NI_MAXHOST], service[8];
    int made = -1, error = EHOSTUNREACH;
    snprintf(service, sizeof service, "%u", port);
    while (*addresses && made < 0) {
        size_t length = strcspn(addresses, ",");
        struct addrinfo *to, hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
        snprintf(address, sizeof address, "%.*s", (int)length, addresses);
        addresses += length + (addresses[length] == ',');
        if (getaddrinfo(address, service, &hints, &to))
            continue;
        made = call_at(to, key, purpose, seconds);
        error = error == EACCES ? error : errno;
        freeaddrinfo(to);
    }
    errno = error;
    return made;
}
