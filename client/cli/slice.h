/* SPDX-License-Identifier: MIT */
/* Extracts a range of an STF file into a file of its own. */
#ifndef TL_CLI_SLICE_H
#define TL_CLI_SLICE_H

#include "stf/writer.h"
#include "terminal/args.h"

/* Write instructions of `path` to `out_path` according to `options` (`unchecked`); `*written` (may
 * be NULL): their number in the file, 0 if there is no file. Errors are printed; returns the exit
 * status. */
int tl_cli_slice(const char *path, const char *out_path, const struct tl_arg_range *range,
                 const struct tl_stf_out_options *options, uint64_t *written);

#endif
