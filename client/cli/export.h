/* SPDX-License-Identifier: MIT */
/*
 * STF in the forms that other simulators and tools read:
 *
 *   champsim   ChampSim's records: champsim.h
 *   bb         basic-block vectors, a line an interval, as SimPoint reads them: regions/vectors.h
 *   pc         the address of each instruction, 16 hex digits a line
 *   disasm     number from 0, address, encoding, text, function and line of each instruction
 *
 * Takes plain STF by push, writes to a file of the caller's. Not thread-safe.
 */
#ifndef TL_CLI_EXPORT_H
#define TL_CLI_EXPORT_H

#include "cli/sources.h"
#include "image/image.h"
#include "stf/insns.h"

#include <stdio.h>

enum tl_export { TL_EXPORT_CHAMPSIM, TL_EXPORT_BB, TL_EXPORT_PC, TL_EXPORT_DISASM };

/* "champsim", "bb", "pc" or "disasm": TL_OK, or TL_USAGE. */
TL_MUST_USE int tl_export_parse(const char *name, enum tl_export *out);

struct tl_export_options {
    enum tl_export format;
    uint64_t interval;            /* bb: instructions of a vector */
    const struct tl_image *image; /* disasm: has the functions, borrowed; NULL: there are none */
    struct tl_sources *sources;   /* disasm: has the source lines, the same */
};

struct tl_exporter;

/* TL_NOMEM, TL_USAGE. */
TL_MUST_USE int tl_exporter_new(struct tl_exporter **out, const struct tl_export_options *options,
                                FILE *file);
void tl_exporter_free(struct tl_exporter *exporter); /* NULL is fine */
/* TL_BAD: it is not STF; TL_IO: the file cannot be written; TL_NOMEM. */
TL_MUST_USE int tl_exporter_push(struct tl_exporter *exporter, struct tl_bytes stf,
                                 struct tl_fail *fail);
TL_MUST_USE int tl_exporter_finish(struct tl_exporter *exporter, struct tl_fail *fail);

/* All of a source that is read. What is in front of an error is written. */
TL_MUST_USE int tl_export_source(const struct tl_stf_source *source,
                                 const struct tl_export_options *options, FILE *file,
                                 struct tl_fail *fail);

#endif
