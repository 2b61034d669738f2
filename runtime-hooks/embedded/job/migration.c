/*
 * migration.c: packs a rank, sends it, and takes one in.
 *
 * On the wire: the ticket, a table of pieces, and the pieces' bytes.  A rank's memory is given back only once it is
 * written; if the rank comes back before that, the reading thread waits.
 */
#define _GNU_SOURCE
#include "job/migration.h"
#include "image/image_table.h"
#include "image/method.h"
#include "image/ranges.h"
#include "job/process.h"
#include "job/process_sockets.h"
#include "libc/descriptor_owners.h"
#include "libc/open_files.h"
#include "rank_hooks.h"
#include "ranks/client.h"
#include "ranks/fatal.h"
#include "ranks/rank_lifecycle.h"
#include "ranks/scheduler.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wire_piece {
    uint64_t address, size;
    uint64_t is_zero; /* its bytes are not sent */
};

struct wire_image {
    struct rank_ticket ticket;
    uint32_t pieces;
    uint32_t mode;
};

/* A rank that leaves. */
struct migrant {
    struct wire_image wire;
    struct wire_piece *pieces;
    size_t room;
    const struct image *image;
    uint64_t whole; /* bytes of the image */
    int to;
};

static const struct image_plan *plan;
static enum migration_mode mode;
static int log_file = -1;
static int *destinations; /* by rank */

static pthread_mutex_t leaving_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_left_memory = PTHREAD_COND_INITIALIZER;
static bool *is_leaving; /* by rank: its memory is not given back yet */

/* ---- what moves ---- */

static void add_piece(struct migrant *migrant, uint64_t address, uint64_t size, bool zero) {
    struct wire_piece *last = migrant->wire.pieces ? &migrant->pieces[migrant->wire.pieces - 1] : NULL;
    if (last && last->address + last->size == address && last->is_zero == zero) {
        last->size += size;
        return;
    }
    if (migrant->wire.pieces == migrant->room) {
        migrant->room = migrant->room ? 2 * migrant->room : 64;
        migrant->pieces = realloc(migrant->pieces, migrant->room * sizeof *migrant->pieces);
        if (!migrant->pieces)
            rank_job_abort(2, "there is not enough memory to pack a rank");
    }
    migrant->pieces[migrant->wire.pieces++] = (struct wire_piece){address, size, zero};
}

static void add_whole(void *context, const struct image_piece *piece) {
    struct migrant *migrant = context;
    migrant->whole += piece->size;
    add_piece(migrant, piece->address, piece->size, false);
}

static bool is_zero(const void *memory, size_t size) {
    static const char zero[PAGE];
    return memcmp(memory, zero, size) == 0;
}

/* Page by page; the stack's unused part, below the saved registers, is left out. */
static void add_differing(void *context, const struct image_piece *piece) {
    struct migrant *migrant = context;
    const struct image *image = migrant->image;
    uint64_t at = piece->address, end = piece->address + piece->size;
    migrant->whole += piece->size;
    if (at == image->stack_start)
        at = migrant->wire.ticket.record.context;
    for (uint64_t part; at < end; at += part) {
        part = PAGE - (at & (PAGE - 1));
        part = part < end - at ? part : end - at;
        bool are_zero = is_zero((const void *)at, part);
        bool is_as_before = piece->object < 0 ? are_zero : image_is_first_content(image, plan, piece->object, at, part);
        if (!is_as_before)
            add_piece(migrant, at, part, are_zero);
    }
}

/* ---- leaving ---- */

bool migration_start(int process, char *why, size_t room) {
    int rank = rank_number(rank_current());
    if (!process_is_one_of_a_job() || process < 0 || process >= process_count()) {
        snprintf(why, room, "there is no process %d: the job has %d", process, process_count());
        return false;
    }
    if (process == process_index())
        return true;
    if (!ranges_are_mobile()) {
        snprintf(why, room, "under method %s a rank can't move, because some of its data lie outside its range",
                 plan->method->name);
        return false;
    }
    if (open_files_of(rank)) {
        snprintf(why, room, "a rank with open files can't move; close them first");
        return false;
    }
    char text[200];
    if (descriptors_of(rank, text, sizeof text)) {
        snprintf(why, room, "a rank with open files can't move; close %s first", text);
        return false;
    }
    destinations[rank] = process;
    rank_leave_process();
    return true;
}

/* `envelope`: what is not part of the rank's image: frame, ticket and table of pieces. */
static void log_line(const struct migrant *migrant, uint64_t sent) {
    char line[256];
    uint64_t envelope = sizeof(struct frame) + sizeof migrant->wire + migrant->wire.pieces * sizeof *migrant->pieces;
    int length = snprintf(line, sizeof line,
                          "{\"rank\": %d, \"from\": %d, \"to\": %d, \"moves\": %u, \"bytes_on_the_wire\": %lu, "
                          "\"envelope\": %lu, \"whole\": %lu}\n",
                          migrant->wire.ticket.record.rank, process_index(), migrant->to, migrant->wire.ticket.moves,
                          sent, envelope, migrant->whole);
    if (log_file >= 0 && write(log_file, line, (size_t)length) != length)
        rank_job_abort(2, "the file for --migration-log can't be written");
}

