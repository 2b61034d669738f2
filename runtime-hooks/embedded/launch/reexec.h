/*
 * reexec.h: settings of the system's loader, and of the kernel, that only the start of a process can make.
 */
#ifndef RANK_REEXEC_H
#define RANK_REEXEC_H

#include "launch/options.h"

/*
 * Starts this program again, once, with the tunables that the method wants, and with the same addresses at every start
 * if there are checkpoints; else returns, the environment as it was.
 */
void reexec_with_settings(const struct options *options, char **argv);

#endif
