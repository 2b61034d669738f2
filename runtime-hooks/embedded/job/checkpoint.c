/*
 * checkpoint.c: the folder, the file `job`, and what a process does to save and to restore its ranks.
 *
 * The file `job` is lines of a word and what belongs to it; strings are percent-encoded.  Its last line is `end`.
 */
#define _GNU_SOURCE
#include "job/checkpoint.h"
#include "image/image_table.h"
#include "image/ranges.h"
#include "job/core_file.h"
#include "job/loaded_files.h"
#include "job/process.h"
#include "job/process_sockets.h"
#include "libc/descriptor_owners.h"
#include "libc/open_files.h"
#include "machine/machine.h"
#include "rank_hooks.h"
#include "ranks/client.h"
#include "ranks/fatal.h"
#include "ranks/rank_lifecycle.h"
#include "ranks/scheduler.h"
#include "ranks/user_level_threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT 2 /* checkpoints in a folder; older ones are removed */

static char begun[PATH_MAX]; /* the checkpoint that is being written */

/* ---- folders ---- */

/* The number that a folder's name is, 0 if it is none. */
static int number_of(const char *name) {
    char *end;
    long number = strtol(name, &end, 10);
    return strlen(name) == 6 && !*end && number > 0 ? (int)number : 0;
}

int checkpoint_last(const char *folder) {
    int last = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        last = number_of(entry->d_name) > last ? number_of(entry->d_name) : last;
    if (list)
        closedir(list);
    return last;
}

static void remove_folder(const char *path) {
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    rmdir(path);
}

static void remove_older(const char *folder, int number) {
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        int other = number_of(entry->d_name);
        char path[PATH_MAX];
        if (!other || other > number - KEPT || snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= PATH_MAX)
            continue;
        remove_folder(path);
    }
    if (list)
        closedir(list);
}

static int flush_folder(const char *path) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = folder < 0 || fsync(folder) ? errno : 0;
    if (folder >= 0)
        close(folder);
    return error;
}

/* ---- what was loaded ---- */

void checkpoint_guards(uint64_t guards[2]) {
    machine_guards(guards);
}

void checkpoint_set_guards(const uint64_t guards[2]) {
    int error = machine_set_guards(guards);
    if (error)
        fatal("the guards of stacks and pointers can't be set: %s", strerror(error));
}

void checkpoint_match(const struct checkpoint *checkpoint) {
    const char *lacking =
        checkpoint->objects ? loaded_difference(checkpoint->objects, loaded_lines(loaded_text())) : NULL;
    if (lacking)
        fatal("%s has changed, or lies elsewhere, since checkpoint %s was written: restart the job on the same "
              "system, with the same files",
              loaded_path(lacking), checkpoint->path);
    checkpoint_set_guards(checkpoint->job.guards);
}

/* ---- the file `job` ---- */

static void write_job(FILE *file, const struct checkpoint_job *job, int number, const int *statuses, int processes) {
    fprintf(file, "ranklens-checkpoint 1\nnumber %d\njob-id ", number);
    loaded_encode(file, job->job_id);
    fprintf(file, "\nranks %d\nprocesses %d\nmethod %s\nrewrite %s\n", job->ranks, processes, job->method,
            job->rewrite);
    fprintf(file, "stack-size %lu\nrange-size %lu\nshare-code %d\nguards %lx %lx\n", job->stack_size, job->range_size,
            job->share_code, job->guards[0], job->guards[1]);
    for (int i = 0; i < job->ranks; i++)
        if (statuses[i] >= 0)
            fprintf(file, "exited %d %d\n", i, statuses[i]);
    fprintf(file, "program ");
    loaded_encode(file, job->program);
    fputc('\n', file);
    for (int i = 0; i < job->argument_count; i++) {
        fprintf(file, "argument ");
        loaded_encode(file, job->arguments[i]);
        fputc('\n', file);
    }
    loaded_write(file, "object ");
    fprintf(file, "end\n");
}

/* One that lives as long as the list; NULL: there was no memory for it. */
static void add_string(char ***list, int *count, char *text) {
    char **grown = realloc(*list, ((size_t)*count + 2) * sizeof *grown);
    if (!grown || !text)
        fatal("there is not enough memory for the checkpoint");
    grown[(*count)++] = text;
    grown[*count] = NULL;
    *list = grown;
}

