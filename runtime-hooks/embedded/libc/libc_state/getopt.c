/*
 * getopt.c: getopt() and getopt_long() whose optind and optarg are the program's own, one for every rank.
 *
 * It does what getopt(3) says, GNU's reordering and messages included.  Operands are moved after an option as soon as
 * it has been read: in the middle of a scan argv may be further in order than with libc, at its end it is the same.
 *
 * Why not libc's own, with its variables saved and restored at every switch: libc exports optind and optarg, but not
 * where it stands within "-abc", nor which operands it has passed; ranks of two processing elements would use the one
 * set of variables at the same time; and every switch would pay for it.
 */
#define _GNU_SOURCE
#include "libc/libc_state/rank_private.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

RANK_PRIVATE char *optarg;
RANK_PRIVATE int optind = 1;
RANK_PRIVATE int opterr = 1;
RANK_PRIVATE int optopt = '?';

static char *cluster; /* what is left of "-abc", NULL between arguments */
static int at;        /* index of the option that is being read */
static int skipped;   /* operands before it, which it will be moved in front of */

/* What the caller allows. */
struct grammar {
    int argc;
    char **argv;
    const char *shorts; /* without the character that sets the order */
    const struct option *longs;
    int *long_index;
    char order; /* '+' end at the first operand, '-' return operands as option 1, 0 move them to the end */
    bool only;  /* one dash may begin a long option */
};

static struct grammar grammar_of(int argc, char *const argv[], const char *shorts) {
    struct grammar g = {.argc = argc, .argv = (char **)argv, .shorts = shorts};
    if (*shorts == '-' || *shorts == '+') {
        g.order = *shorts;
        g.shorts++;
    } else if (getenv("POSIXLY_CORRECT")) {
        g.order = '+';
    }
    return g;
}

static bool speaks(const struct grammar *g) {
    return opterr && *g->shorts != ':';
}

static int missing(const struct grammar *g) {
    return *g->shorts == ':' ? ':' : '?';
}

static bool is_option(const char *argument) {
    return argument[0] == '-' && argument[1];
}

/* argv[at] up to optind has been read: it trades places with the operands before it. */
static void settle(const struct grammar *g) {
    optind -= skipped;
    for (; skipped && at < optind + skipped; at++) {
        char *word = g->argv[at], **operands = &g->argv[at - skipped];
        memmove(operands + 1, operands, (size_t)skipped * sizeof *operands);
        *operands = word;
    }
    skipped = 0;
    cluster = NULL;
}

/* Steps to the next option; 0, or what getopt is to return instead. */
static int step(const struct grammar *g) {
    at = optind;
    skipped = 0;
    if (at >= g->argc)
        return -1;
    if (g->order && !is_option(g->argv[at])) {
        if (g->order == '+')
            return -1;
        optarg = g->argv[optind++];
        return 1;
    }
    while (at < g->argc && !is_option(g->argv[at]))
        at++;
    if (at == g->argc)
        return -1;
    skipped = at - optind;
    optind = at + 1;
    if (strcmp(g->argv[at], "--"))
        return 0;
    settle(g);
    return -1;
}

static bool begins(const struct option *option, const char *name, size_t length) {
    return !strncmp(option->name, name, length);
}

/* An exact match, or the only one that begins so; *many: several do, and differ. */
static const struct option *long_find(const struct grammar *g, const char *name, size_t length, bool *many) {
    const struct option *found = NULL;
    *many = false;
    for (const struct option *o = g->longs; o->name; o++) {
        if (!begins(o, name, length))
            continue;
        if (strlen(o->name) == length) {
            *many = false;
            return o;
        }
        if (found && (g->only || found->has_arg != o->has_arg || found->flag != o->flag || found->val != o->val))
            *many = true;
        found = found ? found : o;
    }
    return found;
}

static int long_unknown(const struct grammar *g, const char *dashes, const char *text, size_t length, bool many) {
    optopt = 0;
    if (speaks(g) && !many)
        fprintf(stderr, "%s: unrecognized option '%s%s'\n", g->argv[0], dashes, text);
    if (speaks(g) && many) {
        fprintf(stderr, "%s: option '%s%s' is ambiguous; possibilities:", g->argv[0], dashes, text);
        for (const struct option *o = g->longs; o->name; o++)
            if (begins(o, text, length))
                fprintf(stderr, " '%s%s'", dashes, o->name);
        fputc('\n', stderr);
    }
    return '?';
}

