/*
 * checkpoint.c: an input is the description in a checkpoint's folder.
 */
#include "job/checkpoint.h"
#include "refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], description[80];

static void remove_all(void) {
    unlink(description);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!*folder) {
        strcpy(folder, access("/dev/shm", W_OK) ? "/tmp/rank-fuzz-XXXXXX" : "/dev/shm/rank-fuzz-XXXXXX");
        if (!mkdtemp(folder))
            abort();
        snprintf(description, sizeof description, "%s/job", folder);
        atexit(remove_all);
    }
    FILE *file = fopen(description, "w");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file))
        abort();
    if (!setjmp(next_input)) {
        const struct checkpoint *checkpoint = checkpoint_open(folder);
        for (int rank = 0; rank < checkpoint->job.ranks; rank++)
            checkpoint_status(checkpoint, rank);
    }
    return 0;
}
