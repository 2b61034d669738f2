/*
 * hls.c: hierarchical local storage: a variable belongs to its rank, to its rank's kernel thread or to the process.
 *
 * As pie, every rank has a copy of the program, which makes all variables the rank's own.  Those that rank_program.h
 * gives another level stand in a section of that level; the program reaches them through the global offset table, whose
 * words in a rank's copy name the level's storage: the original itself for the process, a block for each kernel thread.
 * Described in "virtualization 2022", which cites MPC (docs/references.md has the source, and what differs).
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "image/method.h"
#include "image/object_byte_copies.h"
#include "rank_hooks.h"
#include "ranks/user_level_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREAD, PROCESS, LEVELS };
static const char *const section_names[LEVELS] = {"rank_level_thread", "rank_level_process"};

static struct { uint64_t start, end; /* of the section in the original; equal if there is none */ } levels[LEVELS];
static char **thread_blocks; /* by processing element */

/* ---- the program's file: section headers are in no segment ---- */

struct file {
    const char *bytes;
    size_t size;
    const ElfW(Ehdr) * header;
    const ElfW(Shdr) * sections;
};

static bool map_file(const char *path, struct file *file) {
    struct stat state;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    bool good = fstat(descriptor, &state) == 0 && state.st_size > (off_t)sizeof(ElfW(Ehdr));
    void *bytes = good ? mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
    close(descriptor);
    if (bytes == MAP_FAILED)
        return false;
    *file = (struct file){bytes, (size_t)state.st_size, bytes, NULL};
    if (file->header->e_shoff &&
        file->header->e_shoff + (uint64_t)file->header->e_shnum * sizeof(ElfW(Shdr)) <= file->size)
        file->sections = (const void *)(file->bytes + file->header->e_shoff);
    return true;
}

static const char *section_name(const struct file *file, const ElfW(Shdr) * section) {
    const ElfW(Shdr) *names = &file->sections[file->header->e_shstrndx];
    uint64_t at = names->sh_offset + section->sh_name;
    return at < file->size ? file->bytes + at : "";
}

static int level_of(uint64_t address) {
    for (int i = 0; i < LEVELS; i++)
        if (address >= levels[i].start && address < levels[i].end)
            return i;
    return -1;
}

static bool is_shared(uint64_t address) {
    return level_of(address) >= 0;
}

static void find_levels(const struct file *file, const struct object *program) {
    for (int i = 0; file->sections && i < file->header->e_shnum; i++)
        for (int level = 0; level < LEVELS; level++)
            if (!strcmp(section_name(file, &file->sections[i]), section_names[level])) {
                levels[level].start = program->bias + file->sections[i].sh_addr;
                levels[level].end = levels[level].start + file->sections[i].sh_size;
            }
}

/* The name of a variable with a level that its code reaches without the table, or NULL. */
static const char *direct_variable(const struct file *file, const struct object *program) {
    for (int i = 0; file->sections && i < file->header->e_shnum; i++) {
        const ElfW(Shdr) *section = &file->sections[i], *names = &file->sections[section->sh_link];
        if (section->sh_type != SHT_SYMTAB || section->sh_offset + section->sh_size > file->size)
            continue;
        const ElfW(Sym) *symbols = (const void *)(file->bytes + section->sh_offset);
        for (uint64_t k = 0; k < section->sh_size / sizeof *symbols; k++)
            if (ELF64_ST_TYPE(symbols[k].st_info) == STT_OBJECT && symbols[k].st_size > 0 &&
                ELF64_ST_BIND(symbols[k].st_info) == STB_LOCAL && level_of(program->bias + symbols[k].st_value) >= 0)
                return file->bytes + names->sh_offset + symbols[k].st_name;
    }
    return NULL;
}

static bool refuses(const struct image_plan *plan, char *why, size_t room) {
    const struct object *program = &plan->originals.objects.items[0];
    struct file file;
    if (!map_file(program->path, &file)) {
        snprintf(why, room, "%s can't be read", program->path);
        return true;
    }
    find_levels(&file, program);
    const char *direct = direct_variable(&file, program);
    if (direct)
        snprintf(
            why, room,
            "variable '%s' has a level, but is static: code finds static variables without the global offset table",
            direct);
    munmap((void *)(uintptr_t)file.bytes, file.size);
    return direct || byte_copies_refuse(plan, why, room);
}

/* ---- the levels' storage ---- */

static uint64_t storage(int level, int rank) {
    if (level == PROCESS)
        return levels[level].start;
    uint64_t size = levels[THREAD].end - levels[THREAD].start;
    char **block = &thread_blocks[ranks_element_of(rank)];
    if (!*block && (*block = aligned_alloc(64, align_up(size, 64))))
        memcpy(*block, (const void *)levels[THREAD].start, size);
    return (uint64_t)*block;
}

static int make(struct image *image, const struct image_plan *plan, int rank, uint64_t *cursor) {
    (void)rank;
    if (!thread_blocks && !(thread_blocks = calloc((size_t)plan->elements, sizeof *thread_blocks)))
        return ENOMEM;
    return byte_copies_make(image, plan, cursor);
}

/* Every word of the copy that was made to name a variable with a level names that level's storage instead. */
static int finish(struct image *image, const struct image_plan *plan, int rank) {
    const struct rewrite_list *list = &plan->rewrites;
    int error = byte_copies_rewrite(image, plan, rank);
    for (size_t i = 0; i < list->count && !error; i++) {
        const struct rewrite *rewrite = &list->items[i];
        int level = level_of(rewrite->value);
        if (level < 0 || rewrite->place == REWRITE_HEAP)
            continue;
        uint64_t start = storage(level, rank), value = start + (rewrite->value - levels[level].start);
        memcpy((void *)(image->copies[rewrite->place] + rewrite->offset), &value, sizeof value);
        error = start ? 0 : ENOMEM;
    }
    return error ? error : byte_copies_protect(image, plan);
}

static void describe(const struct image *image, const struct image_plan *plan, int rank) {
    (void)image, (void)plan;
    for (int level = 0; level < LEVELS; level++)
        if (levels[level].end > levels[level].start)
            rank_hooks_add_redirection(&(struct rank_debug_redirection){
                .rank = rank,
                .original = levels[level].start,
                .size = levels[level].end - levels[level].start,
                .storage = storage(level, rank),
            });
}

static const struct method hls = {
    .name = "hls",
    .summary = "as pie, and variables may belong to a kernel thread or to the process (rank_program.h)",
    .link = "-Wl,--no-relax", /* else the linker makes accesses direct, which it knows to be the program's own */
    .byte_copies = true,
    .refuses = refuses,
    .room = byte_copies_room,
    .make = make,
    .finish = finish,
    .describe = describe,
    .is_shared = is_shared,
};
RANK_METHOD(hls);
