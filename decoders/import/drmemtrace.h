/* SPDX-License-Identifier: MIT */
/*
 * Traces of DynamoRIO's drmemtrace, of programs for AArch64 and x86, as STF: instructions that a
 * thread executed, to be compared with a trace of hardware. Records have 12 bytes: type 2, size 2,
 * value 8. Not thread-safe. The only I/O is reading the file, which must be unpacked.
 *
 * Source: DynamoRIO, drcachesim, "Trace Format"; trace_entry.h, version 7.
 */
#ifndef TL_IMPORT_DRMEMTRACE_H
#define TL_IMPORT_DRMEMTRACE_H

#include "base/buf.h"
#include "base/err.h"
#include "import/model_input.h"

/* Does a file with these first bytes look like such a trace? */
bool tl_drmemtrace_is(const char *first, size_t n);

/*
 * Append the instructions of a thread as a plain STF stream; number 0: that of the first one.
 * Data accesses are not taken: they have no contents. Where the kernel interrupted the thread, and
 * where a further window begins, the flow goes on at the next instruction. Behind a bad record, or
 * without the mark at its end, the trace is partial. Returns TL_BAD with the offset: no such trace,
 * or without encodings; TL_UNSUPPORTED: another kind of processor; TL_NOMEM.
 */
TL_MUST_USE int tl_drmemtrace_read(struct tl_buf *out, struct tl_model_input *in,
                                   struct tl_fail *fail);

#endif
