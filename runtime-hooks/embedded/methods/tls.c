/*
 * tls.c: thread-local variables are made rank-local, by a block of thread-local storage for every rank (TLSglobals).
 *
 *   tls       the thread pointer (fs base, tpidr_el0) is the rank's while it runs: every way of reaching a thread-local
 * variable finds the rank's block. tls-word  only the word at %fs:0 is replaced, as AMPI does: a variable is reached in
 * the rank's block only by code that adds its offset to that word (gcc's -mno-tls-direct-seg-refs); see System V psABI,
 * x86-64, and "ELF Handling For Thread-Local Storage", variant II.
 *
 * Other globals stay shared.
 * Described in "globals 2011" (docs/references.md has the source, and what differs).
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "image/method.h"
#include "image/ranges.h"
#include "machine/machine.h"
#include "rank_hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <unistd.h>

static uint64_t static_size; /* of the static blocks and the control block */
static uint64_t control_size;
static uint64_t main_pointer;
static bool can_write_pointer;
static void *(*allocate_vector)(void *control_block);

/* The loader's and libc's own figures; both are exported for the thread library and its debugger. */
static int measure(void) {
    void (*static_info)(size_t * size, size_t * alignment);
    *(void **)&static_info = dlvsym(RTLD_DEFAULT, "_dl_get_tls_static_info", "GLIBC_PRIVATE");
    *(void **)&allocate_vector = dlvsym(RTLD_DEFAULT, "_dl_allocate_tls", "GLIBC_PRIVATE");
    const uint32_t *control = dlvsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread", "GLIBC_PRIVATE");
    if (!static_info || !allocate_vector || !control)
        return ENOSYS;
    size_t size, alignment;
    static_info(&size, &alignment);
    control_size = *control;
    static_size = size;
    main_pointer = machine_thread_pointer();
    can_write_pointer = machine_can_write_thread_pointer();
    return 0;
}

static uint64_t blocks_size(void) {
    return machine_tls_below(static_size, control_size) + machine_tls_above(static_size, control_size);
}

static uint64_t program_tls(const struct image_plan *plan) {
    uint64_t size = 0;
    for (int i = 0; i < plan->originals.objects.count; i++)
        if (plan->originals.objects.items[i].is_program)
            size += plan->originals.objects.items[i].tls_size;
    return size;
}

/* Of the file's PT_TLS: before the program is loaded, room has to be asked for. */
static uint64_t file_tls(const char *path) {
    ElfW(Ehdr) header;
    uint64_t size = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    if (pread(file, &header, sizeof header, 0) == sizeof header && !memcmp(header.e_ident, ELFMAG, SELFMAG))
        for (int i = 0; i < header.e_phnum; i++) {
            ElfW(Phdr) program;
            off_t at = (off_t)(header.e_phoff + (uint64_t)i * header.e_phentsize);
            if (pread(file, &program, sizeof program, at) == sizeof program && program.p_type == PT_TLS)
                size = program.p_memsz + program.p_align;
        }
    close(file);
    return size;
}

static void tunables(const char *program, int ranks, char *text, size_t room) {
    (void)ranks;
    uint64_t size = file_tls(program);
    if (size > 256)
        snprintf(text, room, "glibc.rtld.optional_static_tls=%lu", size + 4096);
}

static bool refuses(const struct image_plan *plan, char *why, size_t room) {
    const struct object *program = &plan->originals.objects.items[0];
    if (measure()) {
        snprintf(why, room, "method %s needs the GNU C library", plan->method->name);
        return true;
    }
    if (program_tls(plan) && !program->tls_offset) {
        snprintf(why, room, "%s has thread-local variables outside the static block: build it with rankcc --method %s",
                 program->path, plan->method->name);
        return true;
    }
    return false;
}

static bool refuses_word(const struct image_plan *plan, char *why, size_t room) {
    if (MACHINE_HAS_POINTER_WORD)
        return refuses(plan, why, room);
    snprintf(why, room,
             "method tls-word exchanges the word at the thread pointer, which code of this processor does "
             "not read: use --method tls");
    return true;
}

static uint64_t room(const struct image_plan *plan) {
    (void)plan;
    return blocks_size() + 3 * PAGE;
}

