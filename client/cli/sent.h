/* SPDX-License-Identifier: MIT */
/* What became of a capture that was sent, for people. */
#ifndef TL_CLI_SENT_H
#define TL_CLI_SENT_H

#include "tracelake.h"

/* Wait for the decode (if `wait`), say what came out of it; the exit status. `input`: its file. */
int tl_sent_report(struct tracelake *lake, const char *trace, const char *input, bool wait,
                   bool quiet);

#endif
