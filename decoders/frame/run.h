/* SPDX-License-Identifier: MIT */
/*
 * A run: consecutive bytes of one trace source, as L1 (a de-multiplexer) hands them to L2
 * (a packet decoder), with the true file offset of each byte.
 *
 * Bytes of CoreSight frames are not adjacent in the file: 15 of a frame's 16 bytes can be
 * data. Where a run covers only frames without an ID change, every offset follows from the first
 * byte's place. A scattered run goes on over the bytes of other sources: bit masks say where its
 * bytes are, and the first who asks for an offset has the places of all bytes worked out from them.
 */
#ifndef TL_FRAME_RUN_H
#define TL_FRAME_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_RUN_LINEAR    0xff /* slot of a run whose bytes are adjacent in the file */
#define TL_RUN_SCATTERED 0xfe /* … whose bytes are where `map` says */

/* Where a frame is that has something in front of it, or in its midst. */
struct tl_run_frame {
    uint16_t at;  /* behind the first frame */
    uint16_t cut; /* bytes in front of a footer; 16: there is none */
};

#define TL_RUN_FOOTER 8 /* its bytes */

struct tl_deal;
struct tl_share;

/* Where the bytes of scattered runs are. */
struct tl_run_map {
    const uint8_t *p; /* the bytes, … */
    size_t n;         /* how many */
    uint64_t offset;  /* file offset of the first frame */
    struct tl_deal *deal;
    const struct tl_share *share;     /* of it; these are its bytes */
    const struct tl_run_frame *frame; /* where the frames are; NULL: they are adjacent */
    uint16_t *place; /* n + 1, and TL_RUN_SLACK more: of each byte behind `offset`, … */
    bool placed;     /* … when it has been worked out */
};

#define TL_RUN_SLACK 64 /* places that may be written behind the last one */

struct tl_run {
    const uint8_t *p; /* borrowed for the call; at least 1 byte */
    size_t n;
    uint64_t offset;        /* file offset of p[0] */
    uint8_t slot;           /* p[0]'s byte position in its frame, 0..14, or one of the above */
    struct tl_run_map *map; /* scattered: borrowed for the call, not to be shared by threads */
};

/* Work out the places of a map's bytes. */
void tl_run_place(struct tl_run_map *map);

/* Of a scattered run: n + 1 places, behind the map's `offset`. */
static inline const uint16_t *tl_run_places(const struct tl_run *run)
{
    if (!run->map->placed)
        tl_run_place(run->map);
    return run->map->place + (run->p - run->map->p);
}

/* File offset of byte `i` of the run (i may equal n: the offset behind it). */
static inline uint64_t tl_run_offset(const struct tl_run *run, size_t i)
{
    if (run->slot == TL_RUN_LINEAR)
        return run->offset + i;
    if (run->slot == TL_RUN_SCATTERED)
        return run->map->offset + tl_run_places(run)[i];
    const size_t at = run->slot + i;
    return run->offset - run->slot + at / 15 * 16 + at % 15;
}

/* The tail of a run from byte `i` on (i <= n). */
static inline struct tl_run tl_run_from(const struct tl_run *run, size_t i)
{
    struct tl_run tail = *run;
    if (i == 0)
        return tail;
    tail.p += i;
    tail.n -= i;
    tail.offset = tl_run_offset(run, i);
    if (run->slot < 15)
        tail.slot = (uint8_t)((run->slot + i) % 15);
    return tail;
}

#endif
