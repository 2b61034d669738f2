/*
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * rank_debug.h: the debug ABI, version 1.  It needs stddef.h and stdint.h alone, in C11 or C++11: copy it into your
 * tree.
 *
 * What r_debug is for shared libraries, this is for virtual ranks: a versioned structure in the target's memory that a
 * debugger reads, and one empty function that it may break on.  A runtime writes it through rank_hooks.h; nothing in it
 * is ever written by a debugger, and nothing in it is a call into the target.
 *
 * How a reader finds it
 *   1. The ELF symbol `rank_debug_registry` (in .dynsym, so it survives strip) of any loaded object is a variable that
 *      holds the address of the header, or 0 while there is none.
 *   2. Without symbols: the mapping whose name contains `memfd:rank_debug_registry` begins with the header.
 *   The writer keeps the memfd's descriptor open, so that a reader can open /proc/PID/fd/N and read on after the
 *   process has ended.
 *
 * How a reader stays consistent (a sequence lock)
 *   `generation` is odd while the writer changes anything but the fields marked [live].  A reader of a running process
 *   copies what it needs, and accepts it only if `generation` was even and equal before and after.  [live] fields
 * change at any time by single aligned stores; each of them is meaningful alone, and a reader that combines two of them
 *   re-reads both.
 *
 * How it may grow
 *   Every table carries its stride, and the header its size.  A newer writer may append fields to a record or to the
 *   header; a reader uses `stride` and `header_size`, and ignores what it does not know.  Fields are never moved, and a
 *   change of meaning is a new `abi_version`.
 *
 * All numbers are in the target's byte order; the magic tells which one that is.  Addresses are virtual addresses in
 * the target, sizes and offsets are bytes, unless a field says otherwise.  Reserved fields are zero.
 */
#ifndef RANK_DEBUG_H
#define RANK_DEBUG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define RANK_DEBUG_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define RANK_DEBUG_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* The bytes "RANKDBG" and 1 in a little-endian target; in a big-endian one the bytes stand reversed. */
#define RANK_DEBUG_MAGIC UINT64_C(0x014742444b4e4152)
#define RANK_DEBUG_ABI_VERSION 1u
#define RANK_DEBUG_MAPPING_NAME "rank_debug_registry"

/* An index that names nothing (no object, no string). */
#define RANK_DEBUG_NONE UINT32_MAX

/* rank_debug_rank.state */
#define RANK_DEBUG_STATE_STARTING 0u     /* being made: no context yet */
#define RANK_DEBUG_STATE_READY 1u        /* could run; its registers are at `context` */
#define RANK_DEBUG_STATE_RUNNING 2u      /* on `kernel_thread`; `context` is stale */
#define RANK_DEBUG_STATE_BLOCKED 3u      /* waits in `call`; its registers are at `context` */
#define RANK_DEBUG_STATE_MIGRATED_OUT 4u /* lives in another process now; its image here means nothing */
#define RANK_DEBUG_STATE_EXITED 5u       /* its main has returned; its memory is kept */

/* rank_debug_segment.protection: as the ELF program header's p_flags (PF_X, PF_W, PF_R). */
#define RANK_DEBUG_EXECUTE 1u
#define RANK_DEBUG_WRITE 2u
#define RANK_DEBUG_READ 4u

/* rank_debug_object.flags */
#define RANK_DEBUG_OBJECT_PRIVATIZED 1u /* ranks have copies of it */
#define RANK_DEBUG_OBJECT_PROGRAM 2u    /* it is the user's program, not a library that came with it */

/* rank_debug_tls_block.kind */
#define RANK_DEBUG_TLS_THREAD_POINTER                                                                                  \
    1u                          /* address is a thread pointer: variable = address - object.tls_offset + st_value */
#define RANK_DEBUG_TLS_BLOCK 2u /* address is the block's first byte: variable = address + st_value */

