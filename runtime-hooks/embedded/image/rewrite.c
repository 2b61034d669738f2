/*
 * rewrite.c: finds the words to rewrite, by scanning or by relocations, and writes them into copies.
 */
#define _GNU_SOURCE
#include "image/rewrite.h"
#include "machine/machine.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void add(struct rewrite_list *list, struct rewrite rewrite) {
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        if (!list->items)
            abort();
    }
    list->items[list->count++] = rewrite;
}

/* The constructor block that an address lies in, its end included. */
static bool in_block(const struct originals *originals, uint64_t address) {
    size_t low = 0, high = originals->block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (originals->blocks[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    const struct rank_debug_block *block = &originals->blocks[low - 1];
    return address <= block->address + block->size;
}

/* Adds the word at `address` if its value lies in an original. */
static void consider(struct rewrite_list *list, const struct originals *originals, int place, uint64_t start,
                     uint64_t address, const char *why) {
    uint64_t value;
    memcpy(&value, (const void *)address, sizeof value);
    int target = object_of(&originals->objects, value);
    if (target < 0 && !in_block(originals, value))
        return;
    add(list, (struct rewrite){place, target < 0 ? REWRITE_HEAP : target, address - start, value, why});
}

static void scan(struct rewrite_list *list, const struct originals *originals, int place, uint64_t start,
                 uint64_t first, uint64_t end) {
    /* By address, not from the segment's start: a segment that starts unaligned holds aligned words all the same. */
    for (uint64_t at = (first + 7) & ~UINT64_C(7); at + 8 <= end; at += 8)
        consider(list, originals, place, start, at, "scan");
}

/* Where a file is loaded at the addresses that it was linked for, its headers hold words that look like pointers. */
static void scan_object(struct rewrite_list *list, const struct originals *originals, int index, bool writable_only) {
    const struct object *object = &originals->objects.items[index];
    uint64_t headers = (uintptr_t)object->header, headers_end = (uintptr_t)(object->header + object->header_count);
    for (int i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->header[i];
        uint64_t start = object->bias + header->p_vaddr, end = start + header->p_memsz;
        uint64_t first = headers >= start && headers_end <= end ? headers_end : start;
        if (header->p_type == PT_LOAD && !(header->p_flags & PF_X) && (!writable_only || header->p_flags & PF_W))
            scan(list, originals, index, object->base, first, end);
    }
}

/* ---- exact ---- */

static bool within(const struct object *object, uint64_t address) {
    return address >= object->base && address + 8 <= object->base + object->span;
}

static void relocation_table(struct rewrite_list *list, const struct originals *originals, int index, uint64_t table,
                             uint64_t size) {
    const struct object *object = &originals->objects.items[index];
    const ElfW(Rela) *entry = (const void *)table;
    for (uint64_t i = 0; i < size / sizeof *entry; i++) {
        uint64_t address = object->bias + entry[i].r_offset;
        switch (ELF64_R_TYPE(entry[i].r_info)) {
        case MACHINE_R_ABSOLUTE:
        case MACHINE_R_GLOB_DAT:
        case MACHINE_R_JUMP_SLOT:
        case MACHINE_R_RELATIVE:
        case MACHINE_R_IRELATIVE:
            if (within(object, address))
                consider(list, originals, index, object->base, address, "relocation");
        }
    }
}

/* DT_RELR: an address, then bitmaps of the 63 words that follow (generic ABI, "Relative Relocation Table"). */
static void relative_table(struct rewrite_list *list, const struct originals *originals, int index, uint64_t table,
                           uint64_t size) {
    const struct object *object = &originals->objects.items[index];
    const uint64_t *entry = (const void *)table;
    uint64_t where = 0;
    for (uint64_t i = 0; i < size / sizeof *entry; i++) {
        if (!(entry[i] & 1)) {
            where = object->bias + entry[i];
            consider(list, originals, index, object->base, where, "relocation");
            where += 8;
            continue;
        }
        for (int bit = 1; bit < 64; bit++)
            if (entry[i] >> bit & 1)
                consider(list, originals, index, object->base, where + (uint64_t)(bit - 1) * 8, "relocation");
        where += UINT64_C(63) * 8;
    }
}

static void dynamic_section(struct rewrite_list *list, const struct originals *originals, int index) {
    const struct object *object = &originals->objects.items[index];
    for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++)
        consider(list, originals, index, object->base, (uintptr_t)&entry->d_un, "dynamic");
}

static void relocate_object(struct rewrite_list *list, const struct originals *originals, int index) {
    const struct object *object = &originals->objects.items[index];
    relocation_table(list, originals, index, object_dynamic_address(object, DT_RELA),
                     object_dynamic_value(object, DT_RELASZ));
    relocation_table(list, originals, index, object_dynamic_address(object, DT_JMPREL),
                     object_dynamic_value(object, DT_PLTRELSZ));
    relative_table(list, originals, index, object_dynamic_address(object, 36 /* DT_RELR */),
                   object_dynamic_value(object, 35 /* DT_RELRSZ */));
    dynamic_section(list, originals, index);
}

struct rewrite_list rewrites_find(const struct originals *originals, enum rewrite_mode mode, bool writable_only) {
    struct rewrite_list list = {0};
    for (int i = 0; i < originals->objects.count; i++) {
        if (mode == REWRITE_SCAN)
            scan_object(&list, originals, i, writable_only);
        else
            relocate_object(&list, originals, i);
    }
    if (mode == REWRITE_SCAN)
        for (size_t i = 0; i < originals->block_count; i++) {
            const struct rank_debug_block *block = &originals->blocks[i];
            scan(&list, originals, REWRITE_HEAP, originals->heap_start, block->address, block->address + block->size);
        }
    return list;
}

/* ---- applying ---- */

static uint64_t original_start(const struct originals *originals, int place) {
    return place == REWRITE_HEAP ? originals->heap_start : originals->objects.items[place].base;
}

static uint64_t copy_start(const struct copies *copies, int place) {
    return place == REWRITE_HEAP ? copies->heap : copies->objects[place];
}

static void log_string(FILE *log, const char *text) {
    fputc('"', log);
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\')
            fprintf(log, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, log);
    }
    fputc('"', log);
}

