/* SPDX-License-Identifier: MIT */
/*
 * STF in the forms that other simulators and tools read:
 *
 *   champsim   ChampSim's records (champsim.h)
 *   bb         basic-block vectors, a line an interval, as SimPoint 3.2 reads them
 * (regions/vectors.h) pc         the address of each instruction, 16 hex digits a line
 *
 * Takes plain STF by push, writes to a file of the caller's. Not thread-safe.
 */
#ifndef TL_CLI_EXPORT_H
#define TL_CLI_EXPORT_H

#include "stf/insns.h"

#include <stdio.h>

enum tl_export { TL_EXPORT_CHAMPSIM, TL_EXPORT_BB, TL_EXPORT_PC };

/* "champsim", "bb" or "pc": TL_OK, or TL_USAGE. */
TL_MUST_USE int tl_export_parse(const char *name, enum tl_export *out);

struct tl_exporter;

/* `interval`: instructions of a vector, for bb. TL_NOMEM, TL_USAGE. */
TL_MUST_USE int tl_exporter_new(struct tl_exporter **out, enum tl_export format, uint64_t interval,
                                FILE *file);
void tl_exporter_free(struct tl_exporter *exporter); /* NULL is fine */
/* TL_BAD: it is not STF; TL_IO: the file cannot be written; TL_NOMEM. */
TL_MUST_USE int tl_exporter_push(struct tl_exporter *exporter, struct tl_bytes stf,
                                 struct tl_fail *fail);
TL_MUST_USE int tl_exporter_finish(struct tl_exporter *exporter, struct tl_fail *fail);

/* All of a source that is read. What is in front of an error is written. */
TL_MUST_USE int tl_export_source(const struct tl_stf_source *source, enum tl_export format,
                                 uint64_t interval, FILE *file, struct tl_fail *fail);

#endif