/* rank_debug_tls_block.level: whose the block is.  0 is the rank's own; others as in hierarchical local storage. */
#define RANK_DEBUG_TLS_LEVEL_RANK 0u
#define RANK_DEBUG_TLS_LEVEL_THREAD 1u
#define RANK_DEBUG_TLS_LEVEL_PROCESS 2u

/* rank_debug_register.rule, with c = rank_debug_rank.context */
#define RANK_DEBUG_REGISTER_AT_OFFSET 1u /* the register's value is the 8 bytes at c + offset */
#define RANK_DEBUG_REGISTER_IS_OFFSET 2u /* the register's value is c + offset */

/* rank_debug_event kinds, in the order in which a rank meets them. A rank whose other process is its own is packed for
 * a checkpoint. */
#define RANK_DEBUG_EVENT_BEFORE_COPIES 1u /* rank is -1: the originals are loaded, nothing is copied yet */
#define RANK_DEBUG_EVENT_AFTER_COPIES 2u  /* rank is -1: every copy is made, no rank has run */
#define RANK_DEBUG_EVENT_CREATED 3u       /* the rank's image is whole and in the registry; it has not run */
#define RANK_DEBUG_EVENT_BEFORE_PACK 4u   /* the rank will be packed next: take breakpoints out of its copy */
#define RANK_DEBUG_EVENT_AFTER_UNPACK 5u  /* the rank has arrived, memory and all, or goes on */
#define RANK_DEBUG_EVENT_EXITED 6u        /* the rank's main has returned */

/* A table: `count` records of `stride` bytes from `address` on, all inside the registry's mapping. */
struct rank_debug_table {
    uint64_t address;
    uint32_t count;
    uint32_t stride;
};

/* The header.  Owner: the registry.  Everything is written under the sequence lock. */
struct rank_debug_header {
    uint64_t magic;
    uint32_t abi_version;
    uint32_t header_size;     /* sizeof this struct at the writer */
    uint64_t generation;      /* the sequence lock */
    uint64_t mapping_address; /* the registry's own mapping: every table lies within it */
    uint64_t mapping_size;
    uint32_t machine;       /* ELF e_machine of the process */
    uint32_t process_id;    /* as the process itself sees it (its PID namespace) */
    uint32_t process_index; /* 0 .. process_count-1 in the job */
    uint32_t process_count;
    uint32_t rank_count; /* ranks in the whole job; constant */
    uint32_t reserved0;
    uint64_t event_function;            /* address of rank_debug_event, for targets without symbols */
    uint64_t entry_function;            /* first function of every rank's stack: backtraces end there */
    uint64_t entry_function_size;       /* bytes; 0: as many as its symbol has */
    uint64_t constructor_heap;          /* heap that the originals' constructors allocated from, 0 if none */
    uint64_t constructor_heap_size;     /* a block at constructor_heap + x was replayed at the rank's heap_start + x */
    char method[16];                    /* "pie", "pip", ...; NUL-terminated */
    char rewrite_mode[16];              /* "scan", "exact" or "" */
    char runtime[32];                   /* who writes this, e.g. "embedded 1" */
    char job_id[64];                    /* equal in all processes of a job, and unlike any other job's */
    char node[64];                      /* host name */
    struct rank_debug_table strings;    /* bytes (stride 1): NUL-terminated strings, named by offset */
    struct rank_debug_table objects;    /* rank_debug_object */
    struct rank_debug_table segments;   /* rank_debug_segment, each object's in one run */
    struct rank_debug_table ranks;      /* rank_debug_rank: the ranks that live or have lived in this process */
    struct rank_debug_table copies;     /* rank_debug_copy */
    struct rank_debug_table tls_blocks; /* rank_debug_tls_block */
    struct rank_debug_table redirections;      /* rank_debug_redirection */
    struct rank_debug_table roots;             /* rank_debug_root */
    struct rank_debug_table context_registers; /* rank_debug_register: one layout for all contexts */
    struct rank_debug_table calls;             /* rank_debug_call: names of blocking calls; index 0 is "" */
    struct rank_debug_table blocks;            /* rank_debug_block: constructor heap blocks that were replayed */
    /* Appended; a header of 472 bytes is without them. */
    struct rank_debug_table kept;                /* rank_debug_kept: of ranks whose runtime reports no switch */
    struct rank_debug_table processing_elements; /* rank_debug_processing_element: all of a process, or none */
    /* Appended; a header of 504 bytes is without them. */
    struct rank_debug_table events; /* rank_debug_event_entry: a ring; `count` is its room, 0 without one */
    uint64_t events_written;        /* [live] entries ever written; number n (from 1) is at index (n - 1) % count */
    /* Appended; a header of 528 bytes is without them. */
    struct rank_debug_table loads;         /* rank_debug_load: rank r's at index r; none: nothing is counted */
    struct rank_debug_table element_loads; /* rank_debug_element_load: processing element e's at index e */
};

