/* SPDX-License-Identifier: MIT */
/*
 * A packet listing as the reference's ptdump prints it, for comparison and for scripts that read
 * it. Its options are ptdump's; what they mean is in its own manual.
 */
#ifndef TL_PT_PTDUMP_H
#define TL_PT_PTDUMP_H

#include "base/buf.h"
#include "base/bytes.h"
#include "pt/config.h"

struct tl_pt_dump_options {
    bool no_sync, quiet, no_pad, no_timing, no_cyc, no_offset, raw, last_ip, exec_mode;
    bool time, tcal, time_delta, no_tcal, no_wall_clock, keep_tcal_on_ovf;
};

/*
 * Read option argv[*i] (and its value) of ptdump into `options` or `config`, and move *i behind
 * it. TL_USAGE: there is no such option, or its value is none.
 */
TL_MUST_USE int tl_pt_dump_option(struct tl_pt_dump_options *options, struct tl_pt_config *config,
                                  int argc, char **argv, int *i);

/* Append the listing of a whole capture. TL_NOMEM. */
TL_MUST_USE int tl_pt_dump(struct tl_buf *out, const struct tl_pt_dump_options *options,
                           const struct tl_pt_config *config, struct tl_bytes trace);

#endif
