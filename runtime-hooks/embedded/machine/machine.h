/*
 * machine.h: the processor that the runtime is compiled for.
 *
 * Each header defines the same names: relocation types, the thread pointer and where static TLS lies from it, the
 * clock that counts cycles, what a context holds, a thread's registers in a core file, and the words that guard stacks
 * and pointers.
 */
#ifndef RANK_MACHINE_H
#define RANK_MACHINE_H

#if defined(__x86_64__)
#include "machine/x86_64.h"
#elif defined(__aarch64__)
#include "machine/aarch64.h"
#else
#error "there is no table for this processor in embedded/machine"
#endif

#endif
