/* SPDX-License-Identifier: MIT */
/*
 * Is what a server has under a trace's name the capture that is to be pushed? Names and lengths do
 * not tell: every dump of a trace buffer is equally long.
 */
#ifndef TL_PUSH_COMPARE_H
#define TL_PUSH_COMPARE_H

#include "push/feed.h"
#include "tracelake.h"

/* Of one capture; zero-initialise, end with tl_compare_end(). */
struct tl_compare {
    struct tracelake_content *content;
    uint64_t at; /* how much of the input was read for it */
};

/*
 * Read the input up to the end of what the server has, and compare; an input that cannot be read
 * from its begin is only positioned there. If the trace is complete, the input must end there, too.
 * May be called again when the server has more. `keeps`: the input's bytes stay in its spool.
 *
 * TL_ARGS_GO: it is this capture so far, and the input is at `stored->durable`. Otherwise the exit
 * status, after reporting what is different and what to do.
 */
int tl_compare_input(struct tl_compare *compare, struct tl_feed *feed, const char *trace,
                     const struct tracelake_stored *stored, bool keeps);
void tl_compare_end(struct tl_compare *compare);

#endif
