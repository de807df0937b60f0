/* SPDX-License-Identifier: MIT */
/* Journal lines about the disk of the spool. Thread-safe. */
#ifndef TL_RAW_SPOOL_JOURNAL_H
#define TL_RAW_SPOOL_JOURNAL_H

#include "base/journal.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a capture after `durable` were rejected. */
void tl_spool_report_refused(const char *name, uint64_t durable, const char *why);
/* A group commit took `ns`: a line if that is a second or more, and `limit` permits. */
void tl_spool_report_slow(struct tl_journal_limit *limit, uint64_t ns);
/* No more trace is accepted (`full`), or is again. */
void tl_spool_report_full(bool full, uint64_t left, uint64_t min_free);

#endif