/* An object: one loaded ELF file, as the system's loader placed it (the original). */
struct rank_debug_object {
    uint64_t base;          /* first byte of its lowest PT_LOAD, rounded down to a page */
    uint64_t load_bias;     /* what was added to its p_vaddr's */
    uint64_t span;          /* from base to the end of its highest PT_LOAD, unrounded */
    uint64_t dynamic;       /* address of its dynamic section, 0 if none */
    uint64_t tls_module_id; /* 0: it has no PT_TLS */
    uint64_t tls_size;      /* memory size of PT_TLS */
    uint64_t tls_align;
    int64_t tls_offset;     /* bytes from its static block to the thread pointer, negative if it lies above, or 0 */
    uint32_t path;          /* offset in strings */
    uint32_t first_segment; /* index in segments */
    uint32_t segment_count;
    uint32_t flags;
    uint32_t build_id_size; /* 0: it has none */
    uint8_t build_id[36];
};

/* A PT_LOAD of an object. */
struct rank_debug_segment {
    uint64_t offset;      /* of its first byte from the object's (or copy's) base; not rounded to a page */
    uint64_t memory_size; /* p_memsz */
    uint64_t file_size;   /* p_filesz */
    uint32_t protection;  /* p_flags */
    uint32_t reserved0;
};

/* A rank.  Owner: the scheduler; written under the sequence lock but for the [live] fields. */
struct rank_debug_rank {
    int32_t rank;                /* its number in MPI_COMM_WORLD */
    uint32_t state;              /* [live] */
    uint32_t processing_element; /* index of the scheduler that runs it */
    uint32_t kernel_thread;      /* tid of that scheduler's kernel thread */
    uint64_t context;            /* [live] address of its saved registers when it is not running, else 0 */
    uint64_t range_start;        /* the address range that is this rank's in every process of the job */
    uint64_t range_size;
    uint64_t stack_start; /* lowest usable byte */
    uint64_t stack_size;
    uint64_t heap_start;
    uint64_t heap_size;         /* [live] bytes from heap_start in use by the allocator or free within it */
    uint64_t heap_used;         /* [live] bytes in allocated blocks, their headers included */
    uint32_t address_space;     /* tid whose page tables to read this rank's memory through; 0: the process's */
    uint32_t call;              /* [live] index in calls while inside such a call, else 0 */
    int32_t wait_peer;          /* [live] rank in wait_communicator that the call waits for, -1 any, -2 none */
    int32_t wait_tag;           /* [live] message tag, -1 any, -2 none */
    uint64_t wait_communicator; /* [live] the communicator's context number, equal on all its members; 0, unless some
                                   rank gives it wait_members: MPI_COMM_WORLD */
    uint64_t switches;          /* [live] how often it was switched to */
    /* Since header.header_size and the stride cover them (a job of several processes): */
    uint32_t process; /* index of the process where the rank is, or is on its way to, as far as this process knows */
    uint32_t moves;   /* how often it had moved when that was so: of two processes' records, more moves are right */
    uint32_t exit_status; /* [live] its exit status plus one, 0: it has none yet, or it is unknown */
    /* Since a stride of 136 bytes covers them (those of 128 bytes have zeros here): */
    uint32_t wait_member_count; /* [live] how many ranks wait_communicator has, 0: unknown */
    uint64_t wait_members;      /* [live] address of as many int32_t, in the process's memory or the rank's: which ranks
                                   of MPI_COMM_WORLD rank 0, 1, ... of wait_communicator are */
};

