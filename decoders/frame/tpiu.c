/* SPDX-License-Identifier: MIT */
/*
 * Whole frames go from the input straight into the run buffer, through gather(), where they have
 * no IDs; where they have, many at once (tpiu_many.c). Everything else (frames cut by the end of a
 * push, synchronisation words, damage) goes through `frame` and, like frames that are too few, to
 * take_mixed().
 */
#include "frame/tpiu_parts.h"

#include "base/bytes.h"
#include "frame/vectors.h"

#include <endian.h>
#include <string.h>

#define FSYNC      0xffffff7fu         /* its bytes, the first one on top */
#define FSYNC_PAIR 0x7fffffff7fffffffu /* two FSYNC words as a little-endian number */

const char tl_tpiu_not_yet[] = "not synchronised";
const char tl_tpiu_no_sync[] = "no frame synchronisation";
const char tl_tpiu_no_id[] = "no trace ID yet";
const char tl_tpiu_cut_frame[] = "frame cut short";
const char tl_tpiu_unfinished[] = "unfinished frame";

void tl_tpiu_init(struct tl_tpiu *t, enum tl_tpiu_sync sync, uint64_t offset,
                  const struct tl_tpiu_sink *sink)
{
    memset(t, 0, offsetof(struct tl_tpiu, buffer));
    t->held = 0;
    t->deal.lined.groups = t->deal.lined.n_ids = 0;
    t->sink = *sink;
    t->gather = tl_gather_variant(tl_cpu_level());
    t->lineup = tl_lineup_variant(tl_cpu_level());
    t->dealer = tl_deal_variant(tl_cpu_level());
    t->sync = sync;
    t->start = offset;
    t->state = sync == TL_TPIU_ALIGNED ? FRAMES : HUNT;
    t->id = TL_TPIU_NO_ID;
}

/* ---- where blocks are -------------------------------------------------------------------- */

/* Blocks, more with each look: the first may be a byte off, by a footer that looks like a frame. */
#define PATIENCE      ((uint64_t)1)
#define PATIENCE_MOST ((uint64_t)1 << 30)

/*
 * A frame was not what it should be. Where bytes have been lost, footers are taken for frames from
 * there on: look at what comes, from the next block on, so that no chunking changes when that is.
 */
static void suspect_blocks(struct tl_tpiu *t)
{
    t->suspects++;
    const uint64_t block = t->raw / BLOCK;
    if (t->sync != TL_TPIU_DSTREAM || !t->synchronised || t->watched_from || block < t->quiet_until)
        return;
    if (block - t->quiet_until > t->patience) /* all went well meanwhile */
        t->patience = 0;
    t->watched_from = (block + 1) * BLOCK;
}

static uint64_t offset_of(const struct tl_tpiu *t, uint64_t place)
{
    if (t->sync == TL_TPIU_DSTREAM)
        place = place / BLOCK_USE * BLOCK + place % BLOCK_USE;
    return t->start + place;
}

/* ---- what goes out ---------------------------------------------------------------------- */

static int report_loss(struct tl_tpiu *t)
{
    const uint64_t bytes = t->lost;
    t->lost = 0;
    if (bytes && t->sink.loss)
        return t->sink.loss(t->sink.context, t->lost_reason, t->lost_at, bytes);
    return TL_OK;
}

/* Losses of one kind without any success between them are told as one. */
static int lose(struct tl_tpiu *t, const char *reason, uint64_t offset, uint64_t bytes)
{
    int rc = TL_OK;
    if (!bytes)
        return TL_OK;
    if (t->lost && t->lost_reason != reason)
        rc = report_loss(t);
    if (!t->lost) {
        t->lost_reason = reason;
        t->lost_at = offset;
    }
    t->lost += bytes;
    return rc;
}

static int deliver(struct tl_tpiu *t, const struct tl_run *run)
{
    if (t->id == TL_TPIU_NO_ID)
        return lose(t, tl_tpiu_no_id, run->offset, run->n);
    if (!is_source(t->id))
        return TL_OK;
    if (t->lost) {
        const int rc = report_loss(t);
        if (rc < 0)
            return rc;
    }
    return t->sink.run(t->sink.context, t->id, run);
}

int tl_tpiu_flush_run(struct tl_tpiu *t)
{
    const int rc = t->run.n ? deliver(t, &t->run) : TL_OK;
    t->run.n = 0;
    t->run_joins = TL_NO_OFFSET;
    return rc;
}

