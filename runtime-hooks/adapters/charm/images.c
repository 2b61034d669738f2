/*
 * images.c: originals from the system's loader, copies by their ELF headers.
 */
#define _GNU_SOURCE
#include "images.h"
#include "image/unique.h"
#include "rank_hooks.h"

#include "cmitls.h"
#include "converse.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)

/* Only the loader of -pieglobals has it; the name is C++'s for pieglobalsfind(void *). */
extern void *pieglobals_find(void *address) __asm__("_Z14pieglobalsfindPv") __attribute__((weak));
#pragma weak CmiTLSGetDescription

static struct object_list before, originals;
static void **handles;
static int handle_count, rank_count;
static bool in_namespaces, is_pie;

void images_before_load(int ranks) {
    before = objects_loaded();
    handles = calloc((size_t)ranks, sizeof *handles);
    rank_count = handles ? ranks : 0;
}

void images_loaded(void *handle) {
    if (handle && handle_count < rank_count)
        handles[handle_count++] = handle;
}

bool images_tls_block(uint64_t *size, uint64_t *alignment) {
    if (is_pie || !CmiTLSGetDescription || !CmiThreadIs(CMI_THREAD_IS_TLS))
        return false;
    tlsdesc_t found = CmiTLSGetDescription();
    *size = found.size;
    *alignment = found.align;
    return found.size > 0 && found.align > 0;
}

static const struct link_map *first_of(const struct link_map *link) {
    while (link->l_prev)
        link = link->l_prev;
    return link;
}

static bool is_common(uint64_t bias) {
    for (int i = 0; i < before.count; i++)
        if (before.items[i].bias == bias)
            return true;
    return false;
}

static bool is_same(const struct object *one, const struct object *other) {
    size_t size = (size_t)one->header_count * sizeof *one->header;
    return one->span == other->span && one->header_count == other->header_count &&
           !memcmp(one->header, other->header, size) && !strcmp(one->path, other->path);
}

/* The original that an object is a copy of, a new one if there is none; -1 when there are too many. */
static int original_of(const struct object *object) {
    for (int i = 0; i < originals.count; i++)
        if (is_same(&originals.items[i], object))
            return i;
    if (originals.count == MOST_OBJECTS)
        return -1;
    originals.items = realloc(originals.items, (size_t)(originals.count + 1) * sizeof *originals.items);
    originals.items[originals.count] = *object;
    return originals.count++;
}

/* A rank's files have paths of their own under fs, and are the same file to a debugger all the same. */
static void add_linked(const struct link_map *link, bool is_program, struct copies *copies) {
    struct object object;
    if (is_common(link->l_addr) || !object_at(&object, link->l_name, link->l_addr))
        return;
    object.is_program = is_program;
    if (is_program && originals.count) {
        object.path = originals.items[0].path;
        originals.items[0].is_program = true;
    }
    int index = original_of(&object);
    if (index >= 0 && copies)
        copies->bases[index] = object.base;
}

static struct copies linked(const struct link_map *handle) {
    struct copies copies = {0};
    add_linked(handle, true, &copies);
    for (const struct link_map *link = in_namespaces ? first_of(handle) : NULL; link; link = link->l_next)
        if (link != handle)
            add_linked(link, false, &copies);
    return copies;
}

static void take_main_program(void) {
    struct object_list loaded = objects_loaded();
    originals = (struct object_list){loaded.items, loaded.count ? 1 : 0};
    if (loaded.count) {
        loaded.items[0].is_program = true;
        char path[4096];
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        loaded.items[0].path = strdup(path);
    }
}

const char *images_after_load(void) {
    struct object_list after = objects_loaded();
    uint64_t size, alignment;
    is_pie = pieglobals_find != NULL;
    if (is_pie) {
        originals = objects_new(&before, &after);
        if (originals.count > MOST_OBJECTS)
            originals.count = MOST_OBJECTS;
        return "pie";
    }
    if (handle_count) {
        struct link_map *own = dlopen(NULL, RTLD_NOW);
        in_namespaces = first_of(handles[0]) != first_of(own);
        linked(handles[0]);
        return in_namespaces ? "pip" : "fs";
    }
    take_main_program();
    return images_tls_block(&size, &alignment) ? "tls" : "none";
}

void images_describe(void) {
    objects_register(&originals);
}

