/* SPDX-License-Identifier: MIT */
/*
 * Writes manual pages. Manual pages in man(7) macros, from the same rows as help: packages always
 * have pages that fit the executable in them.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

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

static void put_usage(const struct tl_command *command)
{
    puts(".SH SYNOPSIS\n.nf");
    for (const char *line = command->usage; *line;) {
        const size_t n = strcspn(line, "\n");
        printf("tracelake %s ", command->name);
        put_line(line, n);
        line += n + (line[n] == '\n');
    }
    puts(".fi");
}

static void put_about(const struct tl_command *command)
{
    const char *text = command->about ? command->about : command->summary;
    puts(".SH DESCRIPTION");
    while (*text) {
        const size_t n = strcspn(text, "\n"), indent = strspn(text, " ");
        if (indent)
            puts(".br");
        put_line(text + indent, n - indent);
        text += n + (text[n] == '\n');
        if (*text && *text != ' ')
            puts(".PP");
    }
}

/* Long ones may be broken in front of each optional part. */
static void put_unit(const char *unit)
{
    while (*unit) {
        const char *const part = strstr(unit + 1, "[,");
        const size_t n = part ? (size_t)(part - unit) : strlen(unit);
        put(unit, n);
        unit += n;
        if (part)
            fputs("\\:", stdout);
    }
}

static void put_option(const struct tl_option *option)
{
    fputs(".TP\n\\fB", stdout);
    if (option->letter)
        printf("\\-%c, ", option->letter);
    fputs("\\-\\-", stdout);
    put(option->name, strlen(option->name));
    if (option->unit) {
        putchar(' ');
        put_unit(option->unit);
    }
    puts("\\fR");
    put_line(option->help, strlen(option->help));
}

static void put_options(void *context, const struct tl_option *options)
{
    bool titled = false;
    for (; !tl_option_ends(options); options++)
        if (!options->name) {
            fputs(".SS ", stdout);
            put_line(options->help, strlen(options->help) - 1);
            titled = true;
        } else if (options->help) {
            if (!titled)
                puts(".SS Options");
            titled = true;
            put_option(options);
        }
}

static void put_head(const char *name, const char *summary)
{
    printf(".\\\" Made of the command's own table.\n.TH %s 1 \"\" \"tracelake %s\" \"User "
           "Commands\"\n",
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
    snprintf(name, sizeof name, "tracelake-%s", command->name);
    put_head(name, command->summary);
    put_usage(command);
    put_about(command);
    tl_command_options(command, put_options, NULL);
    put_end();
}
