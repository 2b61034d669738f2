/*
 * copies.c: loads a library and copies it byte by byte into anonymous memory, as runtimes without a registry do.
 *
 * Takes the library and a count; prints "copy N ADDRESS" with where VARIABLE of the library is in each copy, "ready",
 * and waits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VARIABLE "counter"
#define PAGE 4096

static int copy_object(struct dl_phdr_info *info, size_t size, void *variable) {
    (void)size;
    size_t span = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            span = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    if ((size_t)variable < info->dlpi_addr || (size_t)variable >= info->dlpi_addr + span)
        return 0;
    /* Between pages without access: the kernel merges neighbours that are alike into one mapping. */
    span = (span + PAGE - 1) & ~(size_t)(PAGE - 1);
    char *copy = (char *)mmap(NULL, span + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + PAGE;
    mprotect(copy, span, PROT_READ | PROT_WRITE);
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            memcpy(copy + info->dlpi_phdr[i].p_vaddr, (char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                   info->dlpi_phdr[i].p_memsz);
    printf("copy %p\n", (void *)(copy + ((size_t)variable - info->dlpi_addr)));
    return 1;
}

int main(int argc, char **argv) {
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *variable = library ? dlsym(library, VARIABLE) : NULL;
    if (!variable)
        return 1;
    for (int i = atoi(argv[2]); i > 0; i--)
        dl_iterate_phdr(copy_object, variable);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
