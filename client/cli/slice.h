/* SPDX-License-Identifier: MIT */
/* A range of an STF file as a file of its own. */
#ifndef TL_CLI_SLICE_H
#define TL_CLI_SLICE_H

#include "cli/args.h"
#include "stf/writer.h"

/* Instructions of `path` into `out_path`, made as `options` says (`unchecked`); `*written` (may be
 * NULL): how many are in the file, 0 if there is none. What is wrong is said; returns the exit
 * status. */
int tl_cli_slice(const char *path, const char *out_path, const struct tl_arg_range *range,
                 const struct tl_stf_out_options *options, uint64_t *written);

#endif
