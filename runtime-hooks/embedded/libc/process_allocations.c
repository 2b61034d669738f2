/*
 * process_allocations.c: calls that make libc keep memory for the whole process, which then is the process's own.
 *
 * libc allocates by malloc() what it returns to the caller (strdup, getline, fopen) and what it keeps for
 * itself (the environment, the time zone, the users' database, errors' texts).  The first has to go with the
 * rank that owns it; the second must not: it would lie in the heap of the rank that happened to call first, and be gone
 * from under all others when that rank moves.  By the address that malloc() returns to, the two can't be told apart, so
 * the calls that keep something stand here, in front of libc's own, and are served by the process's heap.
 */
#define _GNU_SOURCE
#include "libc/process_allocations.h"
#include "image/heap.h"
#include "image/ranges.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <iconv.h>
#include <libintl.h>
#include <locale.h>
#include <mntent.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* The heap that is to be the kernel thread's again; libc's own function is looked for once. */
static struct rank_heap *enter(void **function, const char *name) {
    struct rank_heap *heap = heap_here;
    heap_here = NULL;
    if (!*function)
        *function = dlsym(RTLD_NEXT, name);
    return heap;
}

#define WITH_PROCESS_HEAP(result, name, parameters, arguments)                                                         \
    PROCESS_HEAP_SECTION result name parameters {                                                                      \
        static __typeof__(&name) real;                                                                                 \
        struct rank_heap *heap = enter((void **)&real, #name);                                                         \
        result returned = real arguments;                                                                              \
        heap_here = heap;                                                                                              \
        return returned;                                                                                               \
    }

#define WITH_PROCESS_HEAP_VOID(name, parameters, arguments)                                                            \
    PROCESS_HEAP_SECTION void name parameters {                                                                        \
        static __typeof__(&name) real;                                                                                 \
        struct rank_heap *heap = enter((void **)&real, #name);                                                         \
        real arguments;                                                                                                \
        heap_here = heap;                                                                                              \
    }

/* ---- the environment ---- */

WITH_PROCESS_HEAP(int, setenv, (const char *name, const char *value, int replace), (name, value, replace))
WITH_PROCESS_HEAP(int, unsetenv, (const char *name), (name))
WITH_PROCESS_HEAP(int, clearenv, (void), ())

/* The caller's text becomes a part of the environment, which must not be a part of a rank that can go. */
PROCESS_HEAP_SECTION int putenv(char *text) {
    static __typeof__(&putenv) real;
    struct rank_heap *heap = enter((void **)&real, "putenv");
    bool may_go = ranges_are_mobile() && range_of(text) >= 0;
    char *own = may_go ? strdup(text) : text;
    int error = own ? real(own) : -1;
    heap_here = heap;
    return error;
}

/* ---- the time zone ---- */

/* libstdc++ and older programs know them by these names. */
extern size_t __strftime_l(char *, size_t, const char *, const struct tm *, locale_t);
extern size_t __wcsftime_l(wchar_t *, size_t, const wchar_t *, const struct tm *, locale_t);

WITH_PROCESS_HEAP_VOID(tzset, (void), ())
WITH_PROCESS_HEAP(struct tm *, localtime, (const time_t *time), (time))
WITH_PROCESS_HEAP(struct tm *, localtime_r, (const time_t *time, struct tm *into), (time, into))
WITH_PROCESS_HEAP(char *, ctime, (const time_t *time), (time))
WITH_PROCESS_HEAP(char *, ctime_r, (const time_t *time, char *into), (time, into))
WITH_PROCESS_HEAP(time_t, mktime, (struct tm * time), (time))
WITH_PROCESS_HEAP(time_t, timelocal, (struct tm * time), (time))
WITH_PROCESS_HEAP(struct tm *, getdate, (const char *text), (text))
WITH_PROCESS_HEAP(int, getdate_r, (const char *text, struct tm *into), (text, into))
WITH_PROCESS_HEAP(char *, strptime, (const char *text, const char *format, struct tm *into), (text, format, into))
WITH_PROCESS_HEAP(char *, strptime_l, (const char *text, const char *format, struct tm *into, locale_t locale),
                  (text, format, into, locale))
WITH_PROCESS_HEAP(size_t, strftime, (char *into, size_t room, const char *format, const struct tm *time),
                  (into, room, format, time))
WITH_PROCESS_HEAP(size_t, strftime_l,
                  (char *into, size_t room, const char *format, const struct tm *time, locale_t locale),
                  (into, room, format, time, locale))
WITH_PROCESS_HEAP(size_t, __strftime_l,
                  (char *into, size_t room, const char *format, const struct tm *time, locale_t locale),
                  (into, room, format, time, locale))
WITH_PROCESS_HEAP(size_t, wcsftime, (wchar_t * into, size_t room, const wchar_t *format, const struct tm *time),
                  (into, room, format, time))
WITH_PROCESS_HEAP(size_t, wcsftime_l,
                  (wchar_t * into, size_t room, const wchar_t *format, const struct tm *time, locale_t locale),
                  (into, room, format, time, locale))
WITH_PROCESS_HEAP(size_t, __wcsftime_l,
                  (wchar_t * into, size_t room, const wchar_t *format, const struct tm *time, locale_t locale),
                  (into, room, format, time, locale))

/* ---- locales, and texts in the user's language ---- */

#undef gettext /* libintl.h has macros of these names */
#undef dgettext
#undef ngettext
#undef dngettext

extern locale_t __newlocale(int mask, const char *name, locale_t base);

/* A locale's conversions are loaded when they are first needed, by whatever call: they are needed here. */
PROCESS_HEAP_SECTION char *setlocale(int category, const char *name) {
    static __typeof__(&setlocale) real;
    struct rank_heap *heap = enter((void **)&real, "setlocale");
    char *value = real(category, name);
    wchar_t wide;
    mbrtowc(&wide, "a", 1, &(mbstate_t){0});
    heap_here = heap;
    return value;
}

WITH_PROCESS_HEAP(locale_t, newlocale, (int mask, const char *name, locale_t base), (mask, name, base))
WITH_PROCESS_HEAP(locale_t, __newlocale, (int mask, const char *name, locale_t base), (mask, name, base))
WITH_PROCESS_HEAP(iconv_t, iconv_open, (const char *to, const char *from), (to, from))
WITH_PROCESS_HEAP(char *, textdomain, (const char *domain), (domain))
WITH_PROCESS_HEAP(char *, bindtextdomain, (const char *domain, const char *folder), (domain, folder))
WITH_PROCESS_HEAP(char *, bind_textdomain_codeset, (const char *domain, const char *codeset), (domain, codeset))
WITH_PROCESS_HEAP(char *, gettext, (const char *text), (text))
WITH_PROCESS_HEAP(char *, dgettext, (const char *domain, const char *text), (domain, text))
WITH_PROCESS_HEAP(char *, dcgettext, (const char *domain, const char *text, int category), (domain, text, category))
WITH_PROCESS_HEAP(char *, ngettext, (const char *one, const char *many, unsigned long count), (one, many, count))
WITH_PROCESS_HEAP(char *, dngettext, (const char *domain, const char *one, const char *many, unsigned long count),
                  (domain, one, many, count))
WITH_PROCESS_HEAP(char *, dcngettext,
                  (const char *domain, const char *one, const char *many, unsigned long count, int category),
                  (domain, one, many, count, category))
WITH_PROCESS_HEAP(char *, strerror, (int error), (error))
WITH_PROCESS_HEAP(char *, strerror_r, (int error, char *into, size_t room), (error, into, room))
WITH_PROCESS_HEAP(char *, strerror_l, (int error, locale_t locale), (error, locale))
WITH_PROCESS_HEAP(char *, strsignal, (int signal), (signal))
WITH_PROCESS_HEAP_VOID(perror, (const char *text), (text))
WITH_PROCESS_HEAP_VOID(psignal, (int signal, const char *text), (signal, text))

/* ---- databases of users, groups, hosts and services ---- */

WITH_PROCESS_HEAP(struct passwd *, getpwnam, (const char *name), (name))
WITH_PROCESS_HEAP(struct passwd *, getpwuid, (uid_t user), (user))
WITH_PROCESS_HEAP(struct passwd *, getpwent, (void), ())
WITH_PROCESS_HEAP_VOID(setpwent, (void), ())
WITH_PROCESS_HEAP(int, getpwnam_r,
                  (const char *name, struct passwd *into, char *room, size_t size, struct passwd **found),
                  (name, into, room, size, found))
WITH_PROCESS_HEAP(int, getpwuid_r, (uid_t user, struct passwd *into, char *room, size_t size, struct passwd **found),
                  (user, into, room, size, found))
WITH_PROCESS_HEAP(struct group *, getgrnam, (const char *name), (name))
WITH_PROCESS_HEAP(struct group *, getgrgid, (gid_t group), (group))
WITH_PROCESS_HEAP(struct group *, getgrent, (void), ())
WITH_PROCESS_HEAP_VOID(setgrent, (void), ())
WITH_PROCESS_HEAP(int, getgrnam_r,
                  (const char *name, struct group *into, char *room, size_t size, struct group **found),
                  (name, into, room, size, found))
WITH_PROCESS_HEAP(int, getgrgid_r, (gid_t group, struct group *into, char *room, size_t size, struct group **found),
                  (group, into, room, size, found))
WITH_PROCESS_HEAP(int, getgrouplist, (const char *user, gid_t group, gid_t *groups, int *count),
                  (user, group, groups, count))
WITH_PROCESS_HEAP(char *, getlogin, (void), ())
WITH_PROCESS_HEAP(int, getlogin_r, (char *into, size_t room), (into, room))
WITH_PROCESS_HEAP(char *, ttyname, (int file), (file))
WITH_PROCESS_HEAP(char *, getpass, (const char *prompt), (prompt))
WITH_PROCESS_HEAP(struct mntent *, getmntent, (FILE * file), (file))
WITH_PROCESS_HEAP(struct hostent *, gethostbyname, (const char *name), (name))
WITH_PROCESS_HEAP(struct hostent *, gethostbyname2, (const char *name, int family), (name, family))
WITH_PROCESS_HEAP(struct hostent *, gethostbyaddr, (const void *address, socklen_t size, int family),
                  (address, size, family))
WITH_PROCESS_HEAP(int, gethostbyname_r,
                  (const char *name, struct hostent *into, char *room, size_t size, struct hostent **found, int *error),
                  (name, into, room, size, found, error))
WITH_PROCESS_HEAP(struct servent *, getservbyname, (const char *name, const char *protocol), (name, protocol))
WITH_PROCESS_HEAP(struct servent *, getservbyport, (int port, const char *protocol), (port, protocol))
WITH_PROCESS_HEAP(struct protoent *, getprotobyname, (const char *name), (name))
WITH_PROCESS_HEAP(struct protoent *, getprotobynumber, (int number), (number))
WITH_PROCESS_HEAP(int, getnameinfo,
                  (const struct sockaddr *address, socklen_t size, char *host, socklen_t host_room, char *service,
                   socklen_t service_room, int flags),
                  (address, size, host, host_room, service, service_room, flags))

/* The list is the caller's, and goes with it: freeaddrinfo() frees a block for each address and one for its name. */
static struct addrinfo *list_of_its_own(const struct addrinfo *list) {
    struct addrinfo *first = NULL, **last = &first;
    for (; list; list = list->ai_next, last = &(*last)->ai_next) {
        *last = malloc(sizeof **last + list->ai_addrlen);
        if (!*last)
            break;
        **last = *list;
        (*last)->ai_next = NULL;
        (*last)->ai_addr = memcpy(*last + 1, list->ai_addr, list->ai_addrlen);
        (*last)->ai_canonname = list->ai_canonname ? strdup(list->ai_canonname) : NULL;
    }
    return first;
}

PROCESS_HEAP_SECTION int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                                     struct addrinfo **list) {
    static __typeof__(&getaddrinfo) real;
    struct rank_heap *heap = enter((void **)&real, "getaddrinfo");
    int error = real(node, service, hints, list);
    heap_here = heap;
    if (error || !heap)
        return error;
    struct addrinfo *process_list = *list;
    *list = list_of_its_own(process_list);
    freeaddrinfo(process_list);
    return *list ? 0 : EAI_MEMORY;
}

/* ---- kernel threads ---- */

extern int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *object);
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *object);

