/*
 * table.h: the methods that this runtime was built with, by name.
 */
#ifndef RANK_METHOD_TABLE_H
#define RANK_METHOD_TABLE_H

#include <stddef.h>

struct method;

/* The method of that name, or NULL. */
const struct method *method_named(const char *name);

/* Writes the names, as in "pie, pip or none", and --help's lines about them. */
void method_names(char *text, size_t room);
void method_help(void);

#endif