/* Whether the bytes at `address` begin with the original's ELF header and program headers. */
static bool is_copy(const struct object *object, uint64_t address, uint64_t end) {
    uint64_t headers =
        (uintptr_t)object->header + (uint64_t)object->header_count * sizeof *object->header - object->base;
    return end - address >= object->span && !memcmp((const void *)address, (const void *)object->base, headers);
}

static struct copies found_in(uint64_t start, uint64_t end) {
    struct copies copies = {0};
    for (uint64_t at = (start + PAGE - 1) & ~(PAGE - 1); at + PAGE <= end;) {
        uint64_t next = at + PAGE;
        for (int i = 0; i < originals.count; i++)
            if (!copies.bases[i] && is_copy(&originals.items[i], at, end)) {
                copies.bases[i] = at;
                next = (at + originals.items[i].span + PAGE - 1) & ~(PAGE - 1);
                break;
            }
        at = next;
    }
    return copies;
}

struct copies images_of(int rank, uint64_t start, uint64_t end) {
    if (is_pie)
        return found_in(start, end);
    if (rank < handle_count)
        return linked(handles[rank]);
    return (struct copies){0};
}

/*
 * Where this kernel thread has an object's thread-local variables; 0 if the system's loader has made no block yet. It
 * has made those of static storage, but says where only when they are asked for.
 */
static uint64_t loaders_tls_block(const struct link_map *link, const struct object *object) {
    void *block = NULL;
    size_t module = 0;
    dlinfo((void *)link, RTLD_DI_TLS_DATA, &block);
    if (!block && object_dynamic_value(object, DT_FLAGS) & DF_STATIC_TLS &&
        !dlinfo((void *)link, RTLD_DI_TLS_MODID, &module))
        return module ? tls_block(module) : 0;
    return (uintptr_t)block;
}

/* Which blocks a rank uses depends on the kernel thread that runs it, if there are several. */
static void add_loaders_tls_blocks(int rank) {
    if (is_pie || rank >= handle_count || CmiMyNodeSize() > 1)
        return;
    const struct link_map *handle = handles[rank], *link = in_namespaces ? first_of(handle) : handle;
    for (; link; link = in_namespaces ? link->l_next : NULL) {
        struct object object;
        if (is_common(link->l_addr) || !object_at(&object, link->l_name, link->l_addr) || !object.tls_size)
            continue;
        if (link == handle)
            object.path = originals.items[0].path;
        int index = original_of(&object);
        uint64_t block = loaders_tls_block(link, &object);
        if (index >= 0 && block)
            rank_hooks_add_tls_block(&(struct rank_debug_tls_block){
                .rank = rank,
                .object = (uint32_t)index,
                .kind = RANK_DEBUG_TLS_BLOCK,
                .level = RANK_DEBUG_TLS_LEVEL_RANK,
                .address = block,
                .size = object.tls_size,
            });
    }
}

void images_add(int rank, const struct copies *copies, uint64_t pointer) {
    for (int i = 0; i < originals.count; i++)
        if (copies->bases[i]) {
            rank_hooks_add_copy(&(struct rank_debug_copy){rank, (uint32_t)i, copies->bases[i]});
            if (handle_count && !in_namespaces) /* each namespace has an instance of its own */
                unique_describe(&originals.items[i], (uint32_t)i, rank, copies->bases[i]);
        }
    add_loaders_tls_blocks(rank);
    uint64_t size, alignment;
    if (pointer && images_tls_block(&size, &alignment))
        rank_hooks_add_tls_block(&(struct rank_debug_tls_block){
            .rank = rank,
            .object = 0,
            .kind = RANK_DEBUG_TLS_THREAD_POINTER,
            .level = RANK_DEBUG_TLS_LEVEL_RANK,
            .address = pointer,
            .size = size,
        });
}

uint64_t images_end(const struct copies *copies, uint64_t start, uint64_t end) {
    uint64_t last = start;
    for (int i = 0; i < originals.count; i++) {
        uint64_t after = copies->bases[i] + originals.items[i].span;
        if (copies->bases[i] >= start && after <= end && after > last)
            last = after;
    }
    return (last + PAGE - 1) & ~(PAGE - 1);
}

bool images_are_bytes(void) {
    return is_pie;
}

const struct object_list *images_originals(void) {
    return &originals;
}
