/*
 * job_key.c: SipHash-2-4, as its paper has it.
 *
 * No library of ciphers: whatever is loaded here is loaded beside every program.
 */
#define _GNU_SOURCE
#include "job/job_key.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

void random_bytes(void *memory, size_t size) {
    if (getrandom(memory, size, 0) != (ssize_t)size) /* so few bytes come whole */
        fatal("the kernel gives no random numbers: %s", strerror(errno));
}

static uint64_t rotated(uint64_t word, int by) {
    return word << by | word >> (64 - by);
}

static void mix(uint64_t v[4], int rounds) {
    while (rounds--) {
        v[0] += v[1], v[1] = rotated(v[1], 13) ^ v[0], v[0] = rotated(v[0], 32);
        v[2] += v[3], v[3] = rotated(v[3], 16) ^ v[2];
        v[0] += v[3], v[3] = rotated(v[3], 21) ^ v[0];
        v[2] += v[1], v[1] = rotated(v[1], 17) ^ v[2], v[2] = rotated(v[2], 32);
    }
}

uint64_t job_key_tag(const struct job_key *key, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    uint64_t k0 = key->words[0], k1 = key->words[1], word;
    uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                     k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
    for (size_t left = size;; left -= sizeof word, from += sizeof word) {
        word = left < sizeof word ? (uint64_t)size << 56 : 0;
        memcpy(&word, from, left < sizeof word ? left : sizeof word);
        v[3] ^= word;
        mix(v, 2);
        v[0] ^= word;
        if (left < sizeof word)
            break;
    }
    v[2] ^= 0xff;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
