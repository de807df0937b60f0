/* SPDX-License-Identifier: MIT */
/*
 * The lake's clock, by which traces age. It goes with monotonic time, from where it was when the
 * lake was last open. A wall clock that is wrong for a while, or at the start, does not move it.
 *
 * While the process runs, elapsed time is known: if the wall clock is stepped, that is a correction
 * of the clock, and nothing has become older by it. What elapsed while no server ran is known only
 * from the wall clock, except within one boot of the machine. Either difference is believed when it
 * has lasted an eighth of its size, at least ten minutes and at most a day; until then the clock is
 * not settled, and nothing should be removed because of its age. Small differences are followed
 * slowly.
 *
 * No I/O and no locks: the owner passes the times, and keeps the text of the state.
 */
#ifndef TL_LAKE_AGE_H
#define TL_LAKE_AGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_BOOT_BYTES      40 /* of what identifies a start of the machine */
#define TL_AGE_TEXT        4096
#define TL_AGE_CORRECTIONS 32
#define TL_AGE_EARLIEST    INT64_C(1577836800000000000) /* 2020: an earlier time is wrong */

/* Times of the machine, ns. */
struct tl_age_times {
    int64_t wall;             /* since 1970 */
    int64_t monotonic;        /* since some time in the past */
    int64_t uptime;           /* since the machine was started; < 0: not known */
    char boot[TL_BOOT_BYTES]; /* identifies that start, "": not known */
};

struct tl_age_correction {
    int64_t at; /* the lake's clock before it */
    int64_t by;
};

struct tl_age_clock {
    int64_t now, monotonic; /* the lake's clock at this monotonic time */
    int64_t away;           /* how much of the difference may have elapsed without a server */
    int64_t step, since;    /* difference being watched, and since when (monotonic); 0: none */
    bool watching;
    struct tl_age_correction corrections[TL_AGE_CORRECTIONS]; /* the latest ones, in order */
    size_t n_corrections;
    /* Of removals because of age: the lake's clock when their count began, and the count. */
    int64_t window;
    uint64_t removed;
};

enum tl_age_event {
    TL_AGE_SAME,
    TL_AGE_STEPPED, /* the wall clock differs: not settled from now on */
    TL_AGE_AGREES,  /* it agrees again */
    TL_AGE_BELIEVED /* the difference has lasted */
};

/* Begin, with the text of an earlier state (NULL or unintelligible: none). */
enum tl_age_event tl_age_begin(struct tl_age_clock *clock, const char *text,
                               const struct tl_age_times *times);
/* Look at the clocks, about once a second. `*by`: the difference of the wall clock, ns. */
enum tl_age_event tl_age_tick(struct tl_age_clock *clock, const struct tl_age_times *times,
                              int64_t *by);
/* The lake's clock, ns since 1970. */
int64_t tl_age_now(const struct tl_age_clock *clock, int64_t monotonic);
static inline bool tl_age_settled(const struct tl_age_clock *clock)
{
    return !clock->watching;
}
/* What has elapsed from `stamp`, a time of the lake's clock, to `now`; at least 0. */
int64_t tl_age_of(const struct tl_age_clock *clock, int64_t stamp, int64_t now);
/* Format the state. */
void tl_age_text(const struct tl_age_clock *clock, const struct tl_age_times *times,
                 char out[static TL_AGE_TEXT]);

#endif