/* ---- frames ----------------------------------------------------------------------------- */

int tl_tpiu_open_run(struct tl_tpiu *t, uint64_t offset, uint8_t slot, size_t n)
{
    if (t->run.n && t->run_joins == offset && slot == 0 && t->run.n + n <= TL_TPIU_BUFFER)
        return TL_OK;
    const int rc = tl_tpiu_flush_run(t);
    t->run = (struct tl_run){t->buffer + FRAME, 0, offset + slot, slot};
    return rc;
}

/* Take frames without an ID byte. Returns how many, or < 0. */
static int64_t take_plain(struct tl_tpiu *t, const uint8_t *p, size_t frames, uint64_t offset)
{
    size_t done = 0;
    while (done < frames) {
        const uint64_t at = offset + done * FRAME;
        const int rc = tl_tpiu_open_run(t, at, 0, AUX);
        if (rc < 0)
            return rc;
        const size_t room = (TL_TPIU_BUFFER - t->run.n) / AUX;
        const size_t want = frames - done < room ? frames - done : room;
        const size_t got = t->gather(tl_tpiu_run_end(t), p + done * FRAME, want);
        if (got) {
            t->run.n += got * AUX;
            t->run_joins = at + got * FRAME;
            done += got;
        }
        if (got < want)
            break;
    }
    return (int64_t)done;
}

/*
 * A frame's data bytes, ID bytes among them, the lowest bits in place. A vector, since it must be
 * stored as a whole: a load that spans several stores just made would have to wait for them.
 */
typedef uint64_t patched __attribute__((vector_size(FRAME)));

static inline patched patch(const uint8_t *p)
{
    patched frame;
    memcpy(&frame, p, sizeof frame);
    const uint8_t aux = p[AUX];
    return frame | (patched){htole64(tl_gather_bits(aux, 0)), htole64(tl_gather_bits(aux, 1))};
}

/*
 * Append bytes `from` … `to` to the open run. If `from` is not 0, the run is empty and there is
 * room for the bytes in front of it.
 */
static inline void append(struct tl_tpiu *t, const patched *data, unsigned from, unsigned to)
{
    memcpy(tl_tpiu_run_end(t) - from, data, sizeof *data);
    t->run.n += to - from;
}

/* Bytes `from` … `to` of a frame, behind which comes an ID byte. */
static int take_part(struct tl_tpiu *t, const patched *data, uint64_t offset, unsigned from,
                     unsigned to)
{
    if (from >= to)
        return TL_OK;
    if (from > 0) { /* behind an ID byte, too: joins nothing */
        const uint8_t *const bytes = (const uint8_t *)data;
        const struct tl_run run = {bytes + from, to - from, offset + from, (uint8_t)from};
        return deliver(t, &run);
    }
    const int rc = tl_tpiu_open_run(t, offset, 0, to);
    if (rc < 0)
        return rc;
    append(t, data, 0, to);
    return tl_tpiu_flush_run(t);
}

static void change_id(struct tl_tpiu *t, uint8_t id)
{
    t->id = id;
    if (is_source(id))
        t->ids_new[id / 64] |= (uint64_t)1 << id % 64;
}

/* The eight even bytes that are IDs, as bits. */
static unsigned id_mask(uint64_t low, uint64_t high)
{
    const uint64_t pack = 0x0001000200040008u; /* bits 0, 16, 32, 48 to 48 … 51 */
    return (unsigned)((low & TL_GATHER_ID_BITS) * pack >> 48 & 15) |
           (unsigned)((high & TL_GATHER_ID_BITS) * pack >> 48 & 15) << 4;
}

/*
 * Take one frame, whose bytes are adjacent in the capture from `offset` on. A set flag in byte 15
 * delays an ID by one byte; it has no meaning for the ID in byte 14, behind which comes none.
 */
