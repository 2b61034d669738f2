/*
 * rank_private.h: hidden state of the C library, made part of each program.
 *
 * libc itself is not copied for every rank, so what it keeps between calls (where getopt stands, the random numbers'
 * state) would be one for all ranks.  The functions here are linked into every program instead, and copied with it.
 * Hidden: a default symbol would lose to libc's, which comes first in the global scope.
 */
#ifndef RANK_PRIVATE_H
#define RANK_PRIVATE_H

#define RANK_PRIVATE __attribute__((visibility("hidden")))

#endif
