/* SPDX-License-Identifier: MIT */
/*
 * Whole frames go directly from the input to the demultiplexer. Frames cut by the end of a push or
 * a footer are completed in `frame`; only around synchronisation words are bytes processed
 * individually.
 */
#include "frame/tpiu.h"

#include "base/bytes.h"

#include <string.h>

#define AUX       TL_FRAME_AUX
#define FRAME     TL_FRAME_BYTES
#define BLOCK     TL_BLOCK_BYTES /* DSTREAM */
#define BLOCK_USE TL_BLOCK_USE
#define FSYNC     0xffffff7fu /* its bytes, the first one in the most significant position */
#define FSYNC_LE  0x7fffffffu /* as a little-endian number */

enum state {
    HUNT,   /* searching for an FSYNC */
    FRAMES, /* frame bytes, possibly with synchronisation between half-words */
    HOLD    /* holding bytes back until it is clear whether an FSYNC cut the frame */
};

/* Loss reasons; the first one, TL_LOSS_NOT_SYNC of decode/ops.h, is not a fault. */
static const char not_yet[] = "not synchronised";
static const char no_sync[] = "no frame synchronisation";
static const char cut_frame[] = "frame cut short";
static const char unfinished[] = TL_TPIU_UNFINISHED;

void tl_tpiu_init(struct tl_tpiu *t, enum tl_tpiu_sync sync, uint64_t offset,
                  const struct tl_tpiu_sink *sink)
{
    memset(t, 0, offsetof(struct tl_tpiu, demux));
    tl_demux_init(&t->demux, sink);
    t->held = 0;
    t->sync = sync;
    t->start = offset;
    t->state = sync == TL_TPIU_ALIGNED ? FRAMES : HUNT;
}

/* ---- block boundaries ---------------------------------------------------------------------- */

/* Blocks to wait, more after each search: the first search may be a byte off, because of a footer
 * that looks like a frame. */
#define PATIENCE     ((uint64_t)1)
#define PATIENCE_MAX ((uint64_t)1 << 30)

/*
 * A frame was invalid. If bytes were lost, footers are taken for frames from there on: examine the
 * following bytes, starting at a block boundary for independence of chunking.
 */
static void suspect_blocks(struct tl_tpiu *t)
{
    t->suspects++;
    const uint64_t block = t->raw / BLOCK;
    if (t->sync != TL_TPIU_DSTREAM || !t->synchronised || t->watched_from || block < t->quiet_until)
        return;
    if (block - t->quiet_until > t->patience) /* no problems in the meantime */
        t->patience = 0;
    t->watched_from = (block + 1) * BLOCK;
}

static uint64_t offset_of(const struct tl_tpiu *t, uint64_t place)
{
    if (t->sync == TL_TPIU_DSTREAM)
        place = place / BLOCK_USE * BLOCK + place % BLOCK_USE;
    return t->start + place;
}

/* ---- frames ----------------------------------------------------------------------------- */

static bool is_marked(const struct tl_tpiu *t)
{
    return t->sync != TL_TPIU_ALIGNED;
}

static int reset_all(struct tl_tpiu *t, uint64_t offset)
{
    const struct tl_tpiu_sink *const sink = &t->demux.sink;
    const int rc = tl_demux_set_id(&t->demux, TL_TPIU_NO_ID);
    return rc < 0 || !sink->reset ? rc : sink->reset(sink->context, offset, false);
}

/*
 * Process frames up to a synchronisation word; p[16 * frames + 15] must be readable. Returns how
 * many, or < 0.
 */
static int64_t take_frames(struct tl_tpiu *t, const uint8_t *p, size_t frames, uint64_t offset)
{
    size_t done = 0;
    while (done < frames) {
        const int64_t some = tl_demux_frames(&t->demux, p + done * FRAME, frames - done,
                                             offset + done * FRAME, is_marked(t));
        if (some < 0)
            return some;
        done += (size_t)some;
        if (done == frames || is_marked(t))
            break;
        const int rc = reset_all(t, offset + done * FRAME);
        if (rc < 0)
            return rc;
        done += tl_le32(p + done * FRAME) == FSYNC_LE; /* a frame of another capture is processed */
    }
    return (int64_t)done;
}

static int take_buffered(struct tl_tpiu *t)
{
    t->fill = 0;
    if (t->at[AUX] - t->at[0] != AUX)
        return tl_demux_frame(&t->demux, t->frame, t->at);
    const int64_t done = take_frames(t, t->frame, 1, t->at[0]);
    return done < 0 ? (int)done : TL_OK;
}

