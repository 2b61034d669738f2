/*
 * loaded_files.h: what is loaded, and where, as lines of text that another process compares with its own.
 *
 * A line: base, span and build-id of an object, and its path, percent-encoded.  The kernel's own object (vdso) is left
 * out: no memory of a rank's names it.  The first line is of the processor's instructions.
 */
#ifndef RANK_JOB_LOADED_FILES_H
#define RANK_JOB_LOADED_FILES_H

#include <stdio.h>

#define LOADED_PROCESSOR "processor "

/* Writes a line for each object, after `prefix`. */
void loaded_write(FILE *file, const char *prefix);

/* Likewise, as text; ends the process (status 2) without memory. */
char *loaded_text(void);

/* The first of the lines that is not in `others`, paths apart, or NULL; both end with NULL. */
const char *loaded_difference(char *const *lines, char *const *others);

/* Text as lines, in place; ends the process (status 2) without memory. */
char **loaded_lines(char *text);

/* The path at a line's end, decoded. */
const char *loaded_path(const char *line);

/* Strings without spaces and line ends; the result of decoding lives as long as the process. */
void loaded_encode(FILE *file, const char *text);
char *loaded_decode(const char *text);

#endif
