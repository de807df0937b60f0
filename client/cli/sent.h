/* SPDX-License-Identifier: MIT */
/* What became of a capture that was sent. */
#ifndef TL_CLI_SENT_H
#define TL_CLI_SENT_H

#include "tracelake.h"

enum tl_sent_form {
    TL_SENT_TEXT, /* for people */
    TL_SENT_JSON, /* the trace's object, a line */
    TL_SENT_QUIET /* nothing */
};

/* Wait for the decode (if `wait`), say what came out of it; the exit status. `input`: its file. */
int tl_sent_report(struct tracelake *lake, const char *trace, const char *input, bool wait,
                   enum tl_sent_form form);

#endif
