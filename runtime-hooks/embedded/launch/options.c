/*
 * options.c: parses rankrun's command line.
 */
#define _GNU_SOURCE
#include "launch/options.h"
#include "image/method.h"
#include "image/ranges.h"
#include "job/hosts.h"
#include "machine/machine.h"
#include "methods/table.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PROCESSES 256

static const char help[] =
    "usage: rankrun -n RANKS [OPTION...] PROGRAM [ARGUMENT...]\n"
    "Runs an MPI program that rankcc, rankcxx or rankfort built, with RANKS virtual ranks in this process.\n"
    "\n"
    "  -n, --ranks RANKS        how many ranks\n"
    "      --method METHOD      how globals are made private (default pie); see below\n"
    "      --pes COUNT          kernel threads that run the ranks (default 1)\n"
    "      --stack-size BYTES   stack of each rank (default 8M)\n"
    "      --range-size BYTES   address range of each rank (default 1G)\n"
    "      --rewrite MODE       which words of a copy are made to name it: scan (default) every aligned word that\n"
    "                           looks like a pointer into an original; exact: those that have relocations, and\n"
    "                           constructors run again in every copy\n"
    "      --rewrite-log FILE   write every rewritten word to FILE, one JSON object a line\n"
    "      --share-code         map code and constants of all ranks from the program's file (methods pie and hls)\n"
    "      --procs COUNT        spread the ranks over COUNT processes, between which they may migrate; on several "
    "hosts\n"
    "                           if mpiexec or srun starts rankrun there (default then: one for each that it starts)\n"
    "      --migrate MODE       what of a rank migrates: whole (default) all of its image; lean: the pages that are\n"
    "                           neither zero nor as they were loaded, and no unused stack\n"
    "      --migration-log FILE write what each migration sent to FILE, one JSON object a line\n"
    "      --checkpoint FOLDER  write the whole job to FOLDER from time to time, as core files\n"
    "      --every SECONDS      how often (default 60)\n"
    "      --restart FOLDER     continue from the newest checkpoint in FOLDER, which has ranks, method and program\n"
    "      --exit-on-deadlock   end with status 3 when no rank can continue, instead of waiting for a debugger\n"
    "      --exact-load         measure how long each rank runs also where ranks that poll take turns (about 10 ns a\n"
    "                           switch), for `inspector load`\n"
    "  -h, --help               show this text\n"
    "      --version            show the version\n"
    "\n"
    "BYTES may end in K, M or G. The exit status is the largest of the ranks'.\n"
    "\n"
    "Methods:\n";

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("rankrun: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see rankrun --help\n", stderr);
    va_end(arguments);
    exit(2);
}

static int parse_count(const char *what, const char *text, long most) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > most)
        fail("%s must be a whole number from 1 to %ld, not '%s'", what, most, text);
    return (int)value;
}

static uint64_t parse_size(const char *what, const char *text, uint64_t least) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (errno || end == text || *text == '-' || end[shift > 0] || value > UINT64_C(1) << 44)
        fail("%s must be a number of bytes, not '%s'", what, text);
    value = ((value << shift) + MACHINE_PAGE - 1) & ~(MACHINE_PAGE - 1);
    if (value < least || value > UINT64_C(1) << 44)
        fail("%s must be at least %lu bytes and at most 16T", what, least);
    return value;
}

static const struct method *parse_method(const char *text) {
    const struct method *method = method_named(text);
    char names[256];
    method_names(names, sizeof names);
    if (!method)
        fail("method '%s' is unknown; choose %s", text, names);
    return method;
}

/* For rankcc: what a method needs of the compiler, of the linker, and whether names stay open; a line each. */
static void print_build_options(const struct method *method) {
    printf("%s\n%s\n%s\n", method->compile ? method->compile : "", method->link ? method->link : "",
           method->is_preemptible ? "preemptible" : "");
}