WITH_PROCESS_HEAP(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
WITH_PROCESS_HEAP(int, tss_set, (tss_t key, void *value), (key, value))
WITH_PROCESS_HEAP(int, __register_atfork,
                  (void (*before)(void), void (*parent)(void), void (*child)(void), void *object),
                  (before, parent, child, object))
WITH_PROCESS_HEAP(int, __cxa_thread_atexit_impl, (void (*function)(void *), void *argument, void *object),
                  (function, argument, object))
WITH_PROCESS_HEAP(int, sem_close, (sem_t * semaphore), (semaphore))

PROCESS_HEAP_SECTION sem_t *sem_open(const char *name, int how, ...) {
    static __typeof__(&sem_open) real;
    va_list more;
    va_start(more, how);
    mode_t mode = how & O_CREAT ? va_arg(more, mode_t) : 0;
    unsigned int value = how & O_CREAT ? va_arg(more, unsigned int) : 0;
    va_end(more);
    struct rank_heap *heap = enter((void **)&real, "sem_open");
    sem_t *semaphore = real(name, how, mode, value);
    heap_here = heap;
    return semaphore;
}

WITH_PROCESS_HEAP(int, hcreate, (size_t size), (size))

/* ---- streams that are the process's ---- */

/* A buffer for one of them may be, and would not be, in the memory of a rank: its size is a wish alone (C11 7.21.5.6).
 */
static bool is_for_all(const FILE *stream, const char *buffer) {
    return ranges_are_mobile() && range_of(stream) < 0 && range_of(buffer) >= 0;
}

PROCESS_HEAP_SECTION int setvbuf(FILE *stream, char *buffer, int mode, size_t size) {
    static __typeof__(&setvbuf) real;
    struct rank_heap *heap = enter((void **)&real, "setvbuf");
    int error = real(stream, is_for_all(stream, buffer) ? NULL : buffer, mode, size);
    heap_here = heap;
    return error;
}

PROCESS_HEAP_SECTION void setbuffer(FILE *stream, char *buffer, size_t size) {
    setvbuf(stream, buffer, buffer ? _IOFBF : _IONBF, size);
}

PROCESS_HEAP_SECTION void setbuf(FILE *stream, char *buffer) {
    setbuffer(stream, buffer, BUFSIZ);
}

/* Such a stream loses its buffer, and would take another from the next rank that prints. */
static FILE *opened_again(FILE *stream) {
    static char *buffers[3];
    int which = stream ? fileno(stream) : -1;
    if (range_of(stream) >= 0 || which < 0 || which > 2)
        return stream;
    if (!buffers[which])
        buffers[which] = malloc(BUFSIZ);
    if (buffers[which])
        setvbuf(stream, buffers[which], which == STDERR_FILENO ? _IONBF : isatty(which) ? _IOLBF : _IOFBF, BUFSIZ);
    return stream;
}

#define OPENED_AGAIN(name)                                                                                             \
    PROCESS_HEAP_SECTION FILE *name(const char *path, const char *mode, FILE *stream) {                                \
        static __typeof__(&name) real;                                                                                 \
        struct rank_heap *heap = enter((void **)&real, #name);                                                         \
        FILE *again = opened_again(real(path, mode, stream));                                                          \
        heap_here = heap;                                                                                              \
        return again;                                                                                                  \
    }
OPENED_AGAIN(freopen)
OPENED_AGAIN(freopen64)

/* std::ios_base::sync_with_stdio(bool): makes the buffers of std::cout and its kin. */
extern bool sync_with_stdio(bool together) __asm__("_ZNSt8ios_base15sync_with_stdioEb");

PROCESS_HEAP_SECTION bool sync_with_stdio(bool together) {
    static bool (*real)(bool);
    struct rank_heap *heap = enter((void **)&real, "_ZNSt8ios_base15sync_with_stdioEb");
    bool before = real(together);
    heap_here = heap;
    return before;
}
