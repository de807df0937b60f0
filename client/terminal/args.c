/* SPDX-License-Identifier: MIT */
/*
 * Parses the options of a command by its table. getopt_long() would accept abbreviations, and
 * cannot say which options an unknown one may have meant.
 */
#include "terminal/args.h"

#include "base/nearest.h"
#include "terminal/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*print_help)(const char *command, const struct tl_option *options);

void tl_args_on_help(void (*print)(const char *command, const struct tl_option *options))
{
    print_help = print;
}

static _Thread_local struct {
    void (*reader)(void *context, const struct tl_option *options);
    void *context;
} watch;

void tl_args_watch(void (*reader)(void *context, const struct tl_option *options), void *context)
{
    watch.reader = reader;
    watch.context = context;
}

/* ---- the table ------------------------------------------------------------------------------ */

const struct tl_option *tl_option_find(const struct tl_option *options, const char *name)
{
    for (; !tl_option_ends(options); options++)
        if (options->name && !strcmp(options->name, name))
            return options;
    return NULL;
}

const char *tl_option_set(const struct tl_option *option, const char *text)
{
    const struct tl_arg arg = {option->name, option->kind, option->value};
    return tl_arg_set(&arg, text);
}

static const struct tl_option *find_letter(const struct tl_option *options, char letter)
{
    for (; !tl_option_ends(options); options++)
        if (options->name && options->letter == letter)
            return options;
    return NULL;
}

/* Print all options: name and kind of value, one per line. */
static void print_options(const struct tl_option *options)
{
    static const char *const kinds[] = {
        [TL_ARG_FLAG] = "flag",   [TL_ARG_TEXT] = "text",   [TL_ARG_U64] = "number",
        [TL_ARG_SIZE] = "size",   [TL_ARG_COUNT] = "count", [TL_ARG_LIST] = "list",
        [TL_ARG_RANGE] = "range", [TL_ARG_BYTES] = "range", [TL_ARG_TIME] = "time",
        [TL_ARG_TIMES] = "times",
    };
    for (; !tl_option_ends(options); options++)
        if (options->name)
            printf("%s %s\n", options->name, kinds[options->kind]);
    puts("help flag");
}

/* ---- parsing -------------------------------------------------------------------------------- */

struct parser {
    const char *command;
    const struct tl_option *options;
    char **argv;
    int argc, at; /* `at`: the next word */
};

/* List the options that begin with `name`, which is none: "--symbols, --symfs". */
static void list_beginnings(const struct tl_option *options, const char *name, char *out,
                            size_t size)
{
    const size_t n = strlen(name);
    size_t used = 0;
    *out = 0;
    for (; n && !tl_option_ends(options) && used < size; options++)
        if (options->name && options->help && !strncmp(options->name, name, n))
            used += (size_t)snprintf(out + used, size - used, "%s--%s", used ? ", " : "",
                                     options->name);
}

/* The option that a misspelt name is most like; NULL: it is like none. */
static const char *nearest(const struct tl_option *options, const char *name)
{
    const char *near = NULL;
    unsigned most = tl_name_too_far(name);
    for (; *name && !tl_option_ends(options); options++) {
        const unsigned far =
            options->name && options->help ? tl_name_distance(name, options->name) : most;
        near = far < most ? options->name : near;
        most = far < most ? far : most;
    }
    return near;
}

static int reject_name(const struct parser *p, const char *name)
{
    char like[400];
    list_beginnings(p->options, name, like, sizeof like);
    const char *const near = *like ? NULL : nearest(p->options, name);
    if (near)
        return tl_cli_usage(p->command, "unknown option --%s; there is --%s", name, near);
    if (!*like)
        return tl_cli_usage(p->command, "unknown option --%s", name);
    return tl_cli_usage(p->command, "unknown option --%s: options are not abbreviated; there is %s",
                        name, like);
}