/* The rank's thread pointer lies between its static blocks and its control block, as in every thread. */
static int make(struct image *image, const struct image_plan *plan, int rank, uint64_t *cursor) {
    (void)plan, (void)rank;
    uint64_t start = *cursor;
    uint64_t size = align_up(blocks_size() + 64, PAGE);
    int error = range_commit(start, size);
    image->token = align_up(start + machine_tls_below(static_size, control_size), 64);
    *cursor = start + size + PAGE;
    return error;
}

/* tls: a vector of its own makes __tls_get_addr() find the rank's blocks. */
static int make_vector(struct image *image, const struct image_plan *plan, int rank) {
    (void)plan, (void)rank;
    return allocate_vector((void *)image->token) ? 0 : ENOMEM;
}

static void describe(const struct image *image, const struct image_plan *plan, int rank) {
    if (program_tls(plan))
        rank_hooks_add_tls_block(&(struct rank_debug_tls_block){
            .rank = rank,
            .object = RANK_DEBUG_NONE,
            .kind = RANK_DEBUG_TLS_THREAD_POINTER,
            .level = RANK_DEBUG_TLS_LEVEL_RANK,
            .address = image->token,
            .size = MACHINE_TLS_IS_ABOVE ? static_size : static_size - control_size,
        });
}

/*
 * A rank begins with what its kernel thread has (locale, character tables, this runtime's variables), but for the
 * program's own blocks, which are those of the main thread: its constructors wrote there.
 */
static void inherit(uint64_t pointer, uint64_t thread) {
    if (MACHINE_TLS_IS_ABOVE) { /* after the two words of a control block */
        memcpy((void *)(pointer + 16), (const void *)(thread + 16), static_size - 16);
        return;
    }
    uint64_t size = static_size - control_size;
    memcpy((void *)(pointer - size), (const void *)(thread - size), size);
}

static const struct object_list *program_objects;

static void inherit_program(uint64_t pointer) {
    for (int i = 0; i < program_objects->count; i++) {
        const struct object *object = &program_objects->items[i];
        if (object->tls_offset)
            memcpy((void *)(pointer - object->tls_offset), (const void *)(main_pointer - object->tls_offset),
                   object->tls_size);
    }
}

static int finish_word(struct image *image, const struct image_plan *plan, int rank) {
    (void)image, (void)rank;
    program_objects = &plan->originals.objects;
    return 0;
}

static int finish(struct image *image, const struct image_plan *plan, int rank) {
    program_objects = &plan->originals.objects;
    return make_vector(image, plan, rank);
}

static void adopt_word(uint64_t pointer) {
    inherit(pointer, machine_thread_pointer());
    inherit_program(pointer);
    *(uint64_t *)pointer = pointer; /* the word itself */
}

static void adopt(uint64_t pointer) {
    uint64_t thread = machine_thread_pointer();
    inherit(pointer, thread);
    inherit_program(pointer);
    machine_copy_control_block(pointer, thread, control_size);
    if (__rseq_size) /* the kernel writes the number of the processor into the thread's own block alone */
        ((struct rseq *)(pointer + (uint64_t)__rseq_offset))->cpu_id = (uint32_t)RSEQ_CPU_ID_UNINITIALIZED;
}

static void enter(uint64_t pointer) {
    machine_set_thread_pointer(pointer, can_write_pointer);
}

static void enter_word(uint64_t pointer) {
    machine_set_pointer_word(pointer);
}

static const struct method tls = {
    .name = "tls",
    .summary = "make thread-local variables rank-local, by a thread pointer for every rank",
    .compile = "-ftls-model=initial-exec",
    .has_thread_pointers = true,
    .tunables = tunables,
    .refuses = refuses,
    .room = room,
    .make = make,
    .finish = finish,
    .describe = describe,
    .enter = enter,
    .thread_token = machine_thread_pointer,
    .adopt = adopt,
};
RANK_METHOD(tls);

static const struct method tls_word = {
    .name = "tls-word",
    .summary = "likewise, by the word at %fs:0 alone, as AMPI does",
    .compile = "-ftls-model=initial-exec" MACHINE_BY_POINTER_WORD,
    .has_thread_pointers = true,
    .tunables = tunables,
    .refuses = refuses_word,
    .room = room,
    .make = make,
    .finish = finish_word,
    .describe = describe,
    .enter = enter_word,
    .thread_token = machine_thread_pointer,
    .adopt = adopt_word,
};
RANK_METHOD(tls_word);
