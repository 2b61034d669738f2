/*
 * currents.c: recognizes each processing element's current word, and publishes it.
 */
#define _GNU_SOURCE
#include "currents.h"
#include "rank_hooks.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_CANDIDATES 64

struct element {
    uint64_t candidates[MOST_CANDIDATES];
    uint32_t count;
    uint32_t record;
    uint64_t first_seen;
    bool settled; /* known, or known not to be had */
};

static struct element *elements;
static uint32_t element_count;

int currents_prepare(uint32_t count, uint32_t first_element) {
    elements = calloc(count, sizeof *elements);
    if (!elements)
        return ENOMEM;
    element_count = count;
    for (uint32_t i = 0; i < count; i++)
        elements[i].record = rank_hooks_add_processing_element(
            &(struct rank_debug_processing_element){.processing_element = first_element + i});
    return 0;
}

struct search {
    struct element *element;
    uint64_t value;
};

static void search_words(struct search *search, uint64_t start, uint64_t size) {
    struct element *element = search->element;
    for (const uint64_t *at = (const void *)((start + 7) & ~UINT64_C(7)); (uintptr_t)(at + 1) <= start + size; at++)
        if (*at == search->value && element->count < MOST_CANDIDATES)
            element->candidates[element->count++] = (uintptr_t)at;
}

/* The word at any address; false where nothing is mapped (any more). */
static bool read_word(uint64_t address, uint64_t *value) {
    struct iovec here = {value, sizeof *value}, there = {(void *)address, sizeof *value};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof *value;
}

/* SMP builds keep it elsewhere, and in each kernel thread's block the address of that. */
static void search_behind(struct search *search, uint64_t start, uint64_t size) {
    struct element *element = search->element;
    for (const uint64_t *at = (const void *)((start + 7) & ~UINT64_C(7)); (uintptr_t)(at + 1) <= start + size; at++) {
        uint64_t value, address = *at;
        if (address && address % 8 == 0 && element->count < MOST_CANDIDATES && read_word(address, &value) &&
            value == search->value)
            element->candidates[element->count++] = address;
    }
}

/* The first object is the main program: its writable segments, and this kernel thread's block of its variables. */
static int search_program(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && header->p_flags & PF_W)
            search_words(argument, info->dlpi_addr + header->p_vaddr, header->p_memsz);
        if (header->p_type == PT_TLS && info->dlpi_tls_data) {
            search_words(argument, (uintptr_t)info->dlpi_tls_data, header->p_memsz);
            search_behind(argument, (uintptr_t)info->dlpi_tls_data, header->p_memsz);
        }
    }
    return 1;
}

static void publish(struct element *element, uint64_t address) {
    rank_hooks_begin();
    struct rank_debug_processing_element *record = rank_hooks_processing_element(element->record);
    record->kernel_thread = (uint32_t)gettid();
    record->current = address;
    rank_hooks_commit();
}

void currents_observe(uint32_t local_element, uint64_t running) {
    if (local_element >= element_count || elements[local_element].settled)
        return;
    struct element *element = &elements[local_element];
    if (!element->first_seen) {
        element->first_seen = running;
        dl_iterate_phdr(search_program, &(struct search){element, running});
        return;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < element->count; i++) {
        uint64_t value;
        if (read_word(element->candidates[i], &value) && value == running)
            element->candidates[kept++] = element->candidates[i];
    }
    element->count = kept;
    element->settled = kept == 0 || (kept == 1 && running != element->first_seen);
    if (element->settled && kept)
        publish(element, element->candidates[0]);
}
