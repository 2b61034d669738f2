/*
 * guards_aarch64.c: on AArch64 the guards of stacks and pointers are the system loader's variables.
 */
#if defined(__aarch64__)
#define _GNU_SOURCE
#include "machine/aarch64.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t *guard(int number) {
    return number ? dlvsym(RTLD_DEFAULT, "__pointer_chk_guard", "GLIBC_PRIVATE")
                  : dlsym(RTLD_DEFAULT, "__stack_chk_guard");
}

void machine_guards(uint64_t guards[2]) {
    for (int i = 0; i < 2; i++)
        guards[i] = guard(i) ? *guard(i) : 0;
}

int machine_set_guards(const uint64_t guards[2]) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < 2; i++) {
        uint64_t *place = guard(i);
        void *start = (void *)((uintptr_t)place & ~(page - 1));
        if (!place)
            return ENOSYS;
        if (mprotect(start, page, PROT_READ | PROT_WRITE))
            return errno;
        memcpy(place, &guards[i], sizeof *place);
        if (mprotect(start, page, PROT_READ))
            return errno;
    }
    return 0;
}
#else
typedef int nothing_here; /* C has no empty files */
#endif
