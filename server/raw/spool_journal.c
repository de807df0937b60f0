/* SPDX-License-Identifier: MIT */
/*
 * What the spool reports. Its threads only pass values, so that no lock is held while the journal
 * is written.
 */
#include "raw/spool_journal.h"

#define SLOW_NS UINT64_C(1000000000) /* duration of a commit that is logged */

void tl_spool_report_refused(const char *name, uint64_t durable, const char *why)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_ERROR, "raw bytes refused by the disk");
    tl_journal_text(&line, "trace", name);
    tl_journal_number(&line, "durable", durable);
    tl_journal_text(&line, "why", why);
    tl_journal_end(&line);
}

void tl_spool_report_slow(struct tl_journal_limit *limit, uint64_t ns)
{
    struct tl_journal_line line;
    unsigned left_out;
    if (ns < SLOW_NS || !tl_journal_may(limit, &left_out))
        return;
    tl_journal_begin(&line, TL_JOURNAL_WARNING, "disk slow: a group commit took long");
    tl_journal_seconds(&line, "seconds", ns);
    tl_journal_end(&line);
}

void tl_spool_report_full(bool full, uint64_t left, uint64_t min_free)
{
    struct tl_journal_line line;
    if (full)
        tl_journal_begin(&line, TL_JOURNAL_ERROR, "disk full: no more trace is taken");
    else
        tl_journal_begin(&line, TL_JOURNAL_INFO, "disk has room: trace is taken again");
    tl_journal_number(&line, "free_bytes", left);
    tl_journal_number(&line, "min_free_bytes", min_free);
    tl_journal_end(&line);
}
