/* SPDX-License-Identifier: MIT */
/*
 * An instruction listing as the reference's ptxed prints it without disassembly: instruction
 * pointers, events, errors. Its options are ptxed's; what they mean is in its own manual.
 */
#ifndef TL_PT_PTXED_H
#define TL_PT_PTXED_H

#include "base/buf.h"
#include "pt/insn.h"

struct tl_pt_xed_options {
    struct tl_pt_insn_options insns;
    bool quiet, offset, time, event_time, event_ip;
    bool raw_insn, no_inst; /* an instruction's bytes, unless no instructions are wanted */
    bool by_insn;           /* as the instruction decoder lists, not as the block decoder … */
    bool show_blocks;       /* … whose runs of instructions have a line each */
    bool insn_keep_tcal, block_keep_tcal; /* keep_tcal_on_overflow of each of both */
    bool stat, stat_insn, stat_blocks;
    bool resync_on_error;
};

/* As tl_pt_dump_option(); files of `--raw` and `--elf` are added to `image`. */
TL_MUST_USE int tl_pt_xed_option(struct tl_pt_xed_options *options, struct tl_pt_config *config,
                                 struct tl_image *image, int argc, char **argv, int *i,
                                 struct tl_fail *fail);

/* Append the listing of a whole capture. `image` is frozen. TL_NOMEM. */
TL_MUST_USE int tl_pt_xed(struct tl_buf *out, const struct tl_pt_xed_options *options,
                          const struct tl_pt_config *config, const struct tl_image *image,
                          struct tl_bytes trace);

#endif
