/* SPDX-License-Identifier: MIT */
/* The place of a trace that is most worth looking at, as an address of the page. */
#ifndef TL_CLI_VIEWPLACE_H
#define TL_CLI_VIEWPLACE_H

#include "tracelake.h"

enum { TL_VIEW_ADDRESS = 1024, TL_VIEW_WHY = 256 };

struct tl_view_place {
    char address[TL_VIEW_ADDRESS]; /* "http://…/#/trace/ID?from=…" */
    char why[TL_VIEW_WHY]; /* a sentence about what is there; "": the whole trace is shown */
};

/*
 * Choose it: a fault in whose handling the trace ends, else the call that took longest compared
 * with the other calls of its function, else all of it. Where the server does not answer, all.
 */
void tl_view_place(struct tl_view_place *out, struct tracelake *lake, const char *url,
                   const struct tracelake_trace *trace);
/* All of a trace. */
void tl_view_place_whole(struct tl_view_place *out, const char *url, const char *id);
/* Instructions [from, to) of a stream. */
void tl_view_place_range(struct tl_view_place *out, const char *url, const char *id,
                         const char *stream, uint64_t from, uint64_t to);
/* A stream: the whole of it, or, if `at` is no TRACELAKE_END, what is around an instruction, with
 * the cursor there. */
void tl_view_place_at(struct tl_view_place *out, const char *url, const char *id,
                      const char *stream, uint64_t at);

#endif
