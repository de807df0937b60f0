/* SPDX-License-Identifier: MIT */
/*
 * What commands say on standard error, in one form: who, where, what. Text from outside is made
 * harmless for the terminal, and a progress line is out of the way first.
 */
#include "terminal/say.h"

#include "terminal/plain.h"
#include "terminal/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "tracelake: %s: ", command);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; see 'tracelake %s --help'\n", command);
    va_end(args);
    return TL_CLI_USAGE;
}

int tl_cli_empty_range(const char *command, uint64_t at)
{
    tl_cli_warn(command, "nothing is in the range %llu:%llu", (unsigned long long)at,
                (unsigned long long)at);
    return TL_CLI_BAD;
}

void tl_cli_behind(const char *where, uint64_t insn)
{
    if (insn == UINT64_MAX)
        tl_cli_warn(where, "behind: part of it is still being indexed");
    else
        tl_cli_warn(where, "behind: what is from instruction %llu on is still being indexed",
                    (unsigned long long)insn);
}

void tl_cli_warn(const char *where, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    tl_progress_hide();
    fputs("tracelake: ", stderr);
    if (where) {
        tl_print_plain(stderr, where, 0);
        fputs(": ", stderr);
    }
    tl_print_plain(stderr, n < 0 ? "no memory" : text, 0);
    fputc('\n', stderr);
    if (n >= 0)
        free(text);
}

int tl_cli_fail(const char *where, const struct tl_fail *fail)
{
    const size_t n = where ? strlen(where) : 0;
    tl_progress_hide();
    fputs("tracelake: ", stderr);
    /* Messages about opening a file already contain its name. */
    if (where && (strncmp(fail->text, where, n) != 0 || fail->text[n] != ':')) {
        tl_print_plain(stderr, where, 0);
        fputs(": ", stderr);
    }
    if (fail->offset != TL_NO_OFFSET && fail->offset != 0)
        fprintf(stderr, "offset 0x%llx: ", (unsigned long long)fail->offset);
    tl_print_plain(stderr, fail->text[0] ? fail->text : tl_err_name(fail->code), 0);
    fputc('\n', stderr);
    switch (fail->code) {
    case TL_USAGE:
        return TL_CLI_USAGE;
    case TL_UNREACHABLE:
    case TL_DENIED:
        return TL_CLI_REFUSED;
    default:
        return TL_CLI_BAD;
    }
}
