/*
 * object_byte_copies.c: copies an original's segments, protects the copy as the original is, and makes exceptions work
 * in it.
 */
#define _GNU_SOURCE
#include "image/object_byte_copies.h"
#include "image/method.h"
#include "image/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* libgcc's, for unwinding through code that the system's loader does not know. */
extern void __register_frame(void *begin);
extern void __deregister_frame(void *begin);
struct unwind_bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *pc, struct unwind_bases *bases);

/* The kernel's: what is laid out in larger steps is protected in these, as the system's loader does. */
static uint64_t page_size(void) {
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Copies page by page what is not zero: .bss that no constructor wrote stays without memory. */
static void copy_bytes(uint64_t to, uint64_t from, uint64_t size) {
    static const char zero[PAGE];
    for (uint64_t part; size; to += part, from += part, size -= part) {
        part = PAGE - (to & (PAGE - 1));
        part = part < size ? part : size;
        if (memcmp((const void *)from, zero, part) != 0)
            memcpy((void *)to, (const void *)from, part);
    }
}

/* With exact rewriting a copy's data begin as in the file, since its constructors are to run again. */
static int read_pristine(const struct object *object, uint64_t copy, const ElfW(Phdr) * header) {
    int file = open(object->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    uint64_t to = copy + (object->bias + header->p_vaddr - object->base), done = 0;
    while (done < header->p_filesz) {
        ssize_t got = pread(file, (void *)(to + done), header->p_filesz - done, (off_t)(header->p_offset + done));
        if (got <= 0) {
            close(file);
            return got < 0 ? errno : ENOEXEC;
        }
        done += (uint64_t)got;
    }
    close(file);
    return 0;
}

/* Every word that a relocation wrote in the original, addresses outside the originals included. */
static void copy_relocated(const struct object *object, uint64_t copy, uint64_t table, uint64_t size) {
    const ElfW(Rela) *entry = (const void *)table;
    for (uint64_t i = 0; i < size / sizeof *entry; i++) {
        uint64_t offset = object->bias + entry[i].r_offset - object->base;
        if (offset + 8 <= object->span)
            memcpy((void *)(copy + offset), (const void *)(object->base + offset), 8);
    }
}

/* Maps a segment that is never written from the file itself: all ranks have the same pages (PIEglobals, future work).
 */
static int map_segment(const struct object *object, uint64_t copy, const ElfW(Phdr) * header) {
    int file = open(object->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno;
    uint64_t start = copy + (object->bias + header->p_vaddr - object->base), before = start & (page_size() - 1);
    void *got = mmap((void *)(start - before), before + header->p_filesz, PROT_READ, MAP_PRIVATE | MAP_FIXED, file,
                     (off_t)(header->p_offset - before));
    int error = got == MAP_FAILED ? errno : 0;
    close(file);
    return error;
}

/* Where a segment's bytes are as they were loaded. */
static uint64_t first_bytes(const struct image_plan *plan, int index, uint64_t offset, bool writable) {
    const unsigned char *kept = plan->pristine ? plan->pristine[index] : NULL;
    return kept && writable ? (uintptr_t)kept + offset : plan->originals.objects.items[index].base + offset;
}

static int fill_copy(const struct image_plan *plan, int index, uint64_t copy) {
    const struct object *object = &plan->originals.objects.items[index];
    enum rewrite_mode mode = plan->mode;
    bool share = plan->share_code;
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        if (header->p_type != PT_LOAD)
            continue;
        uint64_t offset = object->bias + header->p_vaddr - object->base;
        int error = 0;
        if (share && !(header->p_flags & PF_W))
            error = map_segment(object, copy, header);
        else if (mode == REWRITE_EXACT && (header->p_flags & PF_W))
            error = read_pristine(object, copy, header);
        else
            copy_bytes(copy + offset, first_bytes(plan, index, offset, header->p_flags & PF_W), header->p_memsz);
        if (error)
            return error;
    }
    if (mode == REWRITE_EXACT) {
        copy_relocated(object, copy, object_dynamic_address(object, DT_RELA), object_dynamic_value(object, DT_RELASZ));
        copy_relocated(object, copy, object_dynamic_address(object, DT_JMPREL),
                       object_dynamic_value(object, DT_PLTRELSZ));
    }
    return 0;
}

static int protection_of(uint32_t flags) {
    return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

static int protect(const struct object *object, uint64_t copy) {
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        uint64_t start = copy + (object->bias + header->p_vaddr - object->base);
        uint64_t first = start & ~(page_size() - 1);
        uint64_t end = align_up(start + header->p_memsz, page_size());
        /* Code was written as data: where the processor does not see that by itself, the caches have to be flushed. */
        if (header->p_type == PT_LOAD && header->p_flags & PF_X)
            __builtin___clear_cache((char *)start, (char *)(start + header->p_memsz));
        if (header->p_type == PT_LOAD && mprotect((void *)first, end - first, protection_of(header->p_flags)))
            return errno;
    }
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        uint64_t start = copy + (object->bias + header->p_vaddr - object->base);
        uint64_t end =
            (start + header->p_memsz) & ~(page_size() - 1); /* RELRO ends where a page ends (gABI: rounded down) */
        start &= ~(page_size() - 1);
        if (header->p_type == PT_GNU_RELRO && end > start && mprotect((void *)start, end - start, PROT_READ))
            return errno;
    }
    return 0;
}

/*
 * Makes exceptions and backtrace() work in a copy.  The address of .eh_frame is in .eh_frame_hdr (LSB, "Exception
 * Frame Header"): version, three encodings, then the pointer, which every linker writes as pcrel sdata4.
 */
static void *frames_of(const struct object *object, uint64_t copy) {
    const unsigned char *header = (const void *)object->frame_header;
    if (!header || header[0] != 1 || header[1] != 0x1b)
        return NULL;
    int32_t distance;
    memcpy(&distance, header + 4, sizeof distance);
    uint64_t frames = object->frame_header + 4 + (uint64_t)(int64_t)distance;
    return (void *)(copy + (frames - object->base));
}

static void register_frames(const struct object *object, uint64_t copy) {
    void *frames = frames_of(object, copy);
    if (!frames)
        return;
    __register_frame(frames);
    /* libgcc sorts a new table at its first use: have that happen here, where malloc is not a rank's. */
    struct unwind_bases bases;
    _Unwind_Find_FDE(frames, &bases);
}

void byte_copies_unregister(const struct image *image, const struct image_plan *plan) {
    for (int i = 0; i < plan->originals.objects.count; i++) {
        void *frames = frames_of(&plan->originals.objects.items[i], image->copies[i]);
        if (frames)
            __deregister_frame(frames);
    }
}

uint64_t byte_copies_room(const struct image_plan *plan) {
    uint64_t room = 0;
    for (int i = 0; i < plan->originals.objects.count; i++)
        room += plan->originals.objects.items[i].span + 2 * plan->originals.objects.items[i].alignment;
    return room;
}

int byte_copies_make(struct image *image, const struct image_plan *plan, uint64_t *cursor) {
    int error = byte_copies_place(image, plan, cursor);
    return error ? error : byte_copies_fill(image, plan);
}

int byte_copies_fill(struct image *image, const struct image_plan *plan) {
    const struct object_list *objects = &plan->originals.objects;
    for (int i = 0; i < objects->count; i++) {
        int error = fill_copy(plan, i, image->copies[i]);
        if (error)
            return error;
    }
    return 0;
}

const unsigned char *const *byte_copies_pristine(const struct originals *originals) {
    const unsigned char **kept = calloc((size_t)originals->objects.count, sizeof *kept);
    for (int i = 0; kept && i < originals->objects.count; i++) {
        const struct object *object = &originals->objects.items[i];
        void *memory =
            mmap(NULL, object->span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return NULL;
        madvise(memory, object->span, MADV_DONTDUMP);
        kept[i] = memory;
        for (int h = 0; h < object->header_count; h++) {
            const ElfW(Phdr) *header = &object->header[h];
            uint64_t offset = object->bias + header->p_vaddr - object->base;
            if (header->p_type == PT_LOAD && header->p_flags & PF_W)
                copy_bytes((uintptr_t)memory + offset, object->base + offset, header->p_memsz);
        }
    }
    return kept;
}

uint64_t byte_copies_digest(const struct image_plan *plan, int index) {
    const struct object *object = &plan->originals.objects.items[index];
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        uint64_t offset = object->bias + header->p_vaddr - object->base;
        const unsigned char *bytes = (const void *)first_bytes(plan, index, offset, true);
        for (uint64_t k = 0; header->p_type == PT_LOAD && header->p_flags & PF_W && k < header->p_memsz; k++)
            digest = (digest ^ bytes[k]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

/* The first word at or after `offset` that is rewritten in an object; a scan finds them in this order, the heap's last.
 */
static size_t first_rewrite(const struct rewrite_list *list, int place, uint64_t offset) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct rewrite *rewrite = &list->items[middle];
        if (rewrite->place != REWRITE_HEAP &&
            (rewrite->place < place || (rewrite->place == place && rewrite->offset < offset)))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Compares with the original after the rewritten words are put back to what they were. */
bool byte_copies_are_first_content(const struct image *image, const struct image_plan *plan, int index,
                                   uint64_t address, uint64_t size) {
    const struct object *object = &plan->originals.objects.items[index];
    uint64_t offset = address - image->copies[index];
    bool writable = false;
    for (int h = 0; h < object->header_count; h++) {
        uint64_t start = object->bias + object->header[h].p_vaddr - object->base;
        if (object->header[h].p_type == PT_LOAD && offset >= start && offset < start + object->header[h].p_memsz)
            writable = object->header[h].p_flags & PF_W;
    }
    if (writable && plan->mode == REWRITE_EXACT)
        return false; /* constructors have run in the original, and in the copy again */
    const void *before = (const void *)first_bytes(plan, index, offset, writable);
    if (memcmp((const void *)address, before, size) == 0)
        return true;
    unsigned char page[PAGE];
    memcpy(page, (const void *)address, size);
    const struct copies copies = {image->copies, heap_start(image->heap)};
    for (size_t i = first_rewrite(&plan->rewrites, index, offset); i < plan->rewrites.count; i++) {
        const struct rewrite *rewrite = &plan->rewrites.items[i];
        uint64_t value = rewrite_value(rewrite, &plan->originals, &copies);
        if (rewrite->place != index || rewrite->offset + sizeof value > offset + size)
            break;
        if (memcmp(page + (rewrite->offset - offset), &value, sizeof value) == 0)
            memcpy(page + (rewrite->offset - offset), &rewrite->value, sizeof value);
    }
    return memcmp(page, before, size) == 0;
}

int byte_copies_place(struct image *image, const struct image_plan *plan, uint64_t *cursor) {
    const struct object_list *objects = &plan->originals.objects;
    for (int i = 0; i < objects->count; i++) {
        const struct object *object = &objects->items[i];
        /* The copy keeps the original's place within its largest alignment, and a page lies between any two. */
        *cursor = align_up(*cursor, object->alignment) + (object->base & (object->alignment - 1));
        image->copies[i] = *cursor;
        int error = range_commit(*cursor, object->span);
        if (error)
            return error;
        *cursor = align_up(*cursor + object->span, PAGE) + PAGE;
    }
    return 0;
}

int byte_copies_rewrite(struct image *image, const struct image_plan *plan, int rank) {
    struct copies copies = {image->copies, heap_start(image->heap)};
    rewrites_apply(&plan->rewrites, &plan->originals, &copies, rank, plan->log);
    return 0;
}

int byte_copies_protect(struct image *image, const struct image_plan *plan) {
    const struct object_list *objects = &plan->originals.objects;
    for (int i = 0; i < objects->count; i++) {
        int error = protect(&objects->items[i], image->copies[i]);
        if (error)
            return error;
        register_frames(&objects->items[i], image->copies[i]);
    }
    return 0;
}

/*
 * Thread-local storage is reached through the thread pointer, which all ranks of a kernel thread share.  That is
 * harmless in a library as its authors meant it per thread (libgfortran keeps the unit of asynchronous I/O there), and
 * wrong in the program.
 */
bool byte_copies_refuse(const struct image_plan *plan, char *why, size_t room) {
    const struct originals *originals = &plan->originals;
    for (int i = 0; i < originals->objects.count; i++) {
        const struct object *object = &originals->objects.items[i];
        if (!object->is_program || object->tls_size == 0)
            continue;
        snprintf(why, room,
                 "%s has %lu bytes of thread-local variables, which method %s can't make private: remove "
                 "thread_local, __thread or threadprivate",
                 object->path, object->tls_size, plan->method->name);
        return true;
    }
    return false;
}
