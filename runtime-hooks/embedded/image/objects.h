/*
 * objects.h: the loaded ELF files that dlopen() of the program brought in: the originals.
 *
 * Read from the loader's own program headers (dl_iterate_phdr), never from the files.  Knows nothing of copies.
 */
#ifndef RANK_OBJECTS_H
#define RANK_OBJECTS_H

#include "rank_debug.h"

#include <link.h>
#include <stdbool.h>

struct object {
    char *path;                /* absolute */
    uint64_t base;             /* first byte of the lowest PT_LOAD, rounded down to a page */
    uint64_t bias;             /* added to its p_vaddr's */
    uint64_t span;             /* to the end of the highest PT_LOAD */
    uint64_t alignment;        /* the largest of its PT_LOADs */
    const ElfW(Phdr) * header; /* its program headers, in its own memory */
    int header_count;
    const ElfW(Dyn) * dynamic;
    uint64_t frame_header; /* address of .eh_frame_hdr, 0 if none */
    uint64_t tls_module;
    uint64_t tls_size;
    uint64_t tls_align;
    int64_t tls_offset; /* from its static block to the thread pointer, negative if it lies above, 0 if it has none */
    bool is_program;
};

struct object_list {
    struct object *items;
    int count;
};

/* The objects that are loaded now. */
struct object_list objects_loaded(void);

/* An object's build-id, of the size that is returned; 0: it has none. */
size_t object_build_id(const struct object *object, const unsigned char **build_id);

/* Those of `after` that are not in `before`, in the loader's order: the program first, then what it needs. */
struct object_list objects_new(const struct object_list *before, const struct object_list *after);

/* The object that the system's loader placed at `bias`, by the headers there; false if there are none. */
bool object_at(struct object *object, const char *path, uint64_t bias);

/* Whose span an address lies in, its end included; -1 for none. */
int object_of(const struct object_list *list, uint64_t address);

/* Value of the first dynamic entry with this tag that is an address in the object's memory, or 0. */
uint64_t object_dynamic_address(const struct object *object, int64_t tag);
uint64_t object_dynamic_value(const struct object *object, int64_t tag);

/* Where the calling kernel thread has its block of a loaded module's thread-local variables; made if it has none. */
uint64_t tls_block(unsigned long module);

/* Adds them to the registry (between begin and commit); each one's index there is its index in the list. */
void objects_register(const struct object_list *list);

#endif
