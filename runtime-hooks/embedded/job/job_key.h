/*
 * job_key.h: the key of a job of several hosts, and proofs of knowing it that don't tell it.
 */
#ifndef RANK_JOB_JOB_KEY_H
#define RANK_JOB_JOB_KEY_H

#include <stddef.h>
#include <stdint.h>

struct job_key {
    uint64_t words[2];
};

/* Random bytes from the kernel; ends the process (status 2) if there are none. */
void random_bytes(void *memory, size_t size);

/* SipHash-2-4 (Aumasson and Bernstein, 2012) of the bytes: who lacks the key can't tell it from a random number. */
uint64_t job_key_tag(const struct job_key *key, const void *bytes, size_t size);

#endif
