/* SPDX-License-Identifier: MIT */
/*
 * Completion candidates at the cursor. The shell scripts only call this; commands and options come
 * from the commands themselves, and names of traces from the server.
 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "setup/format.h"
#include "terminal/args.h"
#include "terminal/plain.h"
#include "terminal/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 1000 /* for the server: a user is waiting at the prompt */

/* ---- scripts ------------------------------------------------------------------------------- */

static const char bash_script[] =
    "# tracelake for bash: asks the program itself.\n"
    "_tracelake() {\n"
    "  local cur line word IFS=$'\\n'\n"
    "  COMPREPLY=()\n"
    "  cur=${COMP_WORDS[COMP_CWORD]}\n"
    "  while IFS= read -r line; do\n"
    "    word=${line%%$'\\t'*}\n"
    "    case $word in\n"
    "      :file) compopt -o filenames; COMPREPLY+=($(compgen -f -- \"$cur\")) ;;\n"
    "      */) compopt -o nospace; COMPREPLY+=(\"$word\") ;;\n"
    "      *) COMPREPLY+=(\"$word\") ;;\n"
    "    esac\n"
    "  done < <(\"${COMP_WORDS[0]}\" complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _tracelake tracelake\n";

static const char zsh_script[] =
    "#compdef tracelake\n"
    "# tracelake for zsh: asks the program itself.\n"
    "_tracelake() {\n"
    "  local line word\n"
    "  local -a plain open said shown\n"
    "  for line in \"${(@f)$(\"${words[1]}\" complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; "
    "do\n"
    "    word=${line%%$'\\t'*}\n"
    "    case $word in\n"
    "      '') ;;\n"
    "      :file) _files ;;\n"
    "      */) open+=(\"$word\") ;;\n"
    "      *) plain+=(\"$word\"); said+=(\"${line/$'\\t'/  -- }\") ;;\n"
    "    esac\n"
    "  done\n"
    "  (( $#plain )) && compadd -l -d said -a plain\n"
    "  (( $#open )) && compadd -S '' -a open\n"
    "  return $(( $#plain + $#open == 0 ))\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _tracelake ]; then _tracelake \"$@\"; else compdef _tracelake "
    "tracelake; fi\n";

static const char fish_script[] =
    "# tracelake for fish: asks the program itself.\n"
    "function __tracelake\n"
    "  set -l words (commandline -opc)\n"
    "  set -l cur (commandline -ct)\n"
    "  for line in ($words[1] complete $words[2..-1] \"$cur\" 2>/dev/null)\n"
    "    if test \"$line\" = ':file'\n"
    "      __fish_complete_path \"$cur\"\n"
    "    else\n"
    "      echo $line\n"
    "    end\n"
    "  end\n"
    "end\n"
    "complete -c tracelake -f -a '(__tracelake)'\n";

int tl_cmd_completion(int argc, char **argv)
{
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    const struct tl_option args[] = {{0}};
    int first;
    const int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    for (size_t i = 0; first == argc - 1 && i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(argv[first], shells[i].name)) {
            fputs(shells[i].script, stdout);
            return TL_CLI_DONE;
        }
    return tl_cli_usage("completion", "say bash, zsh or fish");
}

/* ---- candidates ---------------------------------------------------------------------------- */

static void offer(const char *word, const char *begin, const char *what)
{
    if (strncmp(word, begin, strlen(begin)) != 0)
        return;
    tl_print_plain(stdout, word, 0);
    if (what) {
        putchar('\t');
        tl_print_plain(stdout, what, 0);
    }
    putchar('\n');
}

/* "text|json": each of these. */
static void offer_words(const char *words, const char *begin)
{
    char word[64];
    while (*words) {
        const size_t n = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        offer(word, begin, NULL);
        words += n + (words[n] == '|');
    }
}

static void offer_commands(const char *begin)
{
    size_t n;
    const struct tl_command *const commands = tl_commands(&n);
    for (size_t i = 0; i < n; i++)
        offer(commands[i].name, begin, commands[i].summary);
    offer("help", begin, "tell what a command does");
}

/* ---- options ------------------------------------------------------------------------------- */

enum { TEXT_COLUMNS = 72 }; /* of a description in a menu */

struct options {
    struct tl_option at[64]; /* only their texts are valid */
    size_t n;
};

static void take_table(void *context, const struct tl_option *options)
{
    struct options *const o = context;
    for (; !tl_option_ends(options) && o->n < sizeof o->at / sizeof *o->at - 1; options++)
        if (options->name)
            o->at[o->n++] = *options;
    o->at[o->n++] = (struct tl_option){.name = "help", .kind = TL_ARG_FLAG, .help = "print help"};
}

/* What an option does, as far as it fits, cut between words. */
static void shorten(const char *help, char out[static TEXT_COLUMNS + 4])
{
    size_t n = strlen(help);
    const bool cut = n > TEXT_COLUMNS;
    if (cut)
        for (n = TEXT_COLUMNS; n > 0 && help[n] != ' '; n--)
            ;
    snprintf(out, TEXT_COLUMNS + 4, "%.*s%s", (int)n, help, cut ? "…" : "");
}

static void offer_options(const struct options *o, const char *begin)
{
    for (size_t i = 0; i < o->n; i++) {
        char word[80];
        char text[TEXT_COLUMNS + 4];
        if (!o->at[i].help)
            continue;
        snprintf(word, sizeof word, "--%s", o->at[i].name);
        shorten(o->at[i].help, text);
        offer(word, begin, text);
    }
}

