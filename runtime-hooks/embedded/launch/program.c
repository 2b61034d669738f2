/*
 * program.c: finds the program's file, loads it, and records what its constructors allocate.
 */
#define _GNU_SOURCE
#include "launch/program.h"
#include "image/ranges.h"
#include "libc/exit_functions.h"
#include "ranks/fatal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As a shell finds commands: a name with a slash is a path, others are looked for in PATH. */
static char *find_file(const char *name) {
    static char path[PATH_MAX];
    if (strchr(name, '/') || access(name, F_OK) == 0) {
        if (!realpath(name, path))
            fatal("%s can't be opened: %s", name, strerror(errno));
        return path;
    }
    char candidate[PATH_MAX];
    const char *folder = getenv("PATH");
    while (folder && *folder) {
        size_t length = strcspn(folder, ":");
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, folder, name);
        if (access(candidate, R_OK) == 0 && realpath(candidate, path))
            return path;
        folder += length + (folder[length] == ':');
    }
    fatal("program '%s' is neither in this folder nor in PATH", name);
}

/* Where a part of a file ends; a damaged header may have numbers that no file reaches. */
static uint64_t end_of(uint64_t offset, uint64_t size) {
    return size > INT64_MAX - (offset < INT64_MAX ? offset : INT64_MAX) ? INT64_MAX : offset + size;
}

/* The bytes that a file must have for its segments (ELF-64, program headers); 0 if it is not an ELF file. */
static uint64_t bytes_of_segments(int file) {
    ElfW(Ehdr) header;
    if (pread(file, &header, sizeof header, 0) != sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG))
        return 0;
    uint64_t needed = end_of(header.e_phoff, (uint64_t)header.e_phnum * sizeof(ElfW(Phdr)));
    for (uint64_t i = 0; i < header.e_phnum && needed < INT64_MAX; i++) {
        ElfW(Phdr) segment;
        if (pread(file, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) != sizeof segment)
            return needed;
        if (segment.p_type == PT_LOAD && end_of(segment.p_offset, segment.p_filesz) > needed)
            needed = end_of(segment.p_offset, segment.p_filesz);
    }
    return needed;
}

/* The loader would wait for a FIFO's writer for ever, and die of SIGBUS where a segment ends after the file. */
static void require_file(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0)
        fatal("%s can't be opened: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        fatal("%s is not a regular file; name a program that rankcc, rankcxx or rankfort built", path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        fatal("%s can't be opened: %s", path, strerror(errno));
    uint64_t needed = bytes_of_segments(file);
    close(file);
    if (needed > (uint64_t)status.st_size)
        fatal("%s is cut short, it has %lld of %llu bytes; build or copy it again", path, (long long)status.st_size,
              (unsigned long long)needed);
}

/* The file that is mapped at an address; "" if none is. */
static const char *mapped_file(uintptr_t address) {
    static char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long start, end;
    while (maps && fgets(line, sizeof line, maps)) {
        int name = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &name) == 2 && address >= start && address < end) {
            line[strcspn(line, "\n")] = '\0';
            return line + name;
        }
    }
    return "";
}

/* The loader reads a library that has fewer bytes than its segments. Other errors happen again on return. */
static void on_bus_error(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    const char *path = mapped_file((uintptr_t)information->si_addr);
    if (*path == '/')
        require_file(path);
}

static void *load(const char *path, struct rank_heap *heap) {
    struct sigaction before, wanted = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigaction(SIGBUS, &wanted, &before);
    heap_record(heap, true);
    exit_functions_loading();
    heap_here = heap;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    heap_here = NULL;
    heap_record(heap, false);
    sigaction(SIGBUS, &before, NULL);
    if (!handle)
        fatal("%s can't be loaded (%s); build it with rankcc, rankcxx or rankfort", path, dlerror());
    return handle;
}

struct program program_load(const char *name, uint32_t heap_range) {
    const char *path = find_file(name);
    require_file(path);
    struct program program = {.path = path};
    uint64_t start = range_start(heap_range);
    program.constructor_heap = heap_create(heap_range, start, start + range_size());
    if (!program.constructor_heap)
        fatal("the heap for constructors cannot be mapped: %s", strerror(errno));
    struct object_list before = objects_loaded();
    void *handle = load(path, program.constructor_heap);
    const struct exit_function *exit_functions = exit_functions_loaded();
    struct object_list after = objects_loaded();
    struct originals *originals = &program.originals;
    originals->objects = objects_new(&before, &after);
    for (int i = 0; i < originals->objects.count; i++)
        if (access(originals->objects.items[i].path, R_OK) == 0)
            require_file(originals->objects.items[i].path); /* what the file's last page lacks was read as zeros */
    originals->heap_start = heap_start(program.constructor_heap);
    originals->heap_size = heap_size(program.constructor_heap);
    originals->block_count = heap_recorded(&originals->blocks);
    originals->exit_functions = exit_functions;
    program.main = (uintptr_t)dlsym(handle, "main");
    int holder = program.main ? object_of(&originals->objects, program.main) : -1;
    if (holder < 0 || !originals->objects.items[holder].is_program)
        fatal("%s has no main; build it with rankcc, rankcxx or rankfort", path);
    return program;
}