/* On the writing thread. */
static void has_left(void *context, uint64_t bytes_on_the_wire) {
    struct migrant *migrant = context;
    int rank = migrant->wire.ticket.record.rank;
    lifecycle_give_up(rank);
    log_line(migrant, bytes_on_the_wire);
    free(migrant->pieces);
    free(migrant);
    pthread_mutex_lock(&leaving_lock);
    is_leaving[rank] = false;
    pthread_cond_broadcast(&has_left_memory);
    pthread_mutex_unlock(&leaving_lock);
}

static void send_migrant(struct migrant *migrant) {
    size_t count = migrant->wire.pieces + 2u;
    struct iovec *parts = malloc(count * sizeof *parts);
    if (!parts)
        rank_job_abort(2, "there is not enough memory to pack a rank");
    parts[0] = (struct iovec){&migrant->wire, sizeof migrant->wire};
    parts[1] = (struct iovec){migrant->pieces, migrant->wire.pieces * sizeof *migrant->pieces};
    for (uint32_t i = 0; i < migrant->wire.pieces; i++) {
        const struct wire_piece *piece = &migrant->pieces[i];
        parts[i + 2] = (struct iovec){(void *)piece->address, piece->is_zero ? 0 : piece->size};
    }
    transport_send_parts(migrant->to, FRAME_IMAGE, parts, count, has_left, migrant);
    free(parts);
}

static void send_rank(int rank) {
    struct migrant *migrant = calloc(1, sizeof *migrant);
    if (!migrant)
        rank_job_abort(2, "there is not enough memory to pack a rank");
    struct rank_debug_rank *record = ranks_record(rank);
    /* A sender that finds the inbox closed must know already where to send: note first, then close; the reverse there.
     */
    migrant->to = destinations[rank];
    process_note(rank, migrant->to, record->moves + 1);
    void *inbox_content = rank_client()->pack(rank);
    rank_hooks_event(RANK_DEBUG_EVENT_BEFORE_PACK, record, (uint32_t)migrant->to);
    migrant->image = rank_image(rank);
    migrant->wire.mode = mode;
    ranks_pack(rank, &migrant->wire.ticket);
    migrant->wire.ticket.inbox_content = inbox_content;
    migrant->wire.ticket.exit_functions = migrant->image->exit_functions;
    migrant->wire.ticket.moves = record->moves;
    pthread_mutex_lock(&leaving_lock);
    is_leaving[rank] = true;
    pthread_mutex_unlock(&leaving_lock);
    __atomic_store_n(&record->state, RANK_DEBUG_STATE_MIGRATED_OUT, __ATOMIC_RELEASE);
    image_unsettle(migrant->image, plan);
    image_pieces(migrant->image, plan, mode == MIGRATE_LEAN ? add_differing : add_whole, migrant);
    send_migrant(migrant);
}

/* ---- arriving ---- */

static bool is_in_range(const struct wire_piece *piece, int rank) {
    uint64_t start = range_start((uint32_t)rank);
    return piece->address >= start && piece->size <= range_size() &&
           piece->address - start <= range_size() - piece->size;
}

static void read_pieces(void *context, const struct image *image) {
    const struct wire_image *wire = context;
    (void)image;
    size_t size = wire->pieces * sizeof(struct wire_piece);
    struct wire_piece *pieces = malloc(size + 1);
    if (!pieces)
        rank_job_abort(2, "there is not enough memory to unpack a rank");
    transport_read(pieces, size);
    for (uint32_t i = 0; i < wire->pieces; i++) {
        if (!is_in_range(&pieces[i], wire->ticket.record.rank))
            rank_job_abort(2, "another process of the job sent damaged data of a rank");
        if (pieces[i].is_zero)
            memset((void *)pieces[i].address, 0, pieces[i].size);
        else
            transport_read((void *)pieces[i].address, pieces[i].size);
    }
    free(pieces);
}

static void wait_until_it_has_left(int rank) {
    pthread_mutex_lock(&leaving_lock);
    while (is_leaving[rank])
        pthread_cond_wait(&has_left_memory, &leaving_lock);
    pthread_mutex_unlock(&leaving_lock);
}

static void take_image(int from, uint64_t bytes) {
    (void)bytes;
    struct wire_image wire;
    transport_read(&wire, sizeof wire);
    int rank = wire.ticket.record.rank;
    if (rank < 0 || rank >= rank_total())
        rank_job_abort(2, "another process of the job sent damaged data of a rank");
    wait_until_it_has_left(rank);
    lifecycle_take_in(&wire.ticket, wire.mode == MIGRATE_LEAN, read_pieces, &wire);
    rank_client()->unpack(rank, wire.ticket.inbox_content);
    process_note(rank, process_index(), wire.ticket.moves);
    process_announce(rank, wire.ticket.moves);
    rank_hooks_event(RANK_DEBUG_EVENT_AFTER_UNPACK, ranks_record(rank), (uint32_t)from);
    ranks_resume(rank);
}

void migration_prepare(const struct image_plan *image_plan, enum migration_mode migration_mode, int log) {
    plan = image_plan;
    mode = migration_mode;
    log_file = log;
    destinations = calloc((size_t)plan->ranks, sizeof *destinations);
    is_leaving = calloc((size_t)plan->ranks, sizeof *is_leaving);
    if (!destinations || !is_leaving)
        rank_job_abort(2, "there is not enough memory for the job");
    process_on_leave(send_rank);
    transport_handle(FRAME_IMAGE, take_image);
}
