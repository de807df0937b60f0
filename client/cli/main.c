/* SPDX-License-Identifier: MIT */
/*
 * The `tracelake` executable: finds the command, and names the nearest one for an unknown name.
 * Standard output is checked at the end, so that a full disk is an error of every command.
 */
#include "base/cpu.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "terminal/args.h"
#include "terminal/plain.h"
#include "terminal/progress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What other programs call it. */
static const char *usual_name(const char *name)
{
    static const char *const names[][2] = {
        {"version", "--version"},  {"-V", "--version"},  {"-v", "--version"},
        {"info", "show"},          {"describe", "show"}, {"list", "ls"},
        {"delete", "rm"},          {"remove", "rm"},     {"start", "serve"},
        {"server", "serve"},       {"run", "serve"},     {"open", "view"},
        {"gui", "view"},           {"upload", "push"},   {"import", "push"},
        {"download", "raw"},       {"export", "get"},    {"fetch", "get"},
        {"search", "find"},        {"follow", "tail"},   {"query", "sql"},
        {"convert", "decode"},     {"copy", "cp"},       {"report", "stats"},
        {"compare", "diff"},       {"top", "functions"}, {"hot", "functions"},
        {"flamegraph", "profile"}, {"script", "get"},    {"prune", "retain"},
        {"clean", "retain"},       {"expire", "retain"}, {"login", "token"},
        {"user", "token"},         {"users", "token"},   {"auth", "token"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static int reject(const char *name)
{
    size_t n;
    const struct tl_command *const commands = tl_commands(&n);
    const char *near = usual_name(name);
    unsigned most = tl_name_too_far(name);
    for (size_t i = 0; i < n && !usual_name(name); i++) {
        const unsigned far = tl_name_distance(name, commands[i].name);
        near = far < most ? commands[i].name : near;
        most = far < most ? far : most;
    }
    fprintf(stderr, "tracelake: unknown command '%s'%s%s%s; see 'tracelake --help'\n", name,
            near ? "; there is '" : "", near ? near : "", near ? "'" : "");
    return TL_CLI_USAGE;
}

/* A command prints its own help, by its table of options. */
static int help_with(const char *name)
{
    const struct tl_command *const command = tl_command_find(name);
    char option[] = "--help";
    char *argv[] = {(char *)(uintptr_t)name, option, NULL};
    return command ? command->run(2, argv) : reject(name);
}

static int usage(FILE *out)
{
    fputs("usage: tracelake COMMAND …\n\n", out);
    size_t n;
    const struct tl_command *const commands = tl_commands(&n);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\n'tracelake COMMAND --help' tells more. Exit status: 0 done, 1 the input was bad,\n"
          "2 usage, 3 the server cannot be reached or refused.\n",
          out);
    return out == stdout ? TL_CLI_DONE : TL_CLI_USAGE;
}

/* A forced level must not be replaced by another one. */
static int no_such_level(const char *name)
{
    fprintf(stderr, "tracelake: TRACELAKE_CPU=%s: this machine has", name);
    for (int i = 0; i < TL_CPU_LEVELS; i++)
        if (tl_cpu_has((enum tl_cpu)i))
            fprintf(stderr, " %s", tl_cpu_name((enum tl_cpu)i));
    fputc('\n', stderr);
    return TL_CLI_USAGE;
}

int main(int argc, char **argv)
{
    tl_args_on_help(tl_help_print);
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0) {
        puts("tracelake " TL_VERSION);
        return TL_CLI_DONE;
    }
    if (strcmp(argv[1], "help") == 0) {
        if (argc > 2 && strcmp(argv[2], "--man") == 0) {
            tl_manual_print(argc > 3 ? tl_command_find(argv[3]) : NULL);
            return TL_CLI_DONE;
        }
        if (argc > 2 && strcmp(argv[2], "help") != 0)
            return help_with(argv[2]);
        return usage(stdout);
    }
    if (strcmp(argv[1], "complete") == 0)
        return tl_cmd_complete(argc - 1, argv + 1);
    const struct tl_command *command = tl_command_find(argv[1]);
    if (!command)
        return reject(argv[1]);
    if (tl_cpu_unknown() != NULL)
        return no_such_level(tl_cpu_unknown());
    int status = command->run(argc - 1, argv + 1);
    /* Failing to write output is an error, even if it is detected late. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (status == TL_CLI_DONE) {
            perror("tracelake: standard output");
            status = TL_CLI_BAD;
        }
    }
    return status;
}
