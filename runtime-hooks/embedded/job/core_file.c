/*
 * core_file.c: ELF core files (System V gABI; the notes as in Linux' fs/binfmt_elf.c), written by the process itself.
 *
 * Pages of zeros are left as holes.
 */
#define _GNU_SOURCE
#include "job/core_file.h"
#include "job/mappings.h"
#include "machine/machine.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define MOST_PROBED 256 /* pages; Linux takes 1024 at once */

struct buffer {
    char *bytes;
    size_t size, room;
    bool failed;
};

static void append(struct buffer *buffer, const void *bytes, size_t size) {
    if (buffer->size + size > buffer->room) {
        size_t room = 2 * (buffer->size + size) + 4096;
        char *grown = realloc(buffer->bytes, room);
        if (!grown) {
            buffer->failed = true;
            return;
        }
        buffer->bytes = grown;
        buffer->room = room;
    }
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

static void append_note(struct buffer *notes, const char *name, uint32_t type, const void *bytes, size_t size) {
    static const char zero[4];
    Elf64_Nhdr header = {(uint32_t)strlen(name) + 1, (uint32_t)size, type};
    append(notes, &header, sizeof header);
    append(notes, name, header.n_namesz);
    append(notes, zero, -header.n_namesz & 3u);
    append(notes, bytes, size);
    append(notes, zero, -(uint32_t)size & 3u);
}

/* ---- notes ---- */

/* NT_FILE: count, page size, then start, end and offset in pages of each mapping of a file, then their names. */
static void append_files(struct buffer *notes, const struct mappings *all) {
    struct buffer table = {0}, names = {0};
    uint64_t head[2] = {0, PAGE};
    for (size_t i = 0; i < all->count; i++) {
        const struct mapping *mapping = &all->items[i];
        if (!mapping->path || mapping->path[0] != '/')
            continue;
        uint64_t row[3] = {mapping->start, mapping->end, mapping->offset / PAGE};
        append(&table, row, sizeof row);
        append(&names, mapping->path, strlen(mapping->path) + 1);
        head[0]++;
    }
    struct buffer whole = {0};
    append(&whole, head, sizeof head);
    append(&whole, table.bytes, table.size);
    append(&whole, names.bytes, names.size);
    append_note(notes, "CORE", NT_FILE, whole.bytes, whole.size);
    notes->failed = notes->failed || table.failed || names.failed || whole.failed;
    free(table.bytes);
    free(names.bytes);
    free(whole.bytes);
}

static void append_auxiliary_vector(struct buffer *notes) {
    char bytes[4096];
    int file = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, bytes, sizeof bytes);
    if (size > 0)
        append_note(notes, "CORE", NT_AUXV, bytes, (size_t)size);
    if (file >= 0)
        close(file);
}

/* ---- threads: each tells its own registers, in a signal's handler, and goes on with what it was doing ---- */

#define ASK (SIGRTMAX - 3)

static struct elf_prstatus thread_status;
static sem_t has_told;

static void tell_registers(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    machine_registers(context, (uint64_t *)&thread_status.pr_reg);
    sem_post(&has_told);
}

/* A thread that does not answer, because it blocks signals, is left out. */
static void append_thread(struct buffer *notes, pid_t thread) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec++;
    memset(&thread_status, 0, sizeof thread_status);
    if (syscall(SYS_tgkill, getpid(), thread, ASK) || sem_timedwait(&has_told, &limit))
        return;
    thread_status.pr_pid = thread;
    thread_status.pr_ppid = getppid();
    append_note(notes, "CORE", NT_PRSTATUS, &thread_status, sizeof thread_status);
}

static void append_threads(struct buffer *notes) {
    struct sigaction ask = {.sa_sigaction = tell_registers, .sa_flags = SA_SIGINFO | SA_RESTART}, before;
    pid_t own = (pid_t)syscall(SYS_gettid);
    DIR *list = opendir("/proc/self/task");
    if (sem_init(&has_told, 0, 0) || sigaction(ASK, &ask, &before))
        return;
    append_thread(notes, own); /* debuggers take the first for the one that it is about */
    for (struct dirent *entry; list && (entry = readdir(list));) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && thread != own)
            append_thread(notes, thread);
    }
    if (list)
        closedir(list);
    sigaction(ASK, &before, NULL);
}