/* False: the line is not known. */
static bool take_line(struct checkpoint *checkpoint, const char *word, const char *rest) {
    struct checkpoint_job *job = &checkpoint->job;
    int rank, status;
    if (!strcmp(word, "ranks") && !checkpoint->statuses) {
        job->ranks = atoi(rest);
        if (job->ranks < 1 || job->ranks > 1000000 ||
            !(checkpoint->statuses = malloc((size_t)job->ranks * sizeof(int))))
            return false;
        for (int i = 0; i < job->ranks; i++)
            checkpoint->statuses[i] = -1;
        return true;
    }
    if (!strcmp(word, "exited")) {
        if (sscanf(rest, "%d %d", &rank, &status) != 2 || rank < 0 || rank >= job->ranks)
            return false;
        checkpoint->statuses[rank] = status;
        return true;
    }
    if (!strcmp(word, "program"))
        return (job->program = loaded_decode(rest)) != NULL;
    if (!strcmp(word, "argument"))
        return add_string(&job->arguments, &job->argument_count, loaded_decode(rest)), true;
    if (!strcmp(word, "object"))
        return add_string(&checkpoint->objects, &checkpoint->object_count, strdup(rest)), true;
    return (!strcmp(word, "number") && sscanf(rest, "%d", &job->number) == 1) ||
           (!strcmp(word, "processes") && sscanf(rest, "%d", &job->processes) == 1 && job->processes > 0) ||
           (!strcmp(word, "job-id") && sscanf(rest, "%63s", job->job_id) == 1) ||
           (!strcmp(word, "method") && sscanf(rest, "%15s", job->method) == 1) ||
           (!strcmp(word, "rewrite") && sscanf(rest, "%15s", job->rewrite) == 1) ||
           (!strcmp(word, "stack-size") && sscanf(rest, "%lu", &job->stack_size) == 1) ||
           (!strcmp(word, "range-size") && sscanf(rest, "%lu", &job->range_size) == 1) ||
           (!strcmp(word, "share-code") && sscanf(rest, "%d", &job->share_code) == 1) ||
           (!strcmp(word, "guards") && sscanf(rest, "%lx %lx", &job->guards[0], &job->guards[1]) == 2);
}

/* Whether it is a number of bytes that rankrun takes, too. */
static bool is_size(uint64_t size, uint64_t least) {
    return size >= least && size <= UINT64_C(1) << 44 && size % 4096 == 0;
}

/* Whether the file is whole. */
static bool read_job(struct checkpoint *checkpoint, FILE *file) {
    char *line = NULL;
    size_t room = 0;
    bool is_understood = getline(&line, &room, file) > 0 && !strcmp(line, "ranklens-checkpoint 1\n"), ended = false;
    while (is_understood && !ended && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = strchr(line, ' ');
        ended = !strcmp(line, "end");
        if (rest)
            *rest++ = '\0';
        is_understood = ended || take_line(checkpoint, line, rest ? rest : "");
    }
    free(line);
    const struct checkpoint_job *job = &checkpoint->job;
    return is_understood && ended && job->ranks && job->processes && job->program && job->argument_count &&
           *job->method && is_size(job->stack_size, 65536) && is_size(job->range_size, 1 << 20);
}

const struct checkpoint *checkpoint_open(const char *folder) {
    static struct checkpoint checkpoint;
    char path[PATH_MAX + 8];
    int last = checkpoint_last(folder);
    checkpoint = (struct checkpoint){0};
    if (last)
        snprintf(checkpoint.path, sizeof checkpoint.path, "%s/%06d", folder, last);
    else
        snprintf(checkpoint.path, sizeof checkpoint.path, "%s", folder);
    snprintf(path, sizeof path, "%s/job", checkpoint.path);
    FILE *file = fopen(path, "re");
    if (!file)
        fatal("%s has no whole checkpoint", folder);
    bool is_whole = read_job(&checkpoint, file);
    fclose(file);
    if (!is_whole)
        fatal("%s is not a checkpoint that this version can read", path);
    return &checkpoint;
}

int checkpoint_status(const struct checkpoint *checkpoint, int rank) {
    return checkpoint ? checkpoint->statuses[rank] : -1;
}

/* ---- in the launcher ---- */

int checkpoint_begin(const char *folder, int number, struct wire_save *save) {
    char path[PATH_MAX];
    if (mkdir(folder, 0700) && errno != EEXIST)
        return errno;
    if (snprintf(path, sizeof path, "%s/.%06d.%d", folder, number, (int)getpid()) >= PATH_MAX - 32)
        return ENAMETOOLONG;
    if (mkdir(path, 0700))
        return errno;
    memcpy(begun, path, sizeof begun);
    memcpy(save->path, path, sizeof save->path);
    return 0;
}

int checkpoint_try(const char *folder) {
    struct wire_save save;
    int error = checkpoint_begin(folder, 0, &save);
    checkpoint_give_up();
    return error;
}

int checkpoint_end(const char *folder, int number, const struct checkpoint_job *job, const int *statuses,
                   int processes) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/job", begun);
    FILE *file = fopen(path, "wxe");
    if (!file)
        return errno;
    write_job(file, job, number, statuses, processes);
    int error = fflush(file) || ferror(file) || fsync(fileno(file)) ? errno : 0;
    fclose(file);
    if (!error)
        error = flush_folder(begun);
    snprintf(path, sizeof path, "%s/%06d", folder, number);
    if (!error && rename(begun, path))
        error = errno;
    if (error)
        return error;
    *begun = '\0';
    remove_older(folder, number);
    return flush_folder(folder);
}

