/* A mapping of 64 GB of which a few pages are touched, and another one is only read. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)64 << 30;
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || madvise(base, size, MADV_NOHUGEPAGE))
        return 1;
    size_t touched[] = {0, 1, 7, 511, 512, 513, 1000000, size / page - 1};
    for (size_t at = 0; at < sizeof touched / sizeof *touched; at++)
        memcpy(base + touched[at] * page + 100, "touched", 7);
    for (size_t at = 0; at < 20000; at++) /* more regions than one question is answered with */
        memcpy(base + ((size_t)40 << 30) + at * 25 * page, "many", 4);
    volatile char only_read = base[2000000 * page];
    (void)only_read;
    printf("base %p\n", (void *)base);
    for (size_t at = 0; at < sizeof touched / sizeof *touched; at++)
        printf("page %zx\n", touched[at] * page);
    puts("first 0\nsecond 0");
    fflush(stdout);
    for (;;)
        pause();
}
