/*
 * program.c: an input is a program's file, up to where the system's loader takes it.
 */
#include "launch/program.c" /* the check is the module's own */

#include "refusals.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    int file = memfd_create("program", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (write(file, data, size) != (ssize_t)size)
        abort();
    if (!setjmp(next_input)) {
        require_file(path);
        /* What the loader maps of a segment has to be in the file. */
        for (size_t i = 0; size >= sizeof(ElfW(Ehdr)) && !memcmp(data, ELFMAG, SELFMAG); i++) {
            ElfW(Ehdr) header;
            ElfW(Phdr) segment;
            memcpy(&header, data, sizeof header);
            if (i >= header.e_phnum || header.e_phoff > size || size - header.e_phoff < (i + 1) * sizeof segment)
                break;
            memcpy(&segment, data + header.e_phoff + i * sizeof segment, sizeof segment);
            if (segment.p_type == PT_LOAD && (segment.p_offset > size || segment.p_filesz > size - segment.p_offset))
                abort();
        }
    }
    close(file);
    return 0;
}