/* A rank's private copy of an object: byte x of the original is at base + x. */
struct rank_debug_copy {
    int32_t rank;
    uint32_t object; /* index in objects */
    uint64_t base;
};

/* A rank's block of thread-local storage. */
struct rank_debug_tls_block {
    int32_t rank;
    uint32_t object; /* index in objects; RANK_DEBUG_NONE: all objects with static TLS */
    uint32_t kind;
    uint32_t level;
    uint64_t address;
    uint64_t size;
};

/* One variable of which a rank's instance lies apart from its object. */
struct rank_debug_redirection {
    int32_t rank;
    uint32_t object;
    uint64_t original; /* address of the variable in the original */
    uint64_t size;
    uint64_t storage;  /* address of the rank's instance */
    uint64_t got_slot; /* address of the GOT word that names the instance in use, 0 if none */
};

/* A struct that holds all globals of a rank (refactored programs). */
struct rank_debug_root {
    int32_t rank;
    uint32_t object;    /* whose DWARF describes the type */
    uint32_t type_name; /* offset in strings */
    uint32_t reserved0;
    uint64_t address;
};

/* Where a context keeps one register. */
struct rank_debug_register {
    uint32_t dwarf_register; /* number as in the processor's psABI; x86-64: 16 is the return address column, rip */
    uint32_t rule;
    int64_t offset;
};

struct rank_debug_call {
    char name[32]; /* "MPI_Recv"; NUL-terminated */
};

struct rank_debug_block {
    uint64_t address; /* in the constructor heap */
    uint64_t size;
};

/*
 * Where a runtime itself keeps what changes while a rank lives.  Such a rank's record has only what changes rarely: its
 * `state` is READY while it is here, whether it runs or waits; `context`, `heap_size`, `switches` and `call` are 0.
 */
struct rank_debug_kept {
    int32_t rank;
    uint32_t reserved0;
    uint64_t context;   /* address of the word that holds what would be rank_debug_rank.context; 0: not known */
    uint64_t thread;    /* what a processing element's `current` word holds while the rank runs */
    uint64_t range_end; /* address of the word that holds the end of the used part of its range; 0: not known */
};

/* A scheduler of a runtime that keeps what it runs. */
struct rank_debug_processing_element {
    uint32_t processing_element;
    uint32_t kernel_thread; /* 0: not known */
    uint64_t current;       /* address of the word that names what it runs (rank_debug_kept.thread); 0: not known */
};

/*
 * What rank_debug_event() was called for, and when: all fields are [live].  `number` is 0 while an entry is written and
 * its number otherwise, so an entry of which it is the expected one before and after it was copied is whole; if not, a
 * later entry has taken its place.  events_written counts an entry once it is whole.
 */
struct rank_debug_event_entry {
    uint64_t number;
    uint64_t monotonic;          /* nanoseconds of CLOCK_MONOTONIC */
    uint64_t realtime;           /* nanoseconds of CLOCK_REALTIME */
    uint32_t kind;               /* RANK_DEBUG_EVENT_* */
    int32_t rank;                /* or -1 */
    uint32_t processing_element; /* of the rank; RANK_DEBUG_NONE without one */
    uint32_t other_process;      /* index of the process that it leaves for or comes from; RANK_DEBUG_NONE: not known */
    uint32_t moves;              /* as rank_debug_rank.moves, with the move that begins or ends; 0: not counted */
    uint32_t reserved0;
};

/*
 * What a rank has done in this process: all fields are [live], and written by the rank's own kernel thread.  A rank
 * that has moved leaves what it did here, and begins at 0 elsewhere: its whole load is the sum over all processes.
 */
