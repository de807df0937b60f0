/* SPDX-License-Identifier: MIT */
/*
 * Removing by age must not depend on a clock that anybody can set. So time is counted here, and the
 * wall clock is only a witness that must repeat what it says for a while.
 */
#include "lake/age.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND     INT64_C(1000000000)
#define MINUTE     (60 * SECOND)
#define HOUR       (60 * MINUTE)
#define DAY        (24 * HOUR)
#define NEAR       MINUTE /* a difference that is followed */
#define SHORT_AWAY HOUR   /* believed at the start */
#define SLEW       128    /* of elapsed time */
#define LAST_PART  8      /* of a difference: how long it must last */
#define LAST_MIN   (10 * MINUTE)
#define LAST_MAX   DAY

static int64_t size_of(int64_t difference)
{
    return difference == INT64_MIN ? INT64_MAX : difference < 0 ? -difference : difference;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* ---- state as text --------------------------------------------------------------------------- */

/* The sum of two such times does not overflow; it is the year 2116 before a clock comes near. */
static bool is_plausible(int64_t time)
{
    return size_of(time) < INT64_MAX / 2;
}

static bool read_line(struct tl_age_clock *clock, const char *line, char boot[static 40],
                      int64_t *uptime)
{
    struct tl_age_correction c;
    int64_t time;
    uint64_t removed;
    if (sscanf(line, "clock %" SCNd64, &time) == 1 && is_plausible(time)) {
        clock->now = time;
        return true;
    }
    if (sscanf(line, "boot %39[0-9a-f-] %" SCNd64, boot, &time) == 2 && is_plausible(time)) {
        *uptime = time;
        return true;
    }
    if (sscanf(line, "removed %" SCNu64 " since %" SCNd64, &removed, &time) == 2 &&
        is_plausible(time)) {
        clock->removed = removed;
        clock->window = time;
        return true;
    }
    if (sscanf(line, "correction %" SCNd64 " by %" SCNd64, &c.at, &c.by) != 2 ||
        !is_plausible(c.at) || !is_plausible(c.by) || clock->n_corrections == TL_AGE_CORRECTIONS)
        return false;
    clock->corrections[clock->n_corrections++] = c;
    return true;
}

/* Returns whether there is a state. */
static bool read_text(struct tl_age_clock *clock, const char *text, char boot[static 40],
                      int64_t *uptime)
{
    for (const char *line = text ? text : ""; *line;) {
        (void)!read_line(clock, line, boot, uptime); /* of a later version */
        line += strcspn(line, "\n");
        line += *line != '\0';
    }
    return clock->now > 0;
}

void tl_age_text(const struct tl_age_clock *clock, const struct tl_age_times *times,
                 char out[static TL_AGE_TEXT])
{
    int n = snprintf(out, TL_AGE_TEXT, "clock %" PRId64 "\n", tl_age_now(clock, times->monotonic));
    if (times->boot[0] && times->uptime >= 0)
        n += snprintf(out + n, TL_AGE_TEXT - (size_t)n, "boot %s %" PRId64 "\n", times->boot,
                      times->uptime);
    n += snprintf(out + n, TL_AGE_TEXT - (size_t)n, "removed %" PRIu64 " since %" PRId64 "\n",
                  clock->removed, clock->window);
    for (size_t i = 0; i < clock->n_corrections; i++)
        n += snprintf(out + n, TL_AGE_TEXT - (size_t)n, "correction %" PRId64 " by %" PRId64 "\n",
                      clock->corrections[i].at, clock->corrections[i].by);
}

/* ---- the wall clock -------------------------------------------------------------------------- */

int64_t tl_age_now(const struct tl_age_clock *clock, int64_t monotonic)
{
    return clock->now + (monotonic > clock->monotonic ? monotonic - clock->monotonic : 0);
}

static enum tl_age_event watch(struct tl_age_clock *clock, int64_t difference, int64_t monotonic)
{
    const bool is_new = !clock->watching || size_of(difference - clock->step) > NEAR;
    if (!is_new)
        return TL_AGE_SAME;
    clock->watching = true;
    clock->step = difference;
    clock->since = monotonic;
    return TL_AGE_STEPPED;
}

static bool has_lasted(const struct tl_age_clock *clock, int64_t monotonic)
{
    return monotonic - clock->since >= clamp(size_of(clock->step) / LAST_PART, LAST_MIN, LAST_MAX);
}

static void correct(struct tl_age_clock *clock, int64_t by)
{
    if (by == 0)
        return;
    if (clock->n_corrections == TL_AGE_CORRECTIONS) { /* the two oldest become one */
        clock->corrections[1].by += clock->corrections[0].by;
        clock->n_corrections--;
        memmove(clock->corrections, clock->corrections + 1,
                clock->n_corrections * sizeof *clock->corrections);
    }
    clock->corrections[clock->n_corrections++] = (struct tl_age_correction){clock->now, by};
    clock->now += by;
}

/* Believe a difference: what may have elapsed without a server has, the rest is a correction. */
static void believe(struct tl_age_clock *clock, int64_t difference)
{
    const int64_t elapsed = clamp(difference, 0, clock->away);
    clock->now += elapsed;
    correct(clock, difference - elapsed);
    clock->away = 0;
    clock->watching = false;
}

enum tl_age_event tl_age_begin(struct tl_age_clock *clock, const char *text,
                               const struct tl_age_times *times)
{
    char boot[40] = "";
    int64_t uptime = -1;
    *clock = (struct tl_age_clock){.monotonic = times->monotonic};
    if (!read_text(clock, text, boot, &uptime)) {
        *clock = (struct tl_age_clock){.now = times->wall, .monotonic = times->monotonic};
        return TL_AGE_SAME;
    }
    const bool same_boot = boot[0] && strcmp(boot, times->boot) == 0 && times->uptime >= uptime;
    if (same_boot)
        clock->now += times->uptime - uptime;
    const int64_t difference = times->wall - clock->now;
    clock->away = same_boot ? 0 : clamp(difference, 0, INT64_MAX);
    if (difference >= 0 && difference <= (same_boot ? NEAR : SHORT_AWAY)) {
        clock->now = times->wall;
        clock->away = 0;
        return TL_AGE_SAME;
    }
    return size_of(difference) > NEAR ? watch(clock, difference, times->monotonic) : TL_AGE_SAME;
}

enum tl_age_event tl_age_tick(struct tl_age_clock *clock, const struct tl_age_times *times,
                              int64_t *by)
{
    const int64_t now = tl_age_now(clock, times->monotonic);
    const int64_t elapsed = now - clock->now, difference = times->wall - now;
    const bool watched = clock->watching;
    clock->now = now;
    clock->monotonic = times->monotonic > clock->monotonic ? times->monotonic : clock->monotonic;
    *by = difference;
    if (size_of(difference) <= NEAR) {
        clock->now += clamp(difference, -elapsed / SLEW, elapsed / SLEW);
        clock->away = 0;
        clock->watching = false;
        return watched ? TL_AGE_AGREES : TL_AGE_SAME;
    }
    const enum tl_age_event event = watch(clock, difference, times->monotonic);
    /* Before the program existed it was certainly not. */
    if (event != TL_AGE_SAME || times->wall < TL_AGE_EARLIEST ||
        !has_lasted(clock, times->monotonic))
        return event;
    believe(clock, difference);
    return TL_AGE_BELIEVED;
}

int64_t tl_age_of(const struct tl_age_clock *clock, int64_t stamp, int64_t now)
{
    int64_t age = now - stamp;
    for (size_t i = 0; i < clock->n_corrections; i++) {
        const struct tl_age_correction *const c = &clock->corrections[i];
        /* What a correction backwards has repeated may be of either time: then it is young. */
        const int64_t before = c->by < 0 ? c->at + c->by : c->at;
        if (stamp <= before || (c->by < 0 && stamp <= c->at && stamp > now))
            age -= c->by;
    }
    return age > 0 ? age : 0;
}
