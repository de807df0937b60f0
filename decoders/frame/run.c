/* SPDX-License-Identifier: MIT */
#include "frame/run.h"

#define FRAME 16
#define AUX   15
#define GROUP (4 * FRAME)

/* Of frames that are adjacent, the first of which is at `base`. */
static void place_adjacent(uint16_t *out, uint64_t mask, unsigned base)
{
    const uint64_t last = (uint64_t)1 << (GROUP - 1); /* never data: byte 15 of a frame */
    /* Four a step, some of them too many, make fewer branches to guess. */
    for (uint64_t left = mask; left; out += 4)
        for (unsigned k = 0; k < 4; k++, left &= left - 1)
            out[k] = (uint16_t)(base + (unsigned)__builtin_ctzll(left | last));
}

static void place_apart(uint16_t *out, uint64_t mask, const struct tl_run_frame *frames)
{
    for (uint64_t left = mask; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);
        const struct tl_run_frame *const frame = &frames[i / FRAME];
        const unsigned footer = i % FRAME < frame->cut ? 0 : TL_RUN_FOOTER;
        *out++ = (uint16_t)(frame->at + i % FRAME + footer);
    }
}

void tl_run_place(struct tl_run_map *map)
{
    uint16_t *out = map->place;
    uint16_t *const end = out + map->n;
    unsigned last = 0; /* byte of the groups that is the run's last */
    for (unsigned g = 0; out < end; g++) {
        const uint64_t mask = map->mask[g];
        if (map->frame)
            place_apart(out, mask, map->frame + 4 * (size_t)g);
        else
            place_adjacent(out, mask, GROUP * g);
        if (mask)
            last = GROUP * g + GROUP - 1 - (unsigned)__builtin_clzll(mask);
        out += __builtin_popcountll(mask);
    }
    /* Behind the last data byte of a frame in one piece is the next frame. */
    const bool cut = map->frame && map->frame[last / FRAME].cut < FRAME;
    *end = (uint16_t)(end[-1] + (last % FRAME == AUX - 1 && !cut ? 2 : 1));
    map->placed = true;
}