static int take_mixed(struct tl_tpiu *t, const uint8_t *p, uint64_t offset)
{
    const patched data = patch(p);
    unsigned from = 0;
    for (unsigned ids = id_mask(tl_le64(p), tl_le64(p + 8)); ids; ids &= ids - 1) {
        const unsigned i = (unsigned)__builtin_ctz(ids);
        int rc = take_part(t, &data, offset, from, 2 * i);
        if (rc == TL_OK && from == 0 && i == 0)
            rc = tl_tpiu_flush_run(t);
        from = 2 * i + 1;
        if (rc == TL_OK && i < 7 && p[AUX] >> i & 1) {
            rc = take_part(t, &data, offset, from, from + 1);
            from++;
        }
        if (rc < 0)
            return rc;
        change_id(t, p[2 * i] >> 1);
    }
    if (from >= AUX)
        return TL_OK;
    const int rc = tl_tpiu_open_run(t, offset, (uint8_t)from, AUX - from);
    if (rc < 0)
        return rc;
    append(t, &data, from, AUX);
    t->run_joins = offset + FRAME;
    return TL_OK;
}

/* Deliver bytes `from` … `to` of the buffered frame as linear runs. */
static int take_pieces(struct tl_tpiu *t, const uint8_t *data, unsigned from, unsigned to)
{
    while (from < to) {
        unsigned end = from + 1;
        while (end < to && t->at[end] == t->at[end - 1] + 1)
            end++;
        const struct tl_run run = {data + from, end - from, t->at[from], TL_RUN_LINEAR};
        const int rc = deliver(t, &run);
        if (rc < 0)
            return rc;
        from = end;
    }
    return TL_OK;
}

/* Take the buffered frame, whose bytes have synchronisation words or a footer between them. */
static int take_scattered(struct tl_tpiu *t)
{
    const patched data = patch(t->frame);
    const uint8_t *const bytes = (const uint8_t *)&data;
    const uint8_t aux = t->frame[AUX];
    int rc = tl_tpiu_flush_run(t);
    unsigned from = 0;
    for (unsigned i = 0; i < 8 && rc == TL_OK; i++) {
        if (!(t->frame[2 * i] & 1))
            continue;
        rc = take_pieces(t, bytes, from, 2 * i);
        from = 2 * i + 1;
        if (rc == TL_OK && i < 7 && aux >> i & 1) {
            rc = take_pieces(t, bytes, from, from + 1);
            from++;
        }
        change_id(t, t->frame[2 * i] >> 1);
    }
    return rc < 0 ? rc : take_pieces(t, bytes, from, AUX);
}

static int reset_all(struct tl_tpiu *t, uint64_t offset)
{
    const int rc = tl_tpiu_flush_run(t);
    t->id = TL_TPIU_NO_ID;
    if (rc < 0 || !t->sink.reset)
        return rc;
    return t->sink.reset(t->sink.context, offset);
}

static bool is_reset(const uint8_t *p)
{
    return tl_le64(p) == FSYNC_PAIR && tl_le64(p + 8) == FSYNC_PAIR;
}

/* Take frames while they need no closer look. Returns how many, or < 0. */
static int64_t take_frames(struct tl_tpiu *t, const uint8_t *p, size_t frames, uint64_t offset)
{
    size_t done = 0;
    while (done < frames) {
        const uint8_t *frame = p + done * FRAME;
        if (!((tl_le64(frame) | tl_le64(frame + 8)) & TL_GATHER_ID_BITS)) {
            const int64_t plain = take_plain(t, frame, frames - done, offset + done * FRAME);
            if (plain < 0)
                return plain;
            done += (size_t)plain;
            continue;
        }
        if (t->sync != TL_TPIU_ALIGNED && has_ff(tl_le64(frame), tl_le64(frame + 8)))
            break;
        if (frames - done >= 4 && t->id != TL_TPIU_NO_ID && !t->lost) {
            const uint64_t at = offset + done * FRAME;
            int64_t some = tl_tpiu_take_apart(t, frame, frames - done, at);
            if (some == 0)
                some = tl_tpiu_take_turns(t, frame, frames - done, at);
            if (some < 0)
                return some;
            done += (size_t)some;
            if (some)
                continue;
        }
        int rc;
        if (t->sync == TL_TPIU_ALIGNED && is_reset(frame))
            rc = reset_all(t, offset + done * FRAME);
        else
            rc = take_mixed(t, frame, offset + done * FRAME);
        if (rc < 0)
            return rc;
        done++;
    }
    return (int64_t)done;
}

static int take_buffered(struct tl_tpiu *t)
{
    t->fill = 0;
    if (t->at[AUX] - t->at[0] != AUX)
        return take_scattered(t);
    const int64_t done = take_frames(t, t->frame, 1, t->at[0]);
    return done < 0 ? (int)done : TL_OK;
}

