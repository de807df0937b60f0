/* SPDX-License-Identifier: MIT */
/*
 * Finds where the records of a damaged perf.data file continue. Thread-safe: no state.
 *
 * A place counts as the beginning of a record if a chain of TL_PERF_CHAIN records begins there,
 * each of a type that perf writes and of a size that is a multiple of 8 (that of a compressed
 * record may be any), or a shorter chain that ends exactly where the records end, or one that
 * contains an AUXTRACE record, whose fixed fields cannot appear by chance.
 *
 * Source: tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.
 */
#ifndef TL_PERF_SEARCH_H
#define TL_PERF_SEARCH_H

#include "perf/attr.h"

enum { TL_PERF_CHAIN = 4 };
/* Bytes that are sufficient to decide about a place. */
#define TL_PERF_CHAIN_MAX ((size_t)TL_PERF_CHAIN << 16)

enum tl_perf_found { TL_PERF_NO_RECORD, TL_PERF_RECORD, TL_PERF_MORE_NEEDED };

/*
 * Do records begin at in.p? `swap`: the file's byte order is the other one. `room`: bytes from
 * there to the end of the records, UINT64_MAX: unknown. With room == in.n the answer is never
 * TL_PERF_MORE_NEEDED.
 */
enum tl_perf_found tl_perf_search(bool swap, struct tl_bytes in, uint64_t room);

#endif