/* `text`: the value in the same word, NULL: the next word is. */
static int take_value(struct parser *p, const struct tl_option *option, const char *shown,
                      const char *text)
{
    if (!text && p->at == p->argc)
        return tl_cli_usage(p->command, "%s needs a value", shown);
    const char *const value = text ? text : p->argv[p->at++];
    const char *const wanted = tl_option_set(option, value);
    return wanted ? tl_cli_usage(p->command, "--%s %s: must be %s", option->name, value, wanted)
                  : TL_ARGS_GO;
}

/* A letter that is none may stand for an option that begins with it. `word`: "-o". */
static int reject_letter(const struct parser *p, const char *word)
{
    char like[400];
    list_beginnings(p->options, word + 1, like, sizeof like);
    return tl_cli_usage(p->command, "unknown option %s%s%s", word, *like ? "; there is " : "",
                        like);
}

static int show_help(const struct parser *p)
{
    print_help(p->command, p->options);
    return TL_CLI_DONE;
}

/* --name, --name VALUE or --name=VALUE */
static int take_long(struct parser *p, char *word)
{
    char *const equals = strchr(word, '=');
    if (equals)
        *equals = 0;
    const char *const name = word + 2;
    const struct tl_option *const option = tl_option_find(p->options, name);
    int status = TL_ARGS_GO;
    if (!option)
        status = strcmp(name, "help") != 0 ? reject_name(p, name) : show_help(p);
    else if (option->kind != TL_ARG_FLAG)
        status = take_value(p, option, word, equals ? equals + 1 : NULL);
    else if (equals)
        status = tl_cli_usage(p->command, "%s takes no value", word);
    else
        (void)!tl_option_set(option, "yes");
    if (equals)
        *equals = '=';
    return status;
}

/* -q, -o VALUE, -oVALUE, -qo VALUE */
static int take_letters(struct parser *p, const char *letters)
{
    for (; *letters; letters++) {
        const struct tl_option *const option = find_letter(p->options, *letters);
        const char shown[] = {'-', *letters, 0};
        if (!option && *letters == 'h')
            return show_help(p);
        if (!option)
            return reject_letter(p, shown);
        if (option->kind != TL_ARG_FLAG)
            return take_value(p, option, shown, letters[1] ? letters + 1 : NULL);
        (void)!tl_option_set(option, "yes");
    }
    return TL_ARGS_GO;
}

/* Parse all words; those that are no options go to `rest`, in their order. */
static int take_words(struct parser *p, char **rest, int *n_rest)
{
    int status = TL_ARGS_GO;
    while (p->at < p->argc && status == TL_ARGS_GO) {
        char *const word = p->argv[p->at++];
        if (!strcmp(word, "--"))
            break;
        if (!strncmp(word, "--", 2))
            status = take_long(p, word);
        else if (word[0] == '-' && word[1])
            status = take_letters(p, word + 1);
        else
            rest[(*n_rest)++] = word;
    }
    while (p->at < p->argc)
        rest[(*n_rest)++] = p->argv[p->at++];
    return status;
}

/* Put the words of options before the positional ones, which are `rest`. */
static void move_rest(int argc, char **argv, char **rest, int n_rest)
{
    int to = 1, r = 0;
    for (int i = 1; i < argc; i++)
        if (r < n_rest && argv[i] == rest[r])
            r++;
        else
            argv[to++] = argv[i];
    if (n_rest)
        memcpy(argv + to, rest, (size_t)n_rest * sizeof *rest);
}

int tl_args_parse(int argc, char **argv, const struct tl_option *options, int *first)
{
    if (watch.reader) {
        watch.reader(watch.context, options);
        watch.reader = NULL;
        return TL_CLI_DONE;
    }
    if (argc == 2 && !strcmp(argv[1], "--options")) {
        print_options(options);
        return TL_CLI_DONE;
    }
    struct parser parser = {argv[0], options, argv, argc, 1};
    char **const rest = malloc((size_t)argc * sizeof *rest);
    int n = 0;
    if (!rest) {
        tl_cli_warn(argv[0], "no memory");
        return TL_CLI_BAD;
    }
    const int status = take_words(&parser, rest, &n);
    if (status == TL_ARGS_GO)
        move_rest(argc, argv, rest, n);
    free(rest);
    *first = argc - n;
    return status;
}