/* ---- synchronisation -------------------------------------------------------------------- */

/*
 * The ID behind lost bytes is not known, unless there is only one source: then it is better to go
 * on with it than to lose all until it says its ID again, which it may never do.
 */
static void forget_id(struct tl_tpiu *t)
{
    const uint64_t low = t->ids_sure[0], high = t->ids_sure[1];
    t->id = TL_TPIU_NO_ID;
    t->ids_new[0] = t->ids_new[1] = 0;
    if (__builtin_popcountll(low) + __builtin_popcountll(high) == 1)
        t->id = (uint8_t)(low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high));
}

static int lose_frame(struct tl_tpiu *t, const char *reason)
{
    const size_t fill = t->fill;
    int rc = tl_tpiu_flush_run(t);
    t->fill = 0;
    t->half_fsync = false;
    forget_id(t);
    for (size_t i = 0; i < fill && rc == TL_OK; i++)
        rc = lose(t, reason, t->at[i], 1);
    return rc;
}

/* Damage at the last half-word: it and what there is of its frame are lost. */
static int start_hunt(struct tl_tpiu *t)
{
    const uint64_t offset = t->at[t->fill];
    const unsigned bytes = t->half_fsync ? 4 : 2;
    suspect_blocks(t);
    int rc = lose_frame(t, tl_tpiu_no_sync);
    if (rc == TL_OK)
        rc = lose(t, tl_tpiu_no_sync, offset, bytes);
    t->state = HUNT;
    return rc;
}

static void begin_frame(struct tl_tpiu *t)
{
    t->state = FRAMES;
    t->fill = 0;
    t->half_fsync = false;
}

/* An aligned FSYNC has come, with `fill` bytes of a frame in front of it. */
static void take_fsync(struct tl_tpiu *t)
{
    t->half_fsync = false;
    if (t->fill) {
        t->state = HOLD;
        t->held = 0;
        return;
    }
    t->ids_sure[0] |= t->ids_new[0];
    t->ids_sure[1] |= t->ids_new[1];
    t->ids_new[0] = t->ids_new[1] = 0;
}

/* An FSYNC that does not begin at a half-word: bytes were lost, a frame begins behind it. */
static int take_odd_fsync(struct tl_tpiu *t, uint8_t byte, uint64_t offset)
{
    suspect_blocks(t);
    const int rc = lose_frame(t, tl_tpiu_cut_frame);
    begin_frame(t);
    t->frame[0] = byte;
    t->at[0] = offset;
    t->fill = 1;
    return rc;
}

/*
 * A half-word that is not data: HSYNC, half of an FSYNC, or damage. Of an FSYNC at an odd place,
 * ff ff comes first, and then its 7f in the next half-word's even byte.
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
        return lose(t, t->synchronised ? tl_tpiu_no_sync : tl_tpiu_not_yet, offset, 1);
    t->synchronised = true;
    t->lost -= t->lost < 3 ? t->lost : 3;
    begin_frame(t);
    return report_loss(t);
}

static int feed(struct tl_tpiu *t, const uint8_t *p, size_t n, uint64_t place);

/* Feed bytes that may lie around footers. */
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
 * What was kept back ends with an FSYNC, which stands where a frame ends: does that fit the frame
 * that was going on when the first FSYNC came, rather than one that began behind it?
 */
static bool is_inserted(const struct tl_tpiu *t)
{
    size_t n = t->held - 4;
    for (size_t i = 0; i + 2 <= t->held - 4; i += 2)
        if (t->hold[i] == 0xff && t->hold[i + 1] == 0x7f)
            n -= 2;
    return n % FRAME != 0 && (t->fill + n) % FRAME == 0;
}

