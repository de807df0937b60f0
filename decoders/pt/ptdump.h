/* SPDX-License-Identifier: MIT */
/*
 * Packet listing in the format of the reference's ptdump, for comparison and for scripts that parse
 * it. The options are ptdump's; see its manual.
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
 * Parse ptdump option argv[*i] (and its value) into `options` or `config` and advance *i past it.
 * Returns TL_USAGE: unknown option or invalid value.
 */
TL_MUST_USE int tl_pt_dump_option(struct tl_pt_dump_options *options, struct tl_pt_config *config,
                                  int argc, char **argv, int *i);

/* Append the listing of a complete capture. Returns TL_NOMEM. */
TL_MUST_USE int tl_pt_dump(struct tl_buf *out, const struct tl_pt_dump_options *options,
                           const struct tl_pt_config *config, struct tl_bytes trace);

#endif
