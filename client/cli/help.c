/* SPDX-License-Identifier: MIT */
/*
 * Help of a command, laid out from its row and its options. Lines are broken here, so that the
 * tables hold sentences and not their layout.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 96,      /* columns of a line */
    INDENT = 2,      /* of an option */
    CONTINUED = 8,   /* of the further lines of an option that is wider than a line */
    TEXT_MIN = 22,   /* column of the options' texts, if all options are short */
    TEXT_MAX = 25,   /* … otherwise; options that are longer have their text in the next line */
    USAGE_WIDTH = 7, /* "usage: " */
};

/* Columns of UTF-8 text: all characters of these texts are one wide. */
static size_t columns_of(const char *text, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

/* Length of the next piece that is not broken: a word with the blanks before it, or a part of one
 * that begins with "[," or "|". */
static size_t piece_of(const char *text)
{
    size_t n = strspn(text, " ");
    if (text[n])
        n++;
    while (text[n] && text[n] != ' ' && strncmp(text + n, "[,", 2) != 0)
        n++;
    return n;
}

/*
 * Print `n` bytes of text from column `at`, further lines indented by `indent`. Returns the column
 * reached.
 */
static size_t put_text(const char *text, size_t n, size_t at, size_t indent)
{
    while (n) {
        size_t piece = piece_of(text);
        piece = piece < n ? piece : n;
        if (at + columns_of(text, piece) > WIDTH && at > indent) {
            const size_t blanks = strspn(text, " ");
            printf("\n%*s", (int)indent, "");
            at = indent;
            text += blanks;
            n -= blanks;
            piece -= blanks;
        }
        fwrite(text, 1, piece, stdout);
        at += columns_of(text, piece);
        text += piece;
        n -= piece;
    }
    return at;
}

static void put_usage(const struct tl_command *command)
{
    const char *line = command->usage;
    for (const char *lead = "usage:"; *line; lead = "") {
        const size_t n = strcspn(line, "\n");
        const int at = printf("%-*stracelake %s ", USAGE_WIDTH, lead, command->name);
        put_text(line, n, (size_t)at, USAGE_WIDTH + 4);
        putchar('\n');
        line += n + (line[n] == '\n');
    }
}

static void put_about(const char *text)
{
    while (text && *text) {
        const size_t n = strcspn(text, "\n");
        put_text(text, n, 0, strspn(text, " ") ? 4 : 0);
        putchar('\n');
        text += n + (text[n] == '\n');
    }
}

/* Print "--output FILE" with its letter. Returns its columns. */
static size_t head_of(const struct tl_option *option, char out[static 256])
{
    const char letter[] = {'-', option->letter, ',', ' ', 0};
    snprintf(out, 256, "%s--%s%s%s", option->letter ? letter : "", option->name,
             option->unit ? " " : "", option->unit ? option->unit : "");
    return columns_of(out, strlen(out));
}

/* The column of the texts: behind the widest option of those that do not get a line of their own.
 */
static size_t text_column(const struct tl_option *options)
{
    char head[256];
    size_t column = TEXT_MIN;
    for (; !tl_option_ends(options); options++) {
        const size_t needs =
            options->name && options->help ? INDENT + head_of(options, head) + 1 : 0;
        if (needs > column && needs <= TEXT_MAX)
            column = needs;
    }
    return column;
}

static void put_option(const struct tl_option *option, size_t column)
{
    char head[256];
    (void)head_of(option, head);
    printf("%*s", INDENT, "");
    size_t at = put_text(head, strlen(head), INDENT, CONTINUED);
    if (at >= column) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", (int)(column - at), "");
    put_text(option->help, strlen(option->help), column, column);
    putchar('\n');
}

void tl_help_print(const char *name, const struct tl_option *options)
{
    const struct tl_command *const command = tl_command_find(name);
    const size_t column = text_column(options);
    put_usage(command);
    put_about(command->about);
    for (; !tl_option_ends(options); options++)
        if (!options->name)
            printf("\n%s\n", options->help);
        else if (options->help)
            put_option(options, column);
}