/* ---- synchronisation -------------------------------------------------------------------- */

/*
 * After lost bytes the current ID is unknown. But if there is only one source, it is better to
 * continue with it than to lose everything until its ID is sent again, which may never happen.
 */
static int forget_id(struct tl_tpiu *t)
{
    const uint64_t low = t->ids_sure[0], high = t->ids_sure[1];
    uint8_t id = TL_TPIU_NO_ID;
    if (__builtin_popcountll(low) + __builtin_popcountll(high) == 1)
        id = (uint8_t)(low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high));
    t->demux.ids[0] = t->demux.ids[1] = 0;
    return tl_demux_set_id(&t->demux, id);
}

static int lose_frame(struct tl_tpiu *t, const char *reason)
{
    const size_t fill = t->fill;
    int rc = tl_demux_flush(&t->demux);
    t->fill = 0;
    t->half_fsync = false;
    for (size_t i = 0; i < fill && rc == TL_OK; i++)
        rc = tl_demux_lose(&t->demux, reason, t->at[i], 1);
    return rc < 0 ? rc : forget_id(t);
}

/* Damage at the last half-word: it and the current frame are lost. */
static int start_hunt(struct tl_tpiu *t)
{
    const uint64_t offset = t->at[t->fill];
    const unsigned bytes = t->half_fsync ? 4 : 2;
    suspect_blocks(t);
    int rc = lose_frame(t, no_sync);
    if (rc == TL_OK)
        rc = tl_demux_lose(&t->demux, no_sync, offset, bytes);
    t->state = HUNT;
    return rc;
}

static void begin_frame(struct tl_tpiu *t)
{
    t->state = FRAMES;
    t->fill = 0;
    t->half_fsync = false;
}

/* Process an aligned FSYNC, preceded by `fill` bytes of a frame. */
static void take_fsync(struct tl_tpiu *t)
{
    t->half_fsync = false;
    if (t->fill) {
        t->state = HOLD;
        t->held = 0;
        return;
    }
    t->ids_sure[0] |= t->demux.ids[0];
    t->ids_sure[1] |= t->demux.ids[1];
    t->demux.ids[0] = t->demux.ids[1] = 0;
}

/* Process an FSYNC that does not begin at a half-word: bytes were lost, and a frame begins after
 * it. */
static int take_odd_fsync(struct tl_tpiu *t, uint8_t byte, uint64_t offset)
{
    suspect_blocks(t);
    const int rc = lose_frame(t, cut_frame);
    begin_frame(t);
    t->frame[0] = byte;
    t->at[0] = offset;
    t->fill = 1;
    return rc;
}

/*
 * Process a half-word that is not data: HSYNC, half of an FSYNC, or damage. Of an FSYNC at an odd
 * position, ff ff comes first, and then its 7f in the next half-word's even byte.
 */
static int take_sync(struct tl_tpiu *t)
{
    t->fill -= 2;
    const uint8_t even = t->frame[t->fill], odd = t->frame[t->fill + 1];
    if (even == 0xff && odd == 0x7f) {
        if (t->half_fsync)
            take_fsync(t);
        return TL_OK;
    }
    if ((uint32_t)(t->window >> 8) == FSYNC)
        return take_odd_fsync(t, odd, t->at[t->fill + 1]);
    if (even != 0xff || odd != 0xff || t->half_fsync)
        return start_hunt(t);
    t->half_fsync = true;
    return TL_OK;
}

static int take_byte(struct tl_tpiu *t, uint8_t byte, uint64_t offset)
{
    t->at[t->fill] = offset;
    t->frame[t->fill++] = byte;
    if (t->sync != TL_TPIU_ALIGNED && t->fill % 2 == 0 &&
        (t->half_fsync || t->frame[t->fill - 2] == 0xff))
        return take_sync(t);
    return t->fill == FRAME ? take_buffered(t) : TL_OK;
}

static int hunt(struct tl_tpiu *t, uint64_t offset)
{
    if ((uint32_t)t->window != FSYNC)
        return tl_demux_lose(&t->demux, t->synchronised ? no_sync : not_yet, offset, 1);
    t->synchronised = true;
    t->demux.lost -= t->demux.lost < 3 ? t->demux.lost : 3;
    begin_frame(t);
    return tl_demux_report(&t->demux);
}

