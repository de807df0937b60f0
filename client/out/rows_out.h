/* SPDX-License-Identifier: MIT */
/* Output of traces: as a table, in full, or as JSON. */
#ifndef TL_OUT_ROWS_OUT_H
#define TL_OUT_ROWS_OUT_H

#include "tracelake.h"

#include <stdbool.h>

/* Do the stream's positions count instructions? Otherwise records of software trace. */
bool tl_counts_insns(const struct tracelake_stream *stream);
/* Print one line per trace below a header line. */
void tl_rows_table(const struct tracelake_trace *const *traces, size_t n);
/* Print all details of one trace. */
void tl_rows_full(const struct tracelake_trace *trace);
/* Print a JSON array of objects. */
void tl_rows_json(const struct tracelake_trace *const *traces, size_t n);
/* Print one object on a line, as commands that change traces do for each. */
void tl_row_json(const struct tracelake_trace *trace);
/* Print the object of a trace that was removed or cannot be read: {"id":"run7"}. */
void tl_row_json_id(const char *trace);

#endif
