/* SPDX-License-Identifier: MIT */
/*
 * Instruction listing in the format of the reference's ptxed without disassembly: instruction
 * pointers, events, errors. The options are ptxed's; see its manual.
 */
#ifndef TL_PT_PTXED_H
#define TL_PT_PTXED_H

#include "base/buf.h"
#include "pt/insn.h"

struct tl_pt_xed_options {
    struct tl_pt_insn_options insns;
    bool quiet, offset, time, event_time, event_ip;
    bool raw_insn, no_inst; /* print instruction bytes; omit instructions */
    bool by_insn;           /* list as ptxed's instruction decoder does, not its block decoder */
    bool show_blocks;       /* block decoder: print one line per run of instructions */
    bool insn_keep_tcal, block_keep_tcal; /* keep_tcal_on_overflow for each of the two decoders */
    bool stat, stat_insn, stat_blocks;
    bool resync_on_error;
};

/* As tl_pt_dump_option(); files given by `--raw` and `--elf` are added to `image`. */
TL_MUST_USE int tl_pt_xed_option(struct tl_pt_xed_options *options, struct tl_pt_config *config,
                                 struct tl_image *image, int argc, char **argv, int *i,
                                 struct tl_fail *fail);

/* Append the listing of a complete capture. `image` is frozen. Returns TL_NOMEM. */
TL_MUST_USE int tl_pt_xed(struct tl_buf *out, const struct tl_pt_xed_options *options,
                          const struct tl_pt_config *config, const struct tl_image *image,
                          struct tl_bytes trace);

#endif
