/*
 * loaded_files.c: lines of the loader's list, and their comparison.
 */
#define _GNU_SOURCE
#include "job/loaded_files.h"
#include "image/objects.h"
#include "machine/machine.h"
#include "ranks/fatal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS_OWN "linux-vdso.so.1"

void loaded_encode(FILE *file, const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == '%' || *text == 127)
            fprintf(file, "%%%02x", (unsigned char)*text);
        else
            fputc(*text, file);
}

char *loaded_decode(const char *text) {
    char *plain = strdup(text), *to = plain;
    unsigned int code;
    for (; plain && *text; text++)
        if (*text == '%' && isxdigit(text[1]) && isxdigit(text[2]) && sscanf(text + 1, "%2x", &code) == 1)
            *to++ = (char)code, text += 2;
        else
            *to++ = *text;
    if (plain)
        *to = '\0';
    return plain;
}

static void write_processor(FILE *file, const char *prefix) {
    fprintf(file, "%s%s", prefix, LOADED_PROCESSOR);
    machine_write_features(file);
    fputs(" the%20processor\n", file);
}

void loaded_write(FILE *file, const char *prefix) {
    write_processor(file, prefix);
    struct object_list loaded = objects_loaded();
    for (int i = 0; i < loaded.count; i++) {
        const struct object *object = &loaded.items[i];
        const unsigned char *build_id;
        size_t size = object_build_id(object, &build_id);
        if (!strcmp(object->path, KERNELS_OWN))
            continue;
        fprintf(file, "%s%lx %lx ", prefix, object->base, object->span);
        for (size_t k = 0; k < size; k++)
            fprintf(file, "%02x", build_id[k]);
        fputs(size ? " " : "- ", file);
        loaded_encode(file, object->path);
        fputc('\n', file);
    }
}

char *loaded_text(void) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        fatal("there is not enough memory for the list of loaded files");
    loaded_write(file, "");
    fclose(file);
    return text;
}

/* Without the path, which is the last word. */
static size_t compared(const char *line) {
    const char *name = strrchr(line, ' ');
    return name ? (size_t)(name - line) + 1 : strlen(line);
}

const char *loaded_difference(char *const *lines, char *const *others) {
    for (; *lines; lines++) {
        size_t length = compared(*lines);
        char *const *other = others;
        while (*other && (compared(*other) != length || strncmp(*lines, *other, length) != 0))
            other++;
        if (!*other)
            return *lines;
    }
    return NULL;
}

char **loaded_lines(char *text) {
    size_t count = 1;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    char **lines = calloc(count + 1, sizeof *lines);
    if (!lines)
        fatal("there is not enough memory for the list of loaded files");
    char *rest = text;
    for (size_t i = 0; i < count && (lines[i] = strtok_r(NULL, "\n", &rest)); i++)
        ;
    return lines;
}

const char *loaded_path(const char *line) {
    const char *name = strrchr(line, ' ');
    return name ? loaded_decode(name + 1) : line;
}
