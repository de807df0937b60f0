/* SPDX-License-Identifier: MIT */
/* Manual pages, generated from the help texts of the commands as man(7) macros. */
#include "cli/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct line {
    const char *p;
    size_t n;
};

static struct line next_line(const char **text)
{
    const char *const begin = *text;
    const size_t n = strcspn(begin, "\n");
    *text = begin + n + (begin[n] == '\n');
    return (struct line){begin, n};
}

/* Print text for man(7): backslashes and dashes escaped, nothing mistaken for a macro. */
static void put(const char *p, size_t n)
{
    if (n && (*p == '.' || *p == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < n; i++)
        if (p[i] == '\\')
            fputs("\\e", stdout);
        else if (p[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(p[i]);
}

static void put_line(const char *p, size_t n)
{
    put(p, n);
    putchar('\n');
}

static size_t indent_of(struct line line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == ' ')
        n++;
    return n;
}

/*
 * Position of two or more blanks that separate an option from its text; the length, if there are
 * none.
 */
static size_t gap_of(struct line line, size_t from)
{
    for (size_t i = from; i + 1 < line.n; i++)
        if (line.p[i] == ' ' && line.p[i + 1] == ' ')
            return i;
    return line.n;
}

static bool starts(struct line line, const char *with)
{
    const size_t n = strlen(with);
    return line.n >= n && !memcmp(line.p, with, n);
}

/* " --rig NAME who sends": a tag, with its text below. */
static void put_option(struct line line)
{
    const size_t from = indent_of(line);
    const size_t gap = gap_of(line, from);
    size_t text = gap;
    while (text < line.n && line.p[text] == ' ')
        text++;
    fputs(".TP\n\\fB", stdout);
    put(line.p + from, gap - from);
    fputs("\\fR\n", stdout);
    if (text < line.n)
        put_line(line.p + text, line.n - text);
}

static void put_use(const char **help)
{
    puts(".SH SYNOPSIS\n.nf");
    while (**help) {
        const char *const before = *help;
        const struct line line = next_line(help);
        const bool first = starts(line, "usage: ");
        if (!first && !starts(line, "       ")) {
            *help = before;
            break;
        }
        put_line(line.p + 7, line.n - 7);
    }
    puts(".fi");
}

/* Everything after the usage lines. */
static void put_body(const char *help)
{
    bool in_options = false;
    puts(".SH DESCRIPTION");
    while (*help) {
        const struct line line = next_line(&help);
        const size_t indent = indent_of(line);
        if (line.n == 0) {
            if (!in_options)
                puts(".PP");
        } else if (indent == 0 && line.p[line.n - 1] == ':') {
            printf(".SS ");
            put_line(line.p, line.n - 1);
            in_options = true;
        } else if (indent == 2 && line.p[2] == '-') {
            if (!in_options)
                puts(".SS Options");
            in_options = true;
            put_option(line);
        } else {
            if (indent == 0 && in_options) {
                puts(".PP");
                in_options = false;
            }
            put_line(line.p + indent, line.n - indent);
        }
    }
}

static void put_head(const char *name, const char *summary)
{
    printf(
        ".\\\" Made of the command's own help.\n.TH %s 1 \"\" \"tracelake %s\" \"User Commands\"\n",
        name, TL_VERSION);
    printf(".SH NAME\n");
    put(name, strlen(name));
    fputs(" \\- ", stdout);
    put_line(summary, strlen(summary));
}

static void put_end(void)
{
    puts(".SH ENVIRONMENT\n"
         ".TP\n\\fBTRACELAKE_SERVER\\fR\nthe server's URL, or several with commas, in place of "
         "\\-\\-server\n"
         ".TP\n\\fBTRACELAKE_TOKEN\\fR\nfile with the access token\n"
         ".TP\n\\fBTRACELAKE_CAFILE\\fR, \\fBTRACELAKE_FINGERPRINT\\fR\n"
         "what a server is known by with https\n"
         ".TP\n\\fBTRACELAKE_CERT\\fR, \\fBTRACELAKE_KEY\\fR\nwhat the server knows us by\n"
         ".TP\n\\fBTRACELAKE_TOKENS\\fR\nfile of tokens that \\(lqtracelake token\\(rq changes\n"
         ".SH \"EXIT STATUS\"\n"
         "0 done; 1 the input was bad; 2 the arguments make no sense; 3 the server cannot be "
         "reached "
         "or refused.\n"
         ".SH \"SEE ALSO\"");
    size_t n;
    const struct tl_command *const commands = tl_commands(&n);
    fputs("tracelake(1)", stdout);
    for (size_t i = 0; i < n; i++)
        printf(", tracelake\\-%s(1)", commands[i].name);
    puts(", libtracelake(3)");
}

static void print_all(void)
{
    size_t n;
    const struct tl_command *const commands = tl_commands(&n);
    put_head("tracelake", "server for hardware instruction traces");
    puts(".SH SYNOPSIS\n.nf\ntracelake COMMAND \\fR[\\fIoptions\\fR]\n.fi\n.SH DESCRIPTION\n"
         "Rigs push raw trace while it is being captured; tracelake stores it without losing a "
         "byte,\n"
         "decodes it to every executed instruction, and serves any range of it to a browser "
         "timeline\n"
         "and to programs.\n.SH COMMANDS");
    for (size_t i = 0; i < n; i++) {
        printf(".TP\n\\fBtracelake\\-%s\\fR(1)\n", commands[i].name);
        put_line(commands[i].summary, strlen(commands[i].summary));
    }
    put_end();
}

void tl_manual_print(const struct tl_command *command)
{
    char name[64];
    if (!command) {
        print_all();
        return;
    }
    const char *help = command->help;
    snprintf(name, sizeof name, "tracelake-%s", command->name);
    put_head(name, command->summary);
    put_use(&help);
    put_body(help);
    put_end();
}