/* Decide whether the last FSYNC had cut the frame or only stood in it, and go on. */
static int release_held(struct tl_tpiu *t, bool by_fsync)
{
    int rc = TL_OK;
    if (!by_fsync || !is_inserted(t)) {
        suspect_blocks(t);
        rc = lose_frame(t, tl_tpiu_cut_frame);
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

/* Bytes that are taken at once: the window is as if they had come one by one. */
static void slide(struct tl_tpiu *t, const uint8_t *p, size_t n)
{
    if (n >= 8)
        t->window = last_bytes(p + n);
    else
        for (size_t i = 0; i < n; i++)
            t->window = t->window << 8 | p[i];
}

/* Keep back all bytes in front of the last one of an FSYNC; returns how many. */
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

/* Take what goes fast at a frame's beginning. Returns the bytes taken, or < 0. */
static int64_t feed_frames(struct tl_tpiu *t, const uint8_t *p, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (n - done >= FRAME) {
        if (t->sync != TL_TPIU_ALIGNED && tl_le32(p + done) == FSYNC_LE) {
            const int64_t units =
                t->sync == TL_TPIU_DSTREAM
                    ? 0
                    : tl_tpiu_take_units(t, p + done, n - done, SIZE_MAX, offset + done);
            if (units < 0)
                return units;
            done += (size_t)units;
            if (units)
                continue;
            take_fsync(t);
            t->window = FSYNC;
            done += 4;
            continue;
        }
        const int64_t frames = take_frames(t, p + done, (n - done) / FRAME, offset + done);
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
 * Take what there is of a frame, or what it wants, at once. Returns the bytes taken, 0 if there may
 * be synchronisation words among them, or < 0.
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

/* Take bytes that are adjacent in the capture. */
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

/* Bytes of one block, or of several where they are taken at once. Returns how many, or < 0. */
static int64_t feed_block(struct tl_tpiu *t, const uint8_t *p, size_t n)
{
    const size_t in_block = (size_t)(t->raw % BLOCK);
    const bool footer = in_block >= BLOCK_USE;
    const size_t left = (footer ? BLOCK : BLOCK_USE) - in_block;
    size_t part = n < left ? n : left;
    if (!footer && t->state == FRAMES && !t->half_fsync) {
        const int64_t units = t->fill ? 0 : tl_tpiu_take_units(t, p, n, left, t->start + t->raw);
        if (units)
            return units;
        if (t->fill && part > FRAME - t->fill)
            part = FRAME - t->fill;
    }
    const int rc = footer ? TL_OK : feed(t, p, part, t->raw / BLOCK * BLOCK_USE + in_block);
    return rc < 0 ? rc : (int64_t)part;
}

/* Blocks begin elsewhere from now on: `phase` bytes behind where they were thought to. */
static int move_blocks(struct tl_tpiu *t, unsigned phase)
{
    const struct tl_tpiu_sink sink = t->sink;
    /* Which of them are sure depends on whether the FSYNC behind them has been taken yet. */
    const uint64_t ids[2] = {t->ids_sure[0] | t->ids_new[0], t->ids_sure[1] | t->ids_new[1]};
    const unsigned in_block = BLOCK - phase;
    const uint64_t offset = t->start + t->raw;
    const int rc = tl_tpiu_finish(t);
    tl_tpiu_init(t, TL_TPIU_DSTREAM, offset - in_block, &sink);
    t->raw = in_block;
    t->synchronised = true;
    memcpy(t->ids_sure, ids, sizeof ids);
    forget_id(t);
    return rc;
}

/* All that was to be watched has come. If it is full of trouble, it likely is so elsewhere, too. */
static int judge_blocks(struct tl_tpiu *t)
{
    const unsigned phase = tl_blocks_find(t->watched, t->n_watched);
    const uint64_t more =
        t->patience < PATIENCE_MOST / 2 ? t->patience * 2 + PATIENCE : t->patience;
    const uint64_t patience = t->suspects ? more : 0;
    const int rc = phase ? move_blocks(t, phase) : TL_OK;
    t->watched_from = 0;
    t->patience = patience;
    t->quiet_until = (t->raw + BLOCK - 1) / BLOCK + patience;
    return rc;
}

/* Watching begins with the two blocks before: the footer between them may have been the trouble. */
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

/* Bytes that have been taken, up to t->raw. */
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
    return rc < 0 ? rc : tl_tpiu_flush_run(t);
}

int tl_tpiu_finish(struct tl_tpiu *t)
{
    int rc = t->state == HOLD ? release_held(t, false) : TL_OK;
    if (t->lost && t->lost_reason == tl_tpiu_not_yet) /* … and never was */
        t->lost_reason = tl_tpiu_no_sync;
    if (rc == TL_OK)
        rc = lose_frame(t, tl_tpiu_unfinished);
    return rc < 0 ? rc : report_loss(t);
}
