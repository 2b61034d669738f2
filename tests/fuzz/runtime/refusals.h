/*
 * refusals.h: what ends rankrun, as the end of one input.
 *
 * The runtime's own fatal.c is not linked: a refusal with a sentence is what damaged input has to get, and returns to
 * the fuzzer.
 */
#ifndef RANK_FUZZ_REFUSALS_H
#define RANK_FUZZ_REFUSALS_H

#define _GNU_SOURCE /* included before everything else */

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

extern jmp_buf next_input;

__attribute__((noreturn)) void refuse(int status);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