static enum rewrite_mode parse_rewrite(const char *text) {
    if (strcmp(text, "scan") != 0 && strcmp(text, "exact") != 0)
        fail("--rewrite must be scan or exact, not '%s'", text);
    return strcmp(text, "exact") ? REWRITE_SCAN : REWRITE_EXACT;
}

static enum migration_mode parse_migration(const char *text) {
    if (strcmp(text, "whole") != 0 && strcmp(text, "lean") != 0)
        fail("--migrate must be whole or lean, not '%s'", text);
    return strcmp(text, "lean") ? MIGRATE_WHOLE : MIGRATE_LEAN;
}

static double parse_seconds(const char *what, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0.001) || value > 1e9)
        fail("%s must be a number of seconds, not '%s'", what, text);
    return value;
}

/* What the checkpoint knows better than the command line. */
static void apply_checkpoint(struct options *options) {
    const struct checkpoint_job *job = &options->restart->job;
    if (options->ranks || options->argument_count)
        fail("--restart goes on with the checkpoint's own program and ranks; leave them out");
    options->ranks = job->ranks;
    options->method = parse_method(job->method);
    options->rewrite = parse_rewrite(job->rewrite);
    options->stack_size = job->stack_size;
    options->range_size = job->range_size;
    options->share_code = job->share_code;
    options->argument_count = job->argument_count;
    options->arguments = job->arguments;
}

/* At least one process on each host, which the launcher has started rankrun on. */
static void deal_out(struct options *options) {
    if (site_hosts() == 1)
        return;
    if (!options->processes)
        options->processes = site_hosts();
    if (options->processes < site_hosts())
        fail("--procs %d is less than one process for each of the %d that the launcher has started", options->processes,
             site_hosts());
}

static void check_job(const struct options *options) {
    const struct method *method = options->method;
    bool keeps = options->checkpoint || options->restart;
    if (options->processes > options->ranks)
        fail("--procs %d is more than there are ranks (%d)", options->processes, options->ranks);
    if ((options->processes || keeps) && method->is_process)
        fail("method %s makes processes of its own, so --procs, --checkpoint and --restart don't go with it",
             method->name);
    if (keeps && !method->can_move)
        fail("method %s can't be checkpointed, because some of a rank's data lie outside its range", method->name);
    if (options->migration_log && !options->processes)
        fail("--migration-log needs --procs");
    if (options->every && !options->checkpoint)
        fail("--every needs --checkpoint");
    if (options->processes > MOST_PROCESSES)
        fail("a job has at most %d processes, not %d", MOST_PROCESSES, options->processes);
}

static void check(const struct options *options) {
    if (options->ranks == 0)
        fail("the number of ranks is missing (-n RANKS)");
    if (options->argument_count == 0)
        fail("the program is missing");
    check_job(options);
    if (options->elements > options_residents(options))
        fail("--pes %d is more than there are ranks (%d)", options->elements, options_residents(options));
    /* 2^47 bytes is what a process has; a quarter of it is left to everything else. */
    if (options->range_size > (UINT64_C(3) << 45) / 2 / ((uint64_t)options->ranks + 2))
        fail("%d ranges of %lu bytes do not fit into the address space; use a smaller --range-size", options->ranks,
             options->range_size);
    if (options->share_code && !options->method->byte_copies)
        fail("--share-code has no meaning under method %s, which copies no code", options->method->name);
    if (options->stack_size > options->range_size / 2)
        fail("a stack of %lu bytes needs a larger --range-size", options->stack_size);
}

int options_residents(const struct options *options) {
    int processes = options->processes ? options->processes : 1;
    return (options->ranks + processes - 1) / processes;
}

enum { METHOD = 256, PES, STACK, RANGE, REWRITE, LOG, SHARE, DEADLOCK, EXACT_LOAD, BUILD };
enum { VERSION = BUILD + 1, PROCS, HOSTS, MIGRATE, MIGRATION_LOG, CHECKPOINT, EVERY, RESTART };

