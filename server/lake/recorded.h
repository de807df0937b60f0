/* SPDX-License-Identifier: MIT */
/*
 * What a capture itself says of the memory of the processes that it traced. A client that pushes
 * perf.data looks for their code and says in the setup what lay where; a page or a plain HTTP
 * client pushes the bytes alone. Thread-safe.
 */
#ifndef TL_LAKE_RECORDED_H
#define TL_LAKE_RECORDED_H

#include "lake/lakeint.h"

/*
 * The setup of a complete trace with images as its raw bytes tell them, by build ID where one was
 * recorded; no file of this machine is looked at. Appended to `text`, with a NUL. TL_NOTFOUND: it
 * has images already, or nothing is recorded; TL_IO, TL_NOMEM; TL_CANCELLED: the generation is
 * abandoned.
 */
TL_MUST_USE int tl_recorded_setup(const struct tl_gen *gen, struct tl_buf *text,
                                  struct tl_fail *fail);

#endif
