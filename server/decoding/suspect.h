/* SPDX-License-Identifier: MIT */
/*
 * Captures that end the server: one that did so twice, with no checkpoint in between, is not begun
 * a third time by itself, or the server would never stay up.
 *
 * While a trace has its turn to be decoded, a file of the backend, `turns`, has its name. So a
 * server finds there whose turns it was when the last one ended without being stopped. A crash
 * counts against the trace in whose turn it was; if it was in a thread that helps all of them, or
 * the process was killed from outside, as when memory runs short, against all of them: there, only
 * against those that had already computed for TL_SUSPECT_CPU_NS, since a trace does not use up
 * memory at once. If one of them was suspect before, it was that one: suspects have their turns one
 * after the other. A trace that only waits, or is idle, is none.
 *
 * One that has decoded all bytes that have arrived, or has stored a checkpoint, is suspect no more.
 * Neither a stopped server nor a machine that went down counts.
 *
 * Records cost two small writes per turn, which are not synced; if they fail, an end is not
 * noticed. tl_lake_watch_crashes() tells whose turn it was. In a store shared by servers there are
 * none. The functions about a decode job are for its thread, without any lock held, unless
 * stated otherwise.
 */
#ifndef TL_DECODING_SUSPECT_H
#define TL_DECODING_SUSPECT_H

#include "base/err.h"

#define TL_SUSPECT_ENDS   2 /* of the server: then it is not begun again */
#define TL_SUSPECT_CPU_NS INT64_C(100000000)

struct tl_decode_job;
struct tl_lake;

/* Read what an earlier process left, before traces are revived, and begin records. Best effort. */
void tl_suspects_open(struct tl_lake *lake);
/* All unfinished traces have been revived: forget those that are not among them. */
void tl_suspects_settle(struct tl_lake *lake);
/* No job runs any more: the records stay as they are. */
void tl_suspects_close(struct tl_lake *lake);
/* Its generation was unfinished when the server started; before its first turn. */
void tl_suspect_revive(struct tl_decode_job *job);
/* TL_LIMIT: it must not be begun; `fail` says what to do. */
TL_MUST_USE int tl_suspect_check(const struct tl_decode_job *job, struct tl_fail *fail);
/* Its turn begins, which a suspect's may have to wait for, without the job's slot; it ends, on the
 * same thread. Both by the decode job, once job->turns is set. */
void tl_suspect_enter(struct tl_decode_job *job);
void tl_suspect_leave(struct tl_decode_job *job);
/* It has progressed; within a turn. */
void tl_suspect_clear(struct tl_decode_job *job);
/* It is being freed. */
void tl_suspect_forget(struct tl_decode_job *job);

#endif