struct rank_debug_load {
    uint64_t busy; /* ticks that it had its processing element, up to the element's `since` */
    uint64_t sent; /* address of a rank_debug_sent_table in the process's memory; 0: it has sent nothing */
};

/*
 * A rank's messages by receiver: `count` entries follow, of `stride` bytes each, in no order.  The table stays where it
 * is; one that is too small is replaced by a larger one.
 */
struct rank_debug_sent_table {
    uint32_t count;
    uint32_t stride;
};

/* Messages to one rank; `bytes` are those of the data, packed. */
struct rank_debug_sent {
    uint32_t receiver; /* [live] its number in MPI_COMM_WORLD plus one, written after all else; 0: no entry */
    uint32_t reserved0;
    uint64_t messages; /* [live] between ranks of the program */
    uint64_t bytes;
    uint64_t collective_messages; /* [live] that calls of collectives have sent */
    uint64_t collective_bytes;
};

/*
 * What a processing element has done: all fields but kernel_thread are [live].  A tick is one of the processor's own
 * counter (x86-64: TSC, AArch64: CNTVCT_EL0); two pairs of ticks and nanoseconds say how long it is.  A runtime may
 * leave the clock alone where a rank lets others run that are ready, and read it where one blocks; then what several
 * ranks had in turn is `undivided`.
 */
struct rank_debug_element_load {
    uint64_t idle;            /* ticks without a rank to run, up to `since` */
    uint64_t undivided;       /* ticks that several ranks had in turn, up to `since` */
    uint64_t since;           /* ticks when the clock was last read for one of these; 0: it has not begun */
    uint64_t began;           /* ticks ... */
    uint64_t began_monotonic; /* ... and nanoseconds of CLOCK_MONOTONIC when it began */
    uint64_t later;           /* the same of a later moment: ticks ... */
    uint64_t later_monotonic; /* ... and nanoseconds; written before `later` */
    uint32_t kernel_thread;   /* tid; 0: it has not begun */
    uint32_t turns;           /* 1: ranks have taken turns after `since` */
};

RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_table) == 16, "rank_debug_table");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_header, method) == 104, "rank_debug_header.method");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_header, strings) == 296, "rank_debug_header.strings");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_header, kept) == 472, "rank_debug_header.kept");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_header, events) == 504, "rank_debug_header.events");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_header, loads) == 528, "rank_debug_header.loads");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_header) == 560, "rank_debug_header");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_object, path) == 64, "rank_debug_object.path");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_object) == 120, "rank_debug_object");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_segment) == 32, "rank_debug_segment");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_rank, context) == 16, "rank_debug_rank.context");
RANK_DEBUG_STATIC_ASSERT(offsetof(struct rank_debug_rank, address_space) == 80, "rank_debug_rank.address_space");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_rank) == 136, "rank_debug_rank");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_copy) == 16, "rank_debug_copy");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_tls_block) == 32, "rank_debug_tls_block");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_redirection) == 40, "rank_debug_redirection");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_root) == 24, "rank_debug_root");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_register) == 16, "rank_debug_register");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_call) == 32, "rank_debug_call");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_block) == 16, "rank_debug_block");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_kept) == 32, "rank_debug_kept");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_processing_element) == 16, "rank_debug_processing_element");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_event_entry) == 48, "rank_debug_event_entry");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_load) == 16, "rank_debug_load");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_sent_table) == 8, "rank_debug_sent_table");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_sent) == 40, "rank_debug_sent");
RANK_DEBUG_STATIC_ASSERT(sizeof(struct rank_debug_element_load) == 64, "rank_debug_element_load");

#ifdef __GNUC__
#pragma GCC visibility push(default) /* readers look for both among the exported symbols */
#endif

/* The header, or NULL while there is none. */
extern const struct rank_debug_header *rank_debug_registry;

/* Does nothing; debuggers break on it.  kind: RANK_DEBUG_EVENT_*; rank: the rank concerned, or -1. */
void rank_debug_event(uint32_t kind, int32_t rank);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