static void append_process(struct buffer *notes) {
    struct elf_prpsinfo info = {.pr_pid = getpid(), .pr_ppid = getppid(), .pr_sname = 'S', .pr_state = 1};
    snprintf(info.pr_fname, sizeof info.pr_fname, "rankrun");
    snprintf(info.pr_psargs, sizeof info.pr_psargs, "rankrun");
    append_note(notes, "CORE", NT_PRPSINFO, &info, sizeof info);
}

/* ---- writing ---- */

static int write_at(int file, const void *bytes, size_t size, uint64_t offset) {
    while (size) {
        ssize_t done = pwrite(file, bytes, size, (off_t)offset);
        if (done < 0 && errno != EINTR)
            return errno;
        if (done > 0)
            bytes = (const char *)bytes + done, size -= (size_t)done, offset += (uint64_t)done;
    }
    return 0;
}

/* How many of some pages can be read: glibc 2.42 has guard pages in its stacks that look like all others in the list of
 * mappings (MADV_GUARD_INSTALL). All of them, where the kernel does not tell. */
static size_t readable_pages(uint64_t at, size_t count) {
    char bytes[MOST_PROBED];
    struct iovec of_page[MOST_PROBED], here = {bytes, count};
    for (size_t i = 0; i < count; i++)
        of_page[i] = (struct iovec){(void *)(at + i * PAGE), 1};
    ssize_t read = process_vm_readv(getpid(), &here, 1, of_page, count, 0);
    return read >= 0 ? (size_t)read : errno == EFAULT ? 0 : count;
}

/* Runs of pages that are not zero; what can't be read is left out. */
static int write_mapping(int file, const struct mapping *mapping, uint64_t offset) {
    static const char zero[PAGE];
    uint64_t end = mapping->start + mapping->written, run = 0, readable = mapping->start, at;
    int error = 0;
    for (at = mapping->start; at < end && !error; at += PAGE) {
        if (at >= readable) {
            uint64_t left = (end - at) / PAGE;
            readable = at + PAGE * readable_pages(at, left < MOST_PROBED ? left : MOST_PROBED);
        }
        bool is_zero = at >= readable || memcmp((const void *)at, zero, PAGE) == 0;
        if (!is_zero && !run)
            run = at;
        if (is_zero && run) {
            error = write_at(file, (const void *)run, at - run, offset + (run - mapping->start));
            run = 0;
        }
    }
    return error || !run ? error : write_at(file, (const void *)run, end - run, offset + (run - mapping->start));
}

static int write_all(int file, const struct mappings *all, const struct buffer *notes) {
    size_t headers = all->count + 1;
    Elf64_Phdr *table = calloc(headers, sizeof *table);
    if (!table)
        return ENOMEM;
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = MACHINE_ELF,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof header,
        .e_ehsize = sizeof header,
        .e_phentsize = sizeof *table,
        .e_phnum = (uint16_t)headers,
    };
    uint64_t offset = sizeof header + headers * sizeof *table;
    table[0] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = offset, .p_filesz = notes->size, .p_align = 4};
    int error = write_at(file, notes->bytes, notes->size, offset);
    offset = (offset + notes->size + PAGE - 1) & ~(PAGE - 1);
    for (size_t i = 0; i < all->count && !error; i++) {
        const struct mapping *one = &all->items[i];
        table[i + 1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = one->flags,
                                    .p_offset = offset,
                                    .p_vaddr = one->start,
                                    .p_filesz = one->written,
                                    .p_memsz = one->end - one->start,
                                    .p_align = PAGE};
        error = write_mapping(file, one, offset);
        offset += one->written;
    }
    if (!error && ftruncate(file, (off_t)offset))
        error = errno;
    if (!error)
        error = write_at(file, table, headers * sizeof *table, sizeof header);
    free(table);
    /* Last of all, so that a file that is cut short is not an ELF file. */
    return error ? error : write_at(file, &header, sizeof header, 0);
}

int core_file_write(const char *path, const struct rank_ticket *tickets, size_t count) {
    struct mappings all = {0};
    struct buffer notes = {0};
    append_process(&notes);
    append_threads(&notes);
    append_auxiliary_vector(&notes);
    append_note(&notes, CORE_FILE_NOTE_NAME, CORE_FILE_NOTE_TYPE, tickets, count * sizeof *tickets);
    int error = mappings_read(&all);
    append_files(&notes, &all);
    int file = error || notes.failed ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        error = error ? error : notes.failed ? ENOMEM : errno;
    else
        error = write_all(file, &all, &notes);
    if (!error && fsync(file))
        error = errno;
    if (file >= 0 && close(file) && !error)
        error = errno;
    mappings_free(&all);
    free(notes.bytes);
    return error;
}

