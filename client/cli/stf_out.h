/* SPDX-License-Identifier: MIT */
/* One stream's flow items into one .zstf file. Not thread-safe. */
#ifndef TL_CLI_STF_OUT_H
#define TL_CLI_STF_OUT_H

#include "flow/item.h"

struct tl_cli_stf;

/* Make (or replace) the file. What STF has no record for is kept as comments. TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_cli_stf_new(struct tl_cli_stf **out, const char *path, struct tl_fail *fail);
TL_MUST_USE int tl_cli_stf_items(struct tl_cli_stf *out, const struct tl_item *items, size_t n);
/* Write the index; the file is complete. `*insns`: how many instructions it holds. */
TL_MUST_USE int tl_cli_stf_finish(struct tl_cli_stf *out, uint64_t *insns, struct tl_fail *fail);
void tl_cli_stf_free(struct tl_cli_stf *out);

#endif
