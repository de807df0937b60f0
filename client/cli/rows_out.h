/* SPDX-License-Identifier: MIT */
/* Traces printed: as a table, in full, or as JSON. */
#ifndef TL_CLI_ROWS_OUT_H
#define TL_CLI_ROWS_OUT_H

#include "tracelake.h"

#include <stdbool.h>

/* What a stream's positions count: instructions, or records of software trace. */
bool tl_counts_insns(const struct tracelake_stream *stream);
/* A line per trace under a headline. */
void tl_rows_table(const struct tracelake_trace *const *traces, size_t n);
/* All about one trace. */
void tl_rows_full(const struct tracelake_trace *trace);
/* A JSON array of objects. */
void tl_rows_json(const struct tracelake_trace *const *traces, size_t n);

#endif