void checkpoint_give_up(void) {
    if (*begun)
        remove_folder(begun);
    *begun = '\0';
}

/* ---- in a process ---- */

/* Says once what a restart will lack: the image of a rank has no open files. */
static void warn_of_open_files(int rank) {
    static bool warned;
    char text[200] = "a stream";
    if (warned || (!descriptors_of(rank, text, sizeof text) && !open_files_of(rank)))
        return;
    warned = true;
    fprintf(stderr, "rankrun: rank %d has %s open, which will not be open when the job is restarted\n", rank, text);
}

/* Debuggers take their breakpoints out of a rank that is packed, and put them back where it arrives: a restart would
 * meet them. */
static void tell_of_packing(uint32_t kind, const struct rank_ticket *tickets, int count) {
    for (int i = 0; i < count; i++)
        if (tickets[i].record.state != RANK_DEBUG_STATE_EXITED)
            rank_hooks_event(kind, ranks_record(tickets[i].record.rank), (uint32_t)process_index());
}

static int save_ranks(const struct wire_save *save) {
    int count = 0;
    struct rank_ticket *tickets = calloc((size_t)rank_total(), sizeof *tickets);
    if (!tickets)
        return ENOMEM;
    for (int rank = 0; rank < rank_total(); rank++) {
        const struct rank_debug_rank *record = ranks_record(rank);
        if (!record || !process_has_rank(rank))
            continue;
        struct rank_ticket *ticket = &tickets[count++];
        if (record->state != RANK_DEBUG_STATE_EXITED)
            warn_of_open_files(rank);
        void *inbox_content = rank_client()->pack(rank);
        ranks_pack(rank, ticket);
        ticket->inbox_content = inbox_content;
        ticket->exit_functions = rank_image(rank)->exit_functions;
        ticket->moves = record->moves + 1;
    }
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/process-%d.core", save->path, process_index());
    tell_of_packing(RANK_DEBUG_EVENT_BEFORE_PACK, tickets, count);
    int error = core_file_write(path, tickets, (size_t)count);
    tell_of_packing(RANK_DEBUG_EVENT_AFTER_UNPACK, tickets, count);
    for (int i = 0; i < count; i++)
        rank_client()->unpack(tickets[i].record.rank, tickets[i].inbox_content);
    free(tickets);
    return error;
}

static void take_save(int from, uint64_t bytes) {
    (void)from;
    struct wire_save save;
    if (bytes != sizeof save)
        rank_job_abort(2, "the launcher sent a message of unknown kind");
    transport_read(&save, sizeof save);
    struct wire_saved saved = {save_ranks(&save)};
    transport_send(TRANSPORT_LAUNCHER, FRAME_SAVED, &saved, sizeof saved);
}

void checkpoint_prepare(void) {
    transport_handle(FRAME_SAVE, take_save);
}

struct source {
    const struct core_file *core;
    const char *path;
    int rank;
};

static void read_content(void *context, const struct image *image) {
    (void)image;
    const struct source *source = context;
    int error = core_file_read(source->core, range_start((uint32_t)source->rank), range_size());
    if (error)
        fatal("rank %d can't be read from %s: %s", source->rank, source->path, strerror(error));
}

static int restore_from(const char *path, int first, int end) {
    struct core_file *core = core_file_open(path);
    if (!core)
        fatal("%s is not whole: %s", path, strerror(errno));
    size_t count;
    int restored = 0;
    const struct rank_ticket *tickets = core_file_tickets(core, &count);
    for (size_t i = 0; i < count; i++) {
        int rank = tickets[i].record.rank;
        struct source source = {core, path, rank};
        if (rank < first || rank >= end)
            continue;
        lifecycle_take_in(&tickets[i], false, read_content, &source);
        process_note(rank, process_index(), tickets[i].moves);
        rank_client()->unpack(rank, tickets[i].inbox_content);
        restored++;
    }
    core_file_close(core);
    return restored;
}

void checkpoint_restore(const struct checkpoint *checkpoint, int first, int end) {
    int restored = 0;
    for (int process = 0; process < checkpoint->job.processes; process++) {
        char path[PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/process-%d.core", checkpoint->path, process);
        restored += restore_from(path, first, end);
    }
    if (restored != end - first)
        fatal("%s lacks ranks: %d of %d are there", checkpoint->path, restored, end - first);
    rank_hooks_event(RANK_DEBUG_EVENT_AFTER_COPIES, NULL, RANK_DEBUG_NONE);
    for (int rank = first; rank < end; rank++)
        if (checkpoint->statuses[rank] < 0)
            ranks_resume(rank);
        else
            ranks_have_exited(rank); /* its memory is kept, and messages to it find its inbox, as before */
}