/* 0, or what getopt is to return for a bad use of the option. */
static int long_argument(const struct grammar *g, const struct option *option, const char *dashes, char *value) {
    const char *problem = "doesn't allow";
    if (option->has_arg == required_argument && !value) {
        value = optind < g->argc ? g->argv[optind++] : NULL;
        problem = "requires";
    }
    if (value ? option->has_arg != no_argument : option->has_arg != required_argument) {
        optarg = value;
        return 0;
    }
    optopt = option->val;
    if (speaks(g))
        fprintf(stderr, "%s: option '%s%s' %s an argument\n", g->argv[0], dashes, option->name, problem);
    return value ? '?' : missing(g);
}

/* `text` is "name" or "name=value"; `dashes` is what stood before it. */
static int long_option(const struct grammar *g, char *text, const char *dashes) {
    bool many;
    size_t length = strcspn(text, "=");
    const struct option *option = long_find(g, text, length, &many);
    if (!option || many)
        return long_unknown(g, dashes, text, length, many);
    int problem = long_argument(g, option, dashes, text[length] ? text + length + 1 : NULL);
    if (problem)
        return problem;
    if (g->long_index)
        *g->long_index = (int)(option - g->longs);
    if (!option->flag)
        return option->val;
    *option->flag = option->val;
    return 0;
}

/* The argument of a short option: the rest of the cluster, or else the next word if it must have one. */
static bool short_argument(const struct grammar *g, bool required) {
    if (*cluster)
        optarg = cluster;
    else if (required && optind < g->argc)
        optarg = g->argv[optind++];
    cluster = NULL;
    return optarg || !required;
}

static int short_option(const struct grammar *g) {
    char letter = *cluster++;
    const char *spec = letter == ':' || letter == ';' ? NULL : strchr(g->shorts, letter);
    if (!spec) {
        optopt = (unsigned char)letter;
        if (speaks(g))
            fprintf(stderr, "%s: invalid option -- '%c'\n", g->argv[0], letter);
        return '?';
    }
    bool is_long = letter == 'W' && spec[1] == ';' && g->longs;
    if (spec[1] != ':' && !is_long)
        return (unsigned char)letter;
    if (!short_argument(g, is_long || spec[2] != ':')) {
        optopt = (unsigned char)letter;
        if (speaks(g))
            fprintf(stderr, "%s: option requires an argument -- '%c'\n", g->argv[0], letter);
        return missing(g);
    }
    if (!is_long)
        return (unsigned char)letter;
    char *text = optarg;
    optarg = NULL;
    return long_option(g, text, "-W ");
}

/* Whether the word is for the long options; with one dash only if none of the short ones is meant. */
static bool is_long(const struct grammar *g, const char *word) {
    if (!g->longs)
        return false;
    if (word[1] == '-')
        return true;
    bool many;
    bool is_short = strchr(g->shorts, word[1]) != NULL;
    if (!g->only || (is_short && !word[2]))
        return false;
    return !is_short || long_find(g, word + 1, strcspn(word + 1, "="), &many);
}

static int scan(const struct grammar *g) {
    optarg = NULL;
    if (optind == 0) { /* the caller's way to begin again */
        optind = 1;
        cluster = NULL;
    }
    if (!cluster) {
        int other = step(g);
        if (other)
            return other;
        char *word = g->argv[at];
        if (is_long(g, word)) {
            int two = word[1] == '-', result = long_option(g, word + 1 + two, two ? "--" : "-");
            settle(g);
            return result;
        }
        cluster = word + 1;
    }
    int result = short_option(g);
    if (!cluster || !*cluster)
        settle(g);
    return result;
}

RANK_PRIVATE int getopt(int argc, char *const argv[], const char *shorts) {
    struct grammar g = grammar_of(argc, argv, shorts);
    return scan(&g);
}

RANK_PRIVATE int getopt_long(int argc, char *const argv[], const char *shorts, const struct option *longs, int *index) {
    struct grammar g = grammar_of(argc, argv, shorts);
    g.longs = longs;
    g.long_index = index;
    return scan(&g);
}

RANK_PRIVATE int getopt_long_only(int argc, char *const argv[], const char *shorts, const struct option *longs,
                                  int *index) {
    struct grammar g = grammar_of(argc, argv, shorts);
    g.longs = longs;
    g.long_index = index;
    g.only = true;
    return scan(&g);
}
