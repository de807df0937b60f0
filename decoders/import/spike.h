/* SPDX-License-Identifier: MIT */
/*
 * Logs of Spike, the RISC-V ISA simulator, as STF: what a model executed, to be compared with what
 * a core did. Both kinds of lines are read, `--log-commits` and `-l`; if a log has both, commits
 * count. Registers are read in the form of older versions, too (`x 5 0x…`). Not thread-safe. The
 * only I/O is reading the log.
 *
 * Source: riscv-isa-sim, commit log and execution log as printed by riscv/execute.cc, processor.cc.
 */
#ifndef TL_IMPORT_SPIKE_H
#define TL_IMPORT_SPIKE_H

#include "base/buf.h"
#include "base/err.h"
#include "import/model_input.h"

/* Does a file with these first bytes look like such a log? */
bool tl_spike_is(const char *first, size_t n);

/*
 * Append the instructions of a core as a plain STF stream: with registers written and stores' data,
 * and exceptions as far as the log tells them. An instruction that `-l` tells once with "Executed N
 * times" stands there as often: 2^17 further times in a log, at most. Returns TL_BAD: it has no
 * instruction of this core; TL_NOMEM.
 */
TL_MUST_USE int tl_spike_read(struct tl_buf *out, struct tl_model_input *in, struct tl_fail *fail);

#endif