static int feed(struct tl_tpiu *t, const uint8_t *p, size_t n, uint64_t place);

/* Feed bytes that may span footers. */
static int feed_held(struct tl_tpiu *t)
{
    const size_t held = t->held;
    size_t done = 0;
    t->held = 0;
    t->window = FSYNC;
    while (done < held) {
        const uint64_t place = t->held_from + done;
        size_t n = held - done;
        if (t->sync == TL_TPIU_DSTREAM && n > BLOCK_USE - place % BLOCK_USE)
            n = (size_t)(BLOCK_USE - place % BLOCK_USE);
        const int rc = feed(t, t->hold + done, n, place);
        if (rc < 0)
            return rc;
        done += n;
    }
    return TL_OK;
}

/*
 * The held-back bytes end with an FSYNC, which is at the end of a frame. Does that fit the frame
 * that was in progress at the first FSYNC, rather than one that began after it?
 */
static bool is_inserted(const struct tl_tpiu *t)
{
    size_t n = t->held - 4;
    for (size_t i = 0; i + 2 <= t->held - 4; i += 2)
        if (t->hold[i] == 0xff && t->hold[i + 1] == 0x7f)
            n -= 2;
    return n % FRAME != 0 && (t->fill + n) % FRAME == 0;
}

/* Decide whether the last FSYNC cut the frame or was inserted in it, and continue. */
static int release_held(struct tl_tpiu *t, bool by_fsync)
{
    int rc = TL_OK;
    if (!by_fsync || !is_inserted(t)) {
        suspect_blocks(t);
        rc = lose_frame(t, cut_frame);
        t->fill = 0;
    }
    t->state = FRAMES;
    return rc < 0 ? rc : feed_held(t);
}

static int hold(struct tl_tpiu *t, uint8_t byte, uint64_t place)
{
    if (!t->held)
        t->held_from = place;
    t->hold[t->held++] = byte;
    const bool by_fsync = (uint32_t)t->window == FSYNC && t->held >= 4;
    return by_fsync || t->held == sizeof t->hold ? release_held(t, by_fsync) : TL_OK;
}

/* ---- input ------------------------------------------------------------------------------ */

static uint64_t last_bytes(const uint8_t *end)
{
    return __builtin_bswap64(tl_le64(end - 8));
}

/* Update the window for several bytes. */
static void slide(struct tl_tpiu *t, const uint8_t *p, size_t n)
{
    if (n >= 8)
        t->window = last_bytes(p + n);
    else
        for (size_t i = 0; i < n; i++)
            t->window = t->window << 8 | p[i];
}

/* Hold back bytes up to the last one of an FSYNC, exclusive; returns how many. */
static size_t hold_bytes(struct tl_tpiu *t, const uint8_t *p, size_t n)
{
    static const uint8_t fsync[] = {0xff, 0xff, 0xff, 0x7f};
    if (t->held == 0 || (t->window & 0xff) == 0xff) /* one may have begun */
        return 0;
    const size_t room = sizeof t->hold - t->held - 1;
    n = n < room ? n : room;
    const uint8_t *const found = memmem(p, n, fsync, sizeof fsync);
    n = found ? (size_t)(found - p) + 3 : n;
    memcpy(t->hold + t->held, p, n);
    t->held += n;
    slide(t, p, n);
    return n;
}

/* Process whole frames and FSYNCs between them. Returns the bytes processed, or < 0. */
static int64_t feed_frames(struct tl_tpiu *t, const uint8_t *p, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (n - done >= 2 * FRAME) { /* bytes after a frame must be readable */
        if (is_marked(t) && tl_le32(p + done) == FSYNC_LE) {
            take_fsync(t);
            t->window = FSYNC;
            done += 4;
            continue;
        }
        const int64_t frames = take_frames(t, p + done, (n - done) / FRAME - 1, offset + done);
        if (frames < 0)
            return frames;
        if (frames == 0)
            break;
        done += (size_t)frames * FRAME;
        t->window = last_bytes(p + done);
    }
    return (int64_t)done;
}

/*
 * Process the rest of a frame, or what is available of it. Returns the bytes processed, 0 if there
 * may be synchronisation words among them, or < 0.
 */