static const struct option names[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"method", required_argument, NULL, METHOD},
    {"pes", required_argument, NULL, PES},
    {"stack-size", required_argument, NULL, STACK},
    {"range-size", required_argument, NULL, RANGE},
    {"rewrite", required_argument, NULL, REWRITE},
    {"rewrite-log", required_argument, NULL, LOG},
    {"share-code", no_argument, NULL, SHARE},
    {"procs", required_argument, NULL, PROCS},
    {"hosts", required_argument, NULL, HOSTS},
    {"remote-shell", required_argument, NULL, HOSTS},
    {"host-timeout", required_argument, NULL, HOSTS},
    {"migrate", required_argument, NULL, MIGRATE},
    {"migration-log", required_argument, NULL, MIGRATION_LOG},
    {"checkpoint", required_argument, NULL, CHECKPOINT},
    {"every", required_argument, NULL, EVERY},
    {"restart", required_argument, NULL, RESTART},
    {"build-options", required_argument, NULL, BUILD},
    {"exit-on-deadlock", no_argument, NULL, DEADLOCK},
    {"exact-load", no_argument, NULL, EXACT_LOAD},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

/* The options of jobs of several processes, and of checkpoints. */
static void take_job_option(struct options *options, int option, const char *value) {
    switch (option) {
    case PROCS:
        options->processes = parse_count("--procs", value, MOST_PROCESSES);
        break;
    case HOSTS:
        fail("--hosts, --remote-shell and --host-timeout no longer exist: your site's launcher starts rankrun on "
             "hosts, as "
             "mpiexec -n 2 -hosts red,blue rankrun -n 64 ./solver does");
    case MIGRATE:
        options->migration = parse_migration(value);
        break;
    case MIGRATION_LOG:
        options->migration_log = value;
        break;
    case CHECKPOINT:
        options->checkpoint = value;
        break;
    case EVERY:
        options->every = parse_seconds("--every", value);
        break;
    case RESTART:
        options->restart = checkpoint_open(value);
        break;
    }
}

/* The options of every run. */
static void take_run_option(struct options *options, int option, const char *value) {
    switch (option) {
    case 'n':
        options->ranks = parse_count("the number of ranks", value, 1000000);
        break;
    case METHOD:
        options->method = parse_method(value);
        break;
    case PES:
        options->elements = parse_count("--pes", value, 1024);
        break;
    case STACK:
        options->stack_size = parse_size("--stack-size", value, 65536);
        break;
    case RANGE:
        options->range_size = parse_size("--range-size", value, 1 << 20);
        break;
    case REWRITE:
        options->rewrite = parse_rewrite(value);
        break;
    case LOG:
        options->rewrite_log = value;
        break;
    case SHARE:
        options->share_code = true;
        break;
    case DEADLOCK:
        options->exit_on_deadlock = true;
        break;
    case EXACT_LOAD:
        options->exact_load = true;
        break;
    }
}

/* Options that only print a text, and words that are not options: both end the process. */
static void answer(int option, const char *word) {
    switch (option) {
    case BUILD:
        print_build_options(parse_method(optarg));
        exit(0);
    case VERSION:
        puts("rankrun " RANKLENS_VERSION);
        exit(0);
    case 'h':
        fputs(help, stdout);
        method_help();
        exit(0);
    case ':':
        fail("%s needs a value", word);
    case '?':
        fail("there is no option %s", word);
    }
}

struct options options_parse(int argc, char **argv) {
    struct options options = {.elements = 1, .stack_size = 8 << 20, .range_size = RANGE_SIZE_DEFAULT};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "+:n:h", names, NULL)) != -1;) {
        answer(option, argv[optind - 1]);
        take_run_option(&options, option, optarg);
        take_job_option(&options, option, optarg);
    }
    if (!options.method)
        options.method = parse_method("pie");
    options.argument_count = argc - optind;
    options.arguments = argv + optind;
    if (options.restart)
        apply_checkpoint(&options);
    deal_out(&options);
    if (options.method->is_kernel_task)
        options.elements = options_residents(&options);
    check(&options);
    return options;
}
