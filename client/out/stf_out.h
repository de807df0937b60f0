/* SPDX-License-Identifier: MIT */
/* Writes one stream's flow items to one .zstf file. Not thread-safe. */
#ifndef TL_OUT_STF_OUT_H
#define TL_OUT_STF_OUT_H

#include "flow/item.h"
#include "stf/zstf_pool.h"

struct tl_cli_stf;

/* Create the compressor pool shared by all files. */
TL_MUST_USE int tl_cli_stf_pool(struct tl_zstf_pool **out, unsigned threads);

/*
 * Begin a file, which gets its name when it is finished; it must not be `input`. Items that STF has
 * no record for are kept as comments; `isa` is used if nothing else gives the instruction set.
 * `pool`, made by tl_cli_stf_pool(), and `fail`, which describes failures of this and later calls,
 * are borrowed for the lifetime of the object. TL_IO, TL_NOMEM, TL_USAGE.
 */
TL_MUST_USE int tl_cli_stf_new(struct tl_cli_stf **out, const char *path, const char *input,
                               enum tl_isa isa, struct tl_zstf_pool *pool, struct tl_fail *fail);
/* Append items. May also write chunks of other files, and then return their errors. */
TL_MUST_USE int tl_cli_stf_items(struct tl_cli_stf *out, const struct tl_item *items, size_t n);
/* Write the index and complete the file. `*insns`: number of instructions in it. */
TL_MUST_USE int tl_cli_stf_finish(struct tl_cli_stf *out, uint64_t *insns);
void tl_cli_stf_free(struct tl_cli_stf *out);

#endif