static void log_rewrite(FILE *log, const struct originals *originals, const struct rewrite *rewrite, int rank,
                        uint64_t address, uint64_t value) {
    fprintf(log, "{\"rank\": %d, \"place\": {\"object\": ", rank);
    log_string(log, rewrite->place == REWRITE_HEAP ? "heap" : originals->objects.items[rewrite->place].path);
    fprintf(log, ", \"offset\": %lu}, \"address\": %lu, \"old\": %lu, \"new\": %lu, \"reason\": \"%s\"}\n",
            rewrite->offset, address, rewrite->value, value, rewrite->why);
}

uint64_t rewrite_value(const struct rewrite *rewrite, const struct originals *originals, const struct copies *copies) {
    return copy_start(copies, rewrite->target) + (rewrite->value - original_start(originals, rewrite->target));
}

uint64_t rewrite_address(uint64_t address, const struct originals *originals, const struct copies *copies) {
    int target = object_of(&originals->objects, address);
    if (target < 0 && !in_block(originals, address))
        return address;
    int place = target < 0 ? REWRITE_HEAP : target;
    uint64_t start = copy_start(copies, place);
    return start ? start + (address - original_start(originals, place)) : address;
}

void rewrites_apply(const struct rewrite_list *list, const struct originals *originals, const struct copies *copies,
                    int rank, FILE *log) {
    for (size_t i = 0; i < list->count; i++) {
        const struct rewrite *rewrite = &list->items[i];
        uint64_t address = copy_start(copies, rewrite->place) + rewrite->offset;
        uint64_t value = rewrite_value(rewrite, originals, copies);
        memcpy((void *)address, &value, sizeof value);
        if (log)
            log_rewrite(log, originals, rewrite, rank, address, value);
    }
}
