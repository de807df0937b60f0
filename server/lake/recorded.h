/* SPDX-License-Identifier: MIT */
/*
 * The memory contents that a capture itself describes, of the processes it traced. A client that
 * pushes perf.data finds their code and puts its placement into the setup; a page or a plain HTTP
 * client only pushes the bytes. Thread-safe.
 */
#ifndef TL_LAKE_RECORDED_H
#define TL_LAKE_RECORDED_H

#include "lake/lakeint.h"

/*
 * The setup of a complete trace, with images as described by its raw bytes, identified by build ID
 * where one was recorded; files of this machine are not used. Appended to `text`, with a NUL.
 * TL_NOTFOUND: the setup already has images, or nothing is recorded; TL_IO, TL_NOMEM; TL_CANCELLED:
 * the generation is abandoned.
 */
TL_MUST_USE int tl_recorded_setup(const struct tl_gen *gen, struct tl_buf *text,
                                  struct tl_fail *fail);

#endif
