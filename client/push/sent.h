/* SPDX-License-Identifier: MIT */
/* Report on a capture that was sent. */
#ifndef TL_PUSH_SENT_H
#define TL_PUSH_SENT_H

#include "setup/setup.h"
#include "tracelake.h"

enum tl_sent_form {
    TL_SENT_TEXT, /* human-readable */
    TL_SENT_JSON, /* the trace's object on one line */
    TL_SENT_QUIET /* nothing */
};

/*
 * Wait for the decode (if `wait`) and report the result; returns the exit status. `input`: name of
 * the capture's file. `setup`: the capture's, whose sources without any trace are reported, too.
 */
int tl_sent_report(struct tracelake *lake, const char *trace, const char *input,
                   const struct tl_setup *setup, bool wait, enum tl_sent_form form);

#endif
