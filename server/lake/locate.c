/* SPDX-License-Identifier: MIT */
/*
 * Converts positions by a scale that is made for the one place asked about. A scale has full
 * resolution only where it is wanted, so that costs a few chunks however long the stream is.
 */
#include "lake/locate.h"

#include "lake/lakeint.h"
#include "lake/scale.h"

int tl_cut_locate(const struct tl_cut *cut, uint64_t position, struct tl_position *out,
                  struct tl_fail *fail)
{
    struct tl_scale scale;
    *out = (struct tl_position){.insn = position};
    int r = tl_scale_open(&scale, cut, TL_SCALE_TIME, false, position, position, fail);
    if (r < 0)
        return r;
    out->has_time = tl_scale_value(&scale, position, &out->time) &&
                    tl_scale_bounds(&scale, position, &out->time_from, &out->time_to);
    tl_scale_close(&scale);
    r = tl_scale_open(&scale, cut, TL_SCALE_BYTE, false, position, position, fail);
    if (r < 0)
        return r;
    if (!tl_scale_value(&scale, position, &out->byte))
        out->byte = 0;
    tl_scale_close(&scale);
    return TL_OK;
}

static int no_timestamps(const struct tl_cut *cut, struct tl_fail *fail)
{
    return tl_fail_set(fail, TL_USAGE, "stream %s has no timestamps; ask by instruction",
                       cut->lane->name);
}

int tl_cut_need_time(const struct tl_cut *cut, struct tl_fail *fail)
{
    struct tl_scale scale;
    bool any = cut->n_rows > 0 && cut->rows[cut->n_rows - 1].at.has_time;
    if (any && tl_lane_is_timed(cut->lane))
        return TL_OK;
    const int r = tl_scale_open(&scale, cut, TL_SCALE_TIME, true, 0, 0, fail);
    if (r < 0)
        return r;
    any = scale.n > 0;
    tl_scale_close(&scale);
    return any || cut->end == 0 ? TL_OK : no_timestamps(cut, fail);
}

static int resolve_one(const struct tl_cut *cut, enum tl_scale_kind kind, uint64_t value,
                       uint64_t *out, struct tl_fail *fail)
{
    struct tl_scale scale;
    const int r = tl_scale_open(&scale, cut, kind, true, value, value, fail);
    if (r < 0)
        return r;
    const bool any = scale.n > 0;
    *out = tl_scale_position(&scale, value);
    tl_scale_close(&scale);
    if (!any && kind == TL_SCALE_TIME && cut->end > 0)
        return no_timestamps(cut, fail);
    return TL_OK;
}

int tl_cut_unit(const struct tl_cut *cut, enum tl_range_unit *unit, struct tl_fail *fail)
{
    if (*unit != TL_UNIT_NS)
        return TL_OK;
    *unit = TL_UNIT_TIME;
    if (tl_lane_is_in_ns(cut->lane))
        return TL_OK;
    return tl_fail_set(fail, TL_USAGE,
                       "the clock rate of stream %s is not known; give times in ticks, or its rate "
                       "in the setup",
                       cut->lane->name);
}

int tl_cut_resolve(const struct tl_cut *cut, enum tl_range_unit unit, uint64_t from, uint64_t to,
                   uint64_t *first, uint64_t *end, struct tl_fail *fail)
{
    if (from > to)
        return tl_fail_set(fail, TL_USAGE, "the range ends before it begins");
    int r = tl_cut_unit(cut, &unit, fail);
    *first = from;
    *end = to;
    if (r >= 0 && unit != TL_UNIT_INSN) {
        const enum tl_scale_kind kind = unit == TL_UNIT_TIME ? TL_SCALE_TIME : TL_SCALE_BYTE;
        r = resolve_one(cut, kind, from, first, fail);
        if (r >= 0 && to != UINT64_MAX)
            r = resolve_one(cut, kind, to, end, fail);
    }
    if (*end > cut->end)
        *end = cut->end;
    if (*first > *end)
        *first = *end;
    return r;
}

int tl_lake_locate(struct tl_lake *lake, const char *trace, const char *stream,
                   enum tl_range_unit unit, uint64_t at, struct tl_position *out,
                   struct tl_fail *fail)
{
    struct tl_cut cut;
    uint64_t first, end;
    int r = tl_cut_open_outlined(&cut, lake, trace, stream, fail);
    if (r < 0)
        return r;
    r = tl_cut_resolve(&cut, unit, at, UINT64_MAX, &first, &end, fail);
    if (r >= 0)
        r = tl_cut_locate(&cut, first, out, fail);
    tl_cut_close(&cut);
    return r;
}
