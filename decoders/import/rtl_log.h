/* SPDX-License-Identifier: MIT */
/*
 * Logs of simulated RISC-V cores, one instruction a line, as the tracers of Ibex, CV32E40P and
 * RI5CY write them (trace_core_*.log), as STF: what the RTL executed, to be compared with a trace
 * or a model. Not thread-safe. The only I/O is reading the log.
 *
 * Source: Ibex and CV32E40P user manuals, "Tracer".
 */
#ifndef TL_IMPORT_RTL_LOG_H
#define TL_IMPORT_RTL_LOG_H

#include "base/buf.h"
#include "base/err.h"
#include "import/model_input.h"

/* Does a file with these first bytes look like such a log? It begins with the names of columns. */
bool tl_rtl_log_is(const char *first, size_t n);

/*
 * Append the instructions as a plain STF stream, with registers written and stores' data. Such a
 * log is of one core: the input's number is not used. It tells nothing of traps. Returns TL_BAD
 * with the line in `fail`; TL_NOMEM.
 */
TL_MUST_USE int tl_rtl_log_read(struct tl_buf *out, struct tl_model_input *in,
                                struct tl_fail *fail);

#endif