/* ---- reading ---- */

struct core_file {
    int file;
    uint64_t size;
    Elf64_Phdr *table;
    size_t count;
    struct rank_ticket *tickets;
    size_t ticket_count;
};

static bool read_at(int file, void *bytes, size_t size, uint64_t offset) {
    for (char *to = bytes; size;) {
        ssize_t got = pread(file, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got, size -= (size_t)got, offset += (uint64_t)got;
    }
    return true;
}

static bool take_tickets(struct core_file *core, const char *notes, size_t size) {
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
        Elf64_Nhdr header;
        memcpy(&header, notes + at, sizeof header);
        size_t name = at + sizeof header, bytes = name + ((header.n_namesz + 3u) & ~3u);
        size_t end = bytes + ((header.n_descsz + 3u) & ~3u);
        if (header.n_namesz > size || header.n_descsz > size || end > size)
            return false;
        if (header.n_namesz == sizeof CORE_FILE_NOTE_NAME && header.n_type == CORE_FILE_NOTE_TYPE &&
            !memcmp(notes + name, CORE_FILE_NOTE_NAME, sizeof CORE_FILE_NOTE_NAME) &&
            header.n_descsz % sizeof *core->tickets == 0) {
            core->ticket_count = header.n_descsz / sizeof *core->tickets;
            core->tickets = malloc(header.n_descsz + 1);
            if (core->tickets)
                memcpy(core->tickets, notes + bytes, header.n_descsz);
            return core->tickets != NULL;
        }
        at = end;
    }
    return false;
}

static bool read_headers(struct core_file *core) {
    Elf64_Ehdr header;
    struct stat about;
    if (fstat(core->file, &about) || !read_at(core->file, &header, sizeof header, 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_CORE ||
        header.e_phentsize != sizeof *core->table || header.e_phnum == 0)
        return false;
    core->size = (uint64_t)about.st_size;
    core->count = header.e_phnum;
    core->table = malloc(core->count * sizeof *core->table);
    if (!core->table || !read_at(core->file, core->table, core->count * sizeof *core->table, header.e_phoff))
        return false;
    for (size_t i = 0; i < core->count; i++)
        if (core->table[i].p_offset > core->size || core->table[i].p_filesz > core->size - core->table[i].p_offset)
            return false;
    const Elf64_Phdr *notes = &core->table[0];
    char *bytes = notes->p_type == PT_NOTE ? malloc(notes->p_filesz + 1) : NULL;
    bool found = bytes && read_at(core->file, bytes, notes->p_filesz, notes->p_offset) &&
                 take_tickets(core, bytes, notes->p_filesz);
    free(bytes);
    return found;
}

struct core_file *core_file_open(const char *path) {
    struct core_file *core = calloc(1, sizeof *core);
    if (!core)
        return NULL;
    core->file = open(path, O_RDONLY | O_CLOEXEC);
    if (core->file >= 0 && read_headers(core))
        return core;
    int error = core->file < 0 ? errno : ENOEXEC;
    core_file_close(core);
    errno = error;
    return NULL;
}

void core_file_close(struct core_file *core) {
    if (core->file >= 0)
        close(core->file);
    free(core->table);
    free(core->tickets);
    free(core);
}

const struct rank_ticket *core_file_tickets(const struct core_file *core, size_t *count) {
    *count = core->ticket_count;
    return core->tickets;
}

int core_file_read(const struct core_file *core, uint64_t start, uint64_t size) {
    for (size_t i = 0; i < core->count; i++) {
        const Elf64_Phdr *one = &core->table[i];
        uint64_t first = one->p_vaddr > start ? one->p_vaddr : start;
        uint64_t end = one->p_vaddr + one->p_filesz < start + size ? one->p_vaddr + one->p_filesz : start + size;
        if (one->p_type != PT_LOAD || first >= end)
            continue;
        if (!read_at(core->file, (void *)first, end - first, one->p_offset + (first - one->p_vaddr)))
            return EIO;
    }
    return 0;
}