static int64_t take_bytes(struct tl_tpiu *t, const uint8_t *p, size_t n, uint64_t offset)
{
    const size_t want = FRAME - t->fill;
    n = n < want ? n : want;
    if (t->sync != TL_TPIU_ALIGNED) {
        bool sync = (t->fill | n) & 1;
        for (size_t i = 0; i < n; i += 2)
            sync |= p[i] == 0xff;
        if (sync)
            return 0;
    }
    memcpy(t->frame + t->fill, p, n);
    for (size_t i = 0; i < n; i++)
        t->at[t->fill + i] = offset + i;
    slide(t, p, n);
    t->fill += n;
    const int rc = t->fill == FRAME ? take_buffered(t) : TL_OK;
    return rc < 0 ? rc : (int64_t)n;
}

/* Process bytes that are contiguous in the capture. */
static int feed(struct tl_tpiu *t, const uint8_t *p, size_t n, uint64_t place)
{
    const uint64_t offset = offset_of(t, place);
    for (size_t i = 0; i < n;) {
        if (t->state == FRAMES && t->fill == 0 && !t->half_fsync) {
            const int64_t done = feed_frames(t, p + i, n - i, offset + i);
            if (done < 0)
                return (int)done;
            i += (size_t)done;
            if (i == n)
                break;
        }
        if (t->state == FRAMES && !t->half_fsync) {
            const int64_t done = take_bytes(t, p + i, n - i, offset + i);
            if (done < 0)
                return (int)done;
            i += (size_t)done;
            if (done > 0)
                continue;
        }
        if (t->state == HOLD) {
            const size_t held = hold_bytes(t, p + i, n - i);
            i += held;
            if (held)
                continue;
        }
        t->window = t->window << 8 | p[i];
        int rc;
        if (t->state == HUNT)
            rc = hunt(t, offset + i);
        else if (t->state == HOLD)
            rc = hold(t, p[i], place + i);
        else
            rc = take_byte(t, p[i], offset + i);
        if (rc < 0)
            return rc;
        i++;
    }
    return TL_OK;
}

/* Process bytes of one block's frames or of its footer. Returns how many, or < 0. */
static int64_t feed_block(struct tl_tpiu *t, const uint8_t *p, size_t n)
{
    const size_t in_block = (size_t)(t->raw % BLOCK);
    const bool footer = in_block >= BLOCK_USE;
    const size_t left = (footer ? BLOCK : BLOCK_USE) - in_block;
    const size_t part = n < left ? n : left;
    const int rc = footer ? TL_OK : feed(t, p, part, t->raw / BLOCK * BLOCK_USE + in_block);
    return rc < 0 ? rc : (int64_t)part;
}

/* Move block boundaries: they are `phase` bytes later than assumed. */
static int move_blocks(struct tl_tpiu *t, unsigned phase)
{
    const struct tl_tpiu_sink sink = t->demux.sink;
    /* The division between both depends on whether the FSYNC after them has been processed yet. */
    const uint64_t ids[2] = {t->ids_sure[0] | t->demux.ids[0], t->ids_sure[1] | t->demux.ids[1]};
    const unsigned in_block = BLOCK - phase;
    const uint64_t offset = t->start + t->raw;
    const int rc = tl_tpiu_finish(t, unfinished);
    tl_tpiu_init(t, TL_TPIU_DSTREAM, offset - in_block, &sink);
    t->raw = in_block;
    t->synchronised = true;
    memcpy(t->ids_sure, ids, sizeof ids);
    return rc < 0 ? rc : forget_id(t);
}

/* The window is complete: decide. If there were many invalid frames, wait longer before the next
 * search. */
static int judge_blocks(struct tl_tpiu *t)
{
    const unsigned phase = tl_blocks_find(t->watched, t->n_watched);
    const uint64_t more = t->patience < PATIENCE_MAX / 2 ? t->patience * 2 + PATIENCE : t->patience;
    const uint64_t patience = t->suspects ? more : 0;
    const int rc = phase ? move_blocks(t, phase) : TL_OK;
    t->watched_from = 0;
    t->patience = patience;
    t->quiet_until = (t->raw + BLOCK - 1) / BLOCK + patience;
    return rc;
}

/*
 * The window begins two blocks earlier, since the footer between those may have been the problem.
 */
static void watch_blocks(struct tl_tpiu *t)
{
    const size_t n = t->raw < sizeof t->recent ? (size_t)t->raw : sizeof t->recent;
    const size_t at = (size_t)(t->raw - n) % sizeof t->recent;
    const size_t first = n < sizeof t->recent - at ? n : sizeof t->recent - at;
    memcpy(t->watched, t->recent + at, first);
    memcpy(t->watched + first, t->recent, n - first);
    t->n_watched = n;
    t->suspects = 0;
}

