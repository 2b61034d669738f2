/*
 * method.h: a method of privatization, as the rest of the runtime knows it.
 *
 * A method is in a file in methods/, which no other file names: it enters itself in a table that the linker gathers.
 * It refuses, before any damage is done, a program that it can't serve; gives every rank its globals; and tells the
 * registry where they are.
 */
#ifndef RANK_METHOD_H
#define RANK_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct image_plan;

struct method {
    const char *name;
    const char *summary; /* for --help */
    /* What rankcc adds to the compiler's options, and to the linker's; NULL: nothing. */
    const char *compile, *link;
    bool byte_copies;       /* copies are made of the originals' bytes, so that constructors' blocks are replayed */
    bool shares_heap;       /* malloc() is libc's for every rank */
    bool is_preemptible;    /* the program's names stay open to other objects' (no --dynamic-list) */
    bool is_kernel_task;    /* every rank has a processing element of its own */
    bool is_process;        /* processing elements are processes that share this one's memory, */
    bool has_private_pages; /* or share the ranks' ranges and the runtime's own memory alone */

    bool can_move;            /* all that is a rank's lies in its range, so that it can go to another process */
    bool has_thread_pointers; /* thread-local variables are the rank's own, and describe() tells where */

    /* Settings of the loader that only a new start of the process can make, as in GLIBC_TUNABLES; NULL: none. */
    void (*tunables)(const char *program, int ranks, char *text, size_t room);
    /* Writes one sentence into `why` and returns true if these originals can't be served. */
    bool (*refuses)(const struct image_plan *plan, char *why, size_t room);
    /* Bytes of a rank's range that make() may take. */
    uint64_t (*room)(const struct image_plan *plan);
    /* Gives a rank its globals, from *cursor of its range on; 0, or an errno value. finish() comes after the heap. */
    int (*make)(struct image *image, const struct image_plan *plan, int rank, uint64_t *cursor);
    int (*finish)(struct image *image, const struct image_plan *plan, int rank);
    /* For a rank that comes from another process: as make() without content; with its first content; once it has its
     * own.  unsettle() is settle()'s contrary, where it leaves.  NULL: nothing to do. */
    int (*place)(struct image *image, const struct image_plan *plan, uint64_t *cursor);
    int (*fill)(struct image *image, const struct image_plan *plan, int rank);
    bool (*is_first_content)(const struct image *image, const struct image_plan *plan, int object, uint64_t address,
                             uint64_t size);
    int (*settle)(struct image *image, const struct image_plan *plan);
    void (*unsettle)(const struct image *image, const struct image_plan *plan);
    /* Adds to the registry what the copies alone do not tell (between begin and commit). */
    void (*describe)(const struct image *image, const struct image_plan *plan, int rank);
    /* Whether all ranks use what stands at an address of an original; NULL: each rank that has a copy of it has its
     * own. */
    bool (*is_shared)(uint64_t address);
    /* On the rank's own stack: before its main, and after it. */
    void (*begin)(const struct image *image);
    void (*end)(const struct image *image);
    /* At every switch, with the token of the rank that runs next, or of the kernel thread when none does. */
    void (*enter)(uint64_t token);
    uint64_t (*thread_token)(void);
    /* On the kernel thread that will run a rank, before it does. */
    void (*adopt)(uint64_t token);
};

#define RANK_METHOD(definition)                                                                                        \
    static const struct method *const definition##_entry __attribute__((used, section("rank_methods"))) = &definition

#endif
