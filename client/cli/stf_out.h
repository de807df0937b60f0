/* SPDX-License-Identifier: MIT */
/* One stream's flow items into one .zstf file. Not thread-safe. */
#ifndef TL_CLI_STF_OUT_H
#define TL_CLI_STF_OUT_H

#include "flow/item.h"
#include "stf/zstf_pool.h"

struct tl_cli_stf;

/* What compresses the chunks of all files. */
TL_MUST_USE int tl_cli_stf_pool(struct tl_zstf_pool **out, unsigned threads);

/*
 * Begin a file, which gets its name when it is finished; it may not be `input`. What STF has no
 * record for is kept as comments; `isa` is told where nothing else tells it. `pool`, made by
 * tl_cli_stf_pool(), and `fail`, which tells what is wrong with this or any later call, are
 * borrowed for the object's life. TL_IO, TL_NOMEM, TL_USAGE.
 */
TL_MUST_USE int tl_cli_stf_new(struct tl_cli_stf **out, const char *path, const char *input,
                               enum tl_isa isa, struct tl_zstf_pool *pool, struct tl_fail *fail);
/* Chunks of other files may be written, too: results are theirs as well. */
TL_MUST_USE int tl_cli_stf_items(struct tl_cli_stf *out, const struct tl_item *items, size_t n);
/* Write the index; the file is complete. `*insns`: how many instructions it holds. */
TL_MUST_USE int tl_cli_stf_finish(struct tl_cli_stf *out, uint64_t *insns);
void tl_cli_stf_free(struct tl_cli_stf *out);

#endif
