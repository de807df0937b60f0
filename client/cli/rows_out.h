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
/* The object of one, a line: what commands that change traces print for each. */
void tl_row_json(const struct tracelake_trace *trace);
/* Of a trace that is gone, or that may not be looked at: {"id":"run7"}. */
void tl_row_json_id(const char *trace);

#endif
