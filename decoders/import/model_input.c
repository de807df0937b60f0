/* SPDX-License-Identifier: MIT */
/*
 * Lines that are not understood are counted and told once, with the first one's number: a log of
 * millions of lines in a new form would fill the terminal otherwise.
 */
#include "import/model_input.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void tl_model_leave_out(struct tl_model_input *in, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    in->is_partial = true;
    tl_say(in->warn, in->context, "%.300s: %s", in->name, text);
}

const char *tl_model_next_line(struct tl_model_input *in)
{
    if (!fgets(in->text, sizeof in->text, in->from))
        return NULL;
    in->line++;
    const size_t n = strlen(in->text);
    if (n > 0 && in->text[n - 1] == '\n')
        return in->text;
    tl_model_leave_out(
        in,
        feof(in->from) ? "line %" PRIu64 ": the last line has no end, the log may be "
                         "cut there; the line is left out"
                       : "line %" PRIu64 ": is too long or no text; all from here on is left out",
        in->line);
    return NULL;
}

void tl_model_mark_strange(struct tl_model_input *in)
{
    if (in->n_strange++ == 0)
        in->first_strange = in->line;
}

void tl_model_end_lines(struct tl_model_input *in)
{
    if (in->n_strange > 0)
        tl_model_leave_out(in,
                           "line %" PRIu64 ": is not understood, nor are %" PRIu64
                           " further ones; they are left out",
                           in->first_strange, in->n_strange - 1);
}
