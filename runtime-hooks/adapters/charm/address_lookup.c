/*
 * address_lookup.c: maps symbol tables of loaded files, and finds addresses in them.
 */
#define _GNU_SOURCE
#include "address_lookup.h"
#include "images.h"
#include "ranks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static struct code *files;
static int file_count;
static pid_t process;

/* A whole file, mapped for good; its pages come when they are looked at. */
static const char *map_file(const char *path, uint64_t *size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat state;
    if (file < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (fstat(file, &state) == 0 && state.st_size > (off_t)sizeof(Elf64_Ehdr))
        memory = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return NULL;
    *size = (uint64_t)state.st_size;
    return memory;
}

static bool lies_in(uint64_t offset, uint64_t size, uint64_t whole) {
    return offset <= whole && size <= whole - offset;
}

/* The static table of symbols, or that of the exported ones. */
static void find_symbols(struct code *code, const char *path) {
    uint64_t size;
    const char *file = map_file(path, &size);
    if (!file)
        return;
    const Elf64_Ehdr *header = (const void *)file;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_shentsize != sizeof(Elf64_Shdr) ||
        !lies_in(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), size))
        return;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff), *found = NULL;
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB || (sections[i].sh_type == SHT_DYNSYM && !found))
            found = &sections[i];
    if (!found || found->sh_link >= header->e_shnum || !lies_in(found->sh_offset, found->sh_size, size))
        return;
    const Elf64_Shdr *strings = &sections[found->sh_link];
    if (!lies_in(strings->sh_offset, strings->sh_size, size) || !strings->sh_size ||
        file[strings->sh_offset + strings->sh_size - 1])
        return;
    code->symbols = (const void *)(file + found->sh_offset);
    code->symbol_count = found->sh_size / sizeof(Elf64_Sym);
    code->strings = file + strings->sh_offset;
    code->strings_size = strings->sh_size;
}

/* The system's loader has no path for the main program. */
static const char *program_path(void) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return path;
}

static void add(const struct object *object) {
    struct code *code = &files[file_count++];
    *code = (struct code){
        .path = *object->path ? object->path : program_path(),
        .start = object->base,
        .end = object->base + object->span,
        .bias = object->bias,
        .frame_header = object->frame_header,
    };
    find_symbols(code, code->path);
}

static bool is_known(uint64_t base) {
    for (int i = 0; i < file_count; i++)
        if (files[i].start == base)
            return true;
    return false;
}

void code_prepare(void) {
    struct object_list loaded = objects_loaded();
    const struct object_list *originals = images_originals();
    files = calloc((size_t)(loaded.count + originals->count), sizeof *files);
    process = getpid();
    for (int i = 0; files && i < loaded.count; i++)
        add(&loaded.items[i]);
    for (int i = 0; files && i < originals->count; i++) /* in linker namespaces of their own */
        if (!is_known(originals->items[i].base))
            add(&originals->items[i]);
}

struct place code_at(uint64_t address) {
    uint64_t original = rank_original(address);
    for (int i = 0; i < file_count; i++)
        if (original >= files[i].start && original < files[i].end)
            return (struct place){&files[i], original};
    return (struct place){NULL, original};
}

const char *code_function(const struct code *code, uint64_t original, uint64_t *start) {
    uint64_t value = original - code->bias;
    for (uint64_t i = 0; i < code->symbol_count; i++) {
        const Elf64_Sym *symbol = &code->symbols[i];
        bool is_function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
        if (is_function && value - symbol->st_value < symbol->st_size && symbol->st_name < code->strings_size) {
            *start = symbol->st_value + code->bias;
            return code->strings + symbol->st_name;
        }
    }
    return NULL;
}

bool code_read(uint64_t address, void *data, uint64_t size) {
    struct iovec here = {data, size}, there = {(void *)address, size};
    return process_vm_readv(process, &here, 1, &there, 1, 0) == (ssize_t)size;
}
