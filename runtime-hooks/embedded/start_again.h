/*
 * start_again.h: settings of the system's loader that only the start of a process can make.
 */
#ifndef RANK_START_AGAIN_H
#define RANK_START_AGAIN_H

#include "options.h"

/* Starts this program anew with the tunables that the method wants, once; else returns, the environment as it was. */
void start_again(const struct options *options, char **argv);

#endif