/* The option that `word` is and whose value comes next; NULL: none. */
static const struct tl_option *takes_value(const struct options *o, const char *word)
{
    for (size_t i = 0; i < o->n; i++) {
        const struct tl_option *const option = &o->at[i];
        const bool is_long = !strncmp(word, "--", 2) && !strcmp(word + 2, option->name);
        const bool is_short =
            word[0] == '-' && option->letter && word[1] == option->letter && !word[2];
        if ((is_long || is_short) && option->kind != TL_ARG_FLAG)
            return option;
    }
    return NULL;
}

/* ---- from the server ----------------------------------------------------------------------- */

/* The value of an option among the words before the cursor. */
static const char *value_of(char **words, size_t n, const char *option)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (!strcmp(words[i], option))
            return words[i + 1];
    return NULL;
}

static struct tracelake *connect_quietly(char **words, size_t n)
{
    const struct tl_remote remote = {
        .url = value_of(words, n, "--server"),
        .token = value_of(words, n, "--token"),
        .cafile = value_of(words, n, "--cafile"),
        .fingerprint = value_of(words, n, "--fingerprint"),
        .cert = value_of(words, n, "--cert"),
        .key = value_of(words, n, "--key"),
        .patience_ms = PATIENCE_MS,
    };
    struct tracelake *lake;
    struct tracelake_error error;
    return tl_remote_try(&lake, &remote, &error) == TL_ARGS_GO ? lake : NULL;
}

static void offer_streams(struct tracelake *lake, const char *begin)
{
    struct tracelake_trace *trace;
    struct tracelake_error error;
    char id[128];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(begin, "/"), begin);
    if (tracelake_get_trace(lake, id, &trace, &error) < 0)
        return;
    for (size_t i = 0; i < trace->n_streams; i++) {
        char word[224];
        snprintf(word, sizeof word, "%s/%s", id, trace->streams[i].name);
        offer(word, begin, NULL);
    }
    tracelake_trace_free(trace);
}

/* `streams`: to be followed by one of its streams. */
static void offer_traces(struct tracelake *lake, const char *begin, bool streams)
{
    struct tracelake_list *list;
    struct tracelake_error error;
    if (tracelake_list_traces(lake, &list, &error) < 0)
        return;
    for (size_t i = 0; i < list->n; i++) {
        char word[160];
        snprintf(word, sizeof word, "%s%s", list->traces[i].id, streams ? "/" : "");
        offer(word, begin, list->traces[i].rig);
    }
    tracelake_list_free(list);
}

static void offer_names(char **words, size_t n, const char *begin, bool streams)
{
    struct tracelake *const lake = connect_quietly(words, n);
    if (!lake)
        return;
    if (streams && strchr(begin, '/'))
        offer_streams(lake, begin);
    else
        offer_traces(lake, begin, streams);
    tracelake_close(lake);
}

/* ---- places -------------------------------------------------------------------------------- */

static void offer_formats(const char *begin)
{
    for (unsigned i = 0; i < tl_n_formats; i++)
        if (tl_formats[i].name && tl_formats[i].stream)
            offer(tl_formats[i].name, begin, tl_formats[i].spec);
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* According to what the table says of the value. */
static void offer_values(char **words, size_t n, const struct tl_option *option, const char *begin)
{
    static const char *const files[] = {"FILE", "DIR", "ELF"};
    if (!strcmp(option->unit, "FMT"))
        offer_formats(begin);
    else if (!strcmp(option->name, "trace"))
        offer_names(words, n, begin, false);
    else if (strchr(option->unit, '|'))
        offer_words(option->unit, begin);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (begins(option->unit, files[i]))
            puts(":file");
}

/* According to the usage lines. */
static void offer_positional(const struct tl_command *command, char **words, size_t n,
                             const char *begin)
{
    const char *const use = command->usage;
    const bool streams = strstr(use, "TRACE/") || strstr(use, "TRACE[/");
    if (!strcmp(command->name, "token") && n == 1)
        offer_words("add|list|revoke", begin);
    else if (!strcmp(command->name, "store"))
        n == 1 ? offer_words("copy", begin) : (void)puts(":file");
    else if (!strcmp(command->name, "completion"))
        offer_words("bash|zsh|fish", begin);
    else if (begins(use, "TRACE") || strstr(use, " TRACE") || strstr(use, "(TRACE") ||
             strstr(use, "[TRACE"))
        offer_names(words, n, begin, streams);
    else if (strstr(use, "FILE") || strstr(use, "INPUT"))
        puts(":file");
}

int tl_cmd_complete(int argc, char **argv)
{
    if (argc < 2)
        return TL_CLI_DONE;
    const char *const begin = argv[argc - 1];
    if (argc == 2) {
        offer_commands(begin);
        return TL_CLI_DONE;
    }
    if (!strcmp(argv[1], "help")) {
        offer_commands(begin);
        return TL_CLI_DONE;
    }
    const struct tl_command *const command = tl_command_find(argv[1]);
    struct options options = {0};
    if (!command)
        return TL_CLI_DONE;
    tl_command_options(command, take_table, &options);
    char **const words = argv + 1; /* beginning with the command */
    const size_t n = (size_t)argc - 2;
    const struct tl_option *const option = n > 1 ? takes_value(&options, words[n - 1]) : NULL;
    if (option)
        offer_values(words, n, option, begin);
    else if (*begin == '-')
        offer_options(&options, begin);
    else
        offer_positional(command, words, n, begin);
    return TL_CLI_DONE;
}
