/* SPDX-License-Identifier: MIT */
/*
 * STF in the formats that other simulators and tools read:
 *
 *   champsim   ChampSim's records: champsim.h
 *   bb         basic-block vectors, a line per interval, as SimPoint reads them: regions/vectors.h
 *   pc         the address of each instruction, 16 hex digits per line
 *   disasm     index from 0, address, encoding, text, function and line of each instruction
 *
 * Accepts plain STF by push, writes to the caller's file. Not thread-safe.
 */
#ifndef TL_OUT_EXPORT_H
#define TL_OUT_EXPORT_H

#include "image/image.h"
#include "out/sources.h"
#include "stf/insns.h"

#include <stdio.h>

enum tl_export { TL_EXPORT_CHAMPSIM, TL_EXPORT_BB, TL_EXPORT_PC, TL_EXPORT_DISASM };

/* Parse "champsim", "bb", "pc" or "disasm": TL_OK, or TL_USAGE. */
TL_MUST_USE int tl_export_parse(const char *name, enum tl_export *out);

struct tl_export_options {
    enum tl_export format;
    uint64_t interval;            /* bb: instructions per vector */
    const struct tl_image *image; /* disasm: symbols for function names, borrowed; NULL: none */
    struct tl_sources *sources;   /* disasm: source lines, borrowed; NULL: none */
};

struct tl_exporter;

/* TL_NOMEM, TL_USAGE. */
TL_MUST_USE int tl_exporter_new(struct tl_exporter **out, const struct tl_export_options *options,
                                FILE *file);
void tl_exporter_free(struct tl_exporter *exporter); /* accepts NULL */
/* TL_BAD: not STF; TL_IO: the file cannot be written; TL_NOMEM. */
TL_MUST_USE int tl_exporter_push(struct tl_exporter *exporter, struct tl_bytes stf,
                                 struct tl_fail *fail);
TL_MUST_USE int tl_exporter_finish(struct tl_exporter *exporter, struct tl_fail *fail);

/* Export a whole source. Everything before an error is written. */
TL_MUST_USE int tl_export_source(const struct tl_stf_source *source,
                                 const struct tl_export_options *options, FILE *file,
                                 struct tl_fail *fail);

#endif
