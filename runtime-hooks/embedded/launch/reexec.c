/*
 * reexec.c: asks glibc for more namespaces or more static TLS through GLIBC_TUNABLES, and the kernel for addresses
 * that are not random, by a second exec.
 *
 * What the user had in that variable is kept in MARK meanwhile, and is back before the program is loaded.
 */
#define _GNU_SOURCE
#include "launch/reexec.h"
#include "image/method.h"
#include "job/hosts.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#define MARK "RANKRUN_USER_TUNABLES"
#define TUNABLES "GLIBC_TUNABLES"

static void put_back(const char *tunables) {
    if (*tunables)
        setenv(TUNABLES, tunables, 1);
    else
        unsetenv(TUNABLES);
    unsetenv(MARK);
}

/* What lies in a rank's memory names libraries' addresses: those have to be the same at a restart, and elsewhere. */
static bool fix_addresses(void) {
    int now = personality(0xffffffff);
    if (now >= 0 && now & ADDR_NO_RANDOMIZE)
        return false;
    if (now < 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0) {
        fatal("the kernel does not allow addresses that are not random (personality: %s), without which there are no "
              "checkpoints and no jobs of several hosts; allow it in the container's seccomp profile",
              strerror(errno));
    }
    return true;
}

void reexec_with_settings(const struct options *options, char **argv) {
    char wanted[256] = "", all[1024], self[PATH_MAX];
    const char *user = getenv(MARK);
    if (user) {
        put_back(user);
        unsetenv(SITE_MARK);
        return;
    }
    if (options->method->tunables)
        options->method->tunables(options->arguments[0], options_residents(options), wanted, sizeof wanted);
    bool fixed = site_hosts() > 1 || options->checkpoint || options->restart, again = fixed && fix_addresses();
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if ((!*wanted && !again) || length < 0)
        return;
    self[length] = '\0';
    user = getenv(TUNABLES);
    user = user ? user : "";
    snprintf(all, sizeof all, "%s%s%s", user, *user ? ":" : "", wanted);
    setenv(MARK, user, 1);
    if (*all)
        setenv(TUNABLES, all, 1);
    execv(self, argv);
    put_back(getenv(MARK)); /* without the settings some programs run all the same */
}