/* Record bytes that were processed, up to t->raw. */
static void remember_blocks(struct tl_tpiu *t, const uint8_t *p, size_t n, bool watching)
{
    if (watching) {
        memcpy(t->watched + t->n_watched, p, n);
        t->n_watched += n;
    }
    if (n > sizeof t->recent) {
        p += n - sizeof t->recent;
        n = sizeof t->recent;
    }
    const size_t at = (size_t)(t->raw - n) % sizeof t->recent;
    const size_t first = n < sizeof t->recent - at ? n : sizeof t->recent - at;
    memcpy(t->recent + at, p, first);
    memcpy(t->recent, p + first, n - first);
}

static int feed_blocks(struct tl_tpiu *t, const uint8_t *p, size_t n)
{
    while (n) {
        const bool watching = t->watched_from && t->raw >= t->watched_from;
        const uint64_t end = t->watched_from + (watching ? TL_BLOCKS_AHEAD : 0);
        const size_t some = t->watched_from && n > end - t->raw ? (size_t)(end - t->raw) : n;
        if (watching && t->raw == t->watched_from)
            watch_blocks(t);
        const int64_t done = feed_block(t, p, some);
        if (done < 0)
            return (int)done;
        t->raw += (uint64_t)done;
        remember_blocks(t, p, (size_t)done, watching);
        p += done;
        n -= (size_t)done;
        if (watching && t->raw == end) {
            const int rc = judge_blocks(t);
            if (rc < 0)
                return rc;
        }
    }
    return TL_OK;
}

int tl_tpiu_push(struct tl_tpiu *t, const uint8_t *p, size_t n)
{
    int rc;
    if (t->sync == TL_TPIU_DSTREAM) {
        rc = feed_blocks(t, p, n);
    } else {
        rc = feed(t, p, n, t->raw);
        t->raw += n;
    }
    return rc < 0 ? rc : tl_demux_flush(&t->demux);
}

int tl_tpiu_finish(struct tl_tpiu *t, const char *cut)
{
    int rc = t->state == HOLD ? release_held(t, false) : TL_OK;
    if (t->demux.lost && t->demux.lost_reason == not_yet) /* and never became synchronised */
        t->demux.lost_reason = no_sync;
    if (rc == TL_OK)
        rc = lose_frame(t, cut);
    return rc < 0 ? rc : tl_demux_report(&t->demux);
}

void tl_tpiu_state(struct tl_tpiu *t, struct tl_state *s)
{
    static const char *const reasons[] = {not_yet, no_sync, tl_demux_no_id, cut_frame, unfinished};
    if (!tl_state_loads(s) && (t->state == HOLD || t->watched_from))
        tl_state_fail(s, TL_AGAIN);
    tl_state_u64(s, &t->start);
    tl_state_u64(s, &t->raw);
    tl_state_check(s, t->start < TL_NO_OFFSET / 4 && t->raw < TL_NO_OFFSET / 4);
    tl_state_u8(s, &t->state, FRAMES);
    tl_state_bool(s, &t->synchronised);
    tl_state_bool(s, &t->half_fsync);
    tl_state_u64(s, &t->window);
    tl_state_size(s, &t->fill, FRAME - 1);
    tl_state_bytes(s, t->frame, t->fill);
    tl_state_bytes(s, t->at, t->fill * sizeof *t->at);
    tl_demux_state(&t->demux, s, reasons, sizeof reasons / sizeof *reasons);
    tl_state_u64(s, &t->quiet_until);
    tl_state_u64(s, &t->patience);
    tl_state_bytes(s, t->ids_sure, sizeof t->ids_sure);
    if (t->sync == TL_TPIU_DSTREAM)
        tl_state_bytes(s, t->recent, sizeof t->recent);
}

bool tl_tpiu_is_marked(const uint8_t *p, size_t n)
{
    unsigned found = 0;
    for (size_t i = 0; i + 4 <= n;) {
        if (tl_le32(p + i) != FSYNC_LE) {
            i++;
            continue;
        }
        const size_t begin = i;
        while (i + 4 <= n && tl_le32(p + i) == FSYNC_LE)
            i += 4;
        const bool is_barrier = begin % FRAME == 0 && (i - begin) % FRAME == 0;
        if (!is_barrier && (begin == 0 || ++found == 2))
            return true;
    }
    return false;
}
