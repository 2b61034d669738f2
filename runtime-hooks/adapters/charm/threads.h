/*
 * threads.h: what Charm++'s own thread structures tell, found by their form.
 *
 * No offset of a structure is known beforehand: they differ between builds.  A form that is not there is not guessed.
 */
#ifndef CHARM_THREADS_H
#define CHARM_THREADS_H

#include <stdint.h>

/* A user-level thread as it lies in memory.  `context` and `entry` are 0 for thread packages other than fcontext. */
struct thread_form {
    uint64_t stack_start;
    uint64_t stack_size;
    uint64_t context; /* address of the word that holds the saved stack pointer */
    uint64_t entry;   /* the function that the thread began with */
};

/* A rank's share of addresses as isomalloc's record of it says. */
struct share_form {
    uint64_t start;
    uint64_t size;
    uint64_t used_end; /* address of the word that holds the end of its used part */
};

/* The form of a thread with this stack.  `entry` is its first function, 0 if the caller does not know it. */
struct thread_form thread_form_of(const void *thread, uint64_t stack_start, uint64_t entry);

/* Zeros if the record has another form; `used` is where the used part ends now. */
struct share_form share_form_of(const void *record, uint64_t start, uint64_t used);

/* Whether one of the thread's own words, before its context, has this value. */
int thread_has_word(const void *thread, const struct thread_form *form, uint64_t value);

/* Bytes of the function that begins at `address`, by its unwind table; 0 if that does not tell. */
uint64_t function_size(uint64_t address);

/* Describes the registers of an fcontext (boost's jump_fcontext for System V x86-64) in the registry. */
void describe_contexts(void);

#endif
