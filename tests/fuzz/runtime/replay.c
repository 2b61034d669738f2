/*
 * replay.c: stands in the place of libFuzzer: gives a harness the files in the arguments, one after another.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int count, char **files) {
    for (int i = 1; i < count; i++) {
        static uint8_t content[LARGEST];
        FILE *file = fopen(files[i], "re");
        if (!file)
            abort();
        size_t size = fread(content, 1, sizeof content, file);
        fclose(file);
        uint8_t *exact = malloc(size); /* so that a byte too far is noticed */
        for (size_t k = 0; k < size; k++)
            exact[k] = content[k];
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    return 0;
}
