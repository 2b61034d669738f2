/* describe.c: describes itself, libm and the library that it is given to the registry, says so, and stays. */
#define RANK_HOOKS_IMPLEMENTATION
#include "rank_hooks_single.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    const struct rank_hooks_capacity room = {.strings = 4096, .objects = 3, .segments = 48};
    void *library = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (!library || rank_hooks_create(&room) != 0)
        return 1;
    int on_stack;
    rank_hooks_begin();
    rank_hooks_header()->rank_count = 1;
    uint32_t first = rank_hooks_add_program((const void *)(uintptr_t)main, RANK_DEBUG_OBJECT_PROGRAM);
    uint32_t second = rank_hooks_add_program((const void *)(uintptr_t)cos, 0);
    uint32_t third = rank_hooks_add_program(dlsym(library, "counter"), RANK_DEBUG_OBJECT_PRIVATIZED);
    uint32_t none = rank_hooks_add_program(&on_stack, 0);
    uint32_t full = rank_hooks_add_program((const void *)(uintptr_t)main, 0);
    rank_hooks_commit();
    printf("ready %u %u %u %d %d\n", first, second, third, none == RANK_DEBUG_NONE, full == RANK_DEBUG_NONE);
    fflush(stdout);
    pause();
    return 0;
}
