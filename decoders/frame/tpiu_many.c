/* SPDX-License-Identifier: MIT */
/*
 * Frames with IDs among them, many at once: cut into turns, in the order of the file, or dealt out
 * to their sources, where these may come apart.
 */
#include "frame/tpiu_parts.h"

#include "base/bytes.h"

#include <assert.h>
#include <string.h>

/* ---- in turns --------------------------------------------------------------------------- */

#define FOUR  ((size_t)4 * FRAME)
#define FOURS 16 /* at once: what is written stays in the first-level cache */

/* Bytes of one source between IDs, as they are lined up. */
struct piece {
    uint16_t from, n;
    uint8_t id;
    bool moved; /* to the place of a late ID, in front of which the one byte is */
};

/*
 * Cut frames lined up at their IDs. Without a branch but the loop's: whether IDs are late, and what
 * is between them, cannot be foretold. Returns the end of the pieces; the last one is still open.
 */
static struct piece *cut(struct piece *end, const struct tl_lined *lined, uint8_t id,
                         uint64_t ids[2])
{
    uint16_t from = 0;
    for (size_t k = 0; k < lined->n_ids; k++) {
        const uint16_t to = lined->at[k];
        const bool late = to % AUX % 2, wanted = is_source(id);
        const uint16_t n = (uint16_t)(to - late - from);
        *end = (struct piece){from, n, id, false};
        end += (n != 0) & wanted;
        *end = (struct piece){(uint16_t)(to - 1), 1, id, true};
        end += late & wanted;
        from = (uint16_t)(to + 1);
        id = lined->bytes[to] >> 1;
        const uint64_t bit = (uint64_t)1 << id % 64, high = -(uint64_t)(id / 64);
        ids[0] |= bit & ~high;
        ids[1] |= bit & high;
    }
    *end = (struct piece){from, (uint16_t)(lined->groups * TL_LINEUP_BYTES - from), id, false};
    return end;
}

/* The run at byte `from` of frames lined up, the first of which is at `offset`. */
static inline struct tl_run run_at(const struct tl_lined *lined, uint64_t offset,
                                   const struct piece *piece)
{
    const unsigned from = piece->from, moved = piece->moved;
    return (struct tl_run){lined->bytes + from, piece->n, offset + from + from / AUX + moved,
                           (uint8_t)(from % AUX + moved), NULL};
}

int64_t tl_tpiu_take_turns(struct tl_tpiu *t, const uint8_t *p, size_t frames, uint64_t offset)
{
    struct piece pieces[FOURS * 4 * 16 + 1]; /* eight IDs in a frame, two pieces in front of each */
    struct tl_lined *const lined = &t->deal.lined;
    const size_t fours = frames / 4 < FOURS ? frames / 4 : FOURS;
    int rc = tl_tpiu_open_run(t, offset, 0, AUX);
    if (rc < 0)
        return rc;
    /* A full buffer ends a run: where it does so must not depend on how many frames there are. */
    const size_t room = (TL_TPIU_BUFFER - t->run.n) / (4 * AUX);
    lined->groups = lined->quiet = lined->n_ids = 0;
    t->lineup(lined, p, fours < room ? fours : room, SIZE_MAX);
    if (!lined->groups)
        return 0;

    /* What is in front of the first ID belongs to the open run. */
    const size_t all = lined->groups * TL_LINEUP_BYTES;
    const size_t lead = lined->n_ids ? lined->at[0] - lined->at[0] % AUX % 2u : all;
    memcpy(tl_tpiu_run_end(t), lined->bytes, lead);
    t->run.n += lead;
    t->run_joins = offset + lined->groups * FOUR;
    if (lined->n_ids) {
        uint64_t ids[2] = {0, 0};
        const struct piece *const end = cut(pieces, lined, t->id, ids);
        rc = tl_tpiu_flush_run(t);
        for (const struct piece *piece = pieces; piece < end && rc >= 0; piece++) {
            const struct tl_run run = run_at(lined, offset, piece);
            if (piece->from || piece->moved) /* not that of the open run */
                rc = t->sink.run(t->sink.context, piece->id, &run);
        }
        t->id = end->id;
        t->ids_new[0] |= ids[0] & ~(uint64_t)1;
        t->ids_new[1] |= ids[1] & (((uint64_t)1 << (TL_TPIU_FIRST_RESERVED - 64)) - 1);
        t->run = run_at(lined, offset, end);
        t->run.p = memcpy(t->buffer + FRAME, t->run.p, t->run.n);
        t->run_joins = t->run.n ? offset + lined->groups * FOUR : TL_NO_OFFSET;
    }
    return rc < 0 ? rc : (int64_t)(lined->groups * 4);
}

/* ---- apart ------------------------------------------------------------------------------ */

#define QUIET 16          /* groups without an ID behind which gather() does better */
#define FEW   4           /* groups for which dealing does not pay */
#define TURNS (16 * FOUR) /* bytes behind them that are not dealt */

/* Byte `i` of frames, behind the first one. */
static unsigned place_of(const struct tl_run_frame *frames, unsigned i)
{
    if (!frames)
        return i;
    const struct tl_run_frame *const frame = &frames[i / FRAME];
    return frame->at + i % FRAME + (i % FRAME < frame->cut ? 0 : TL_RUN_FOOTER);
}

static int deliver_share(struct tl_tpiu *t, const struct tl_share *share, uint64_t offset,
                         const struct tl_run_frame *frames)
{
    struct tl_run_map map = {.p = share->bytes,
                             .n = share->n,
                             .offset = offset,
                             .deal = &t->deal,
                             .share = share,
                             .frame = frames,
                             .place = t->place};
    const struct tl_run run = {share->bytes, share->n, offset + place_of(frames, share->first),
                               TL_RUN_SCATTERED, &map};
    return t->sink.run(t->sink.context, share->id, &run);
}

/*
 * Deliver all shares, those that begin first before the others. In which order they do cannot be
 * foretold: each is put where as many are in front of it as begin before it.
 */
static int deliver_shares(struct tl_tpiu *t, uint64_t offset, const struct tl_run_frame *frames)
{
    const struct tl_share *share[TL_DEAL_SHARES], *order[TL_DEAL_SHARES];
    size_t n = 0;
    int rc = TL_OK;
    for (size_t k = 0; k < t->deal.n_shares; k++) {
        share[n] = &t->deal.share[k];
        t->ids_new[share[n]->id / 64] |= (uint64_t)1 << share[n]->id % 64;
        n += share[n]->n > 0;
    }
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        for (size_t k = 0; k < n; k++)
            before += share[k]->first < share[i]->first;
        order[before] = share[i];
    }
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = deliver_share(t, order[i], offset, frames);
    return rc;
}

/* Deal as many groups as can be, at most `groups`. Returns how many. */
static size_t deal(struct tl_tpiu *t, const uint8_t *p, size_t groups, size_t quiet)
{
    t->deal.wanted[0] = t->sink.apart[0];
    t->deal.wanted[1] = t->sink.apart[1];
    t->deal.id = t->id;
    t->deal.quiet = quiet;
    return t->dealer(&t->deal, p, groups < TL_DEAL_GROUPS ? groups : TL_DEAL_GROUPS);
}

/* What has been dealt. `frames`: where they are; NULL: from `offset` on without any gap. */
static int deliver_dealt(struct tl_tpiu *t, uint64_t offset, const struct tl_run_frame *frames)
{
    int rc = tl_tpiu_flush_run(t);
    if (rc == TL_OK)
        rc = deliver_shares(t, offset, frames);
    t->id = t->deal.id;
    return rc;
}

int64_t tl_tpiu_take_apart(struct tl_tpiu *t, const uint8_t *p, size_t frames, uint64_t offset)
{
    if (offset < t->turns_until)
        return 0;
    const size_t done = 4 * deal(t, p, frames / 4, QUIET);
    const int rc = done ? deliver_dealt(t, offset, NULL) : TL_OK;
    /* No synchronisation word: one that may not come apart speaks, and likely does so again. */
    if (done < 4 * FEW && done < frames / 4 * 4 && t->sync == TL_TPIU_ALIGNED)
        t->turns_until = offset + done * FRAME + TURNS;
    t->mixed = t->deal.n_shares > 1;
    return rc < 0 ? rc : (int64_t)done;
}

/* ---- frames with FSYNCs between them ---------------------------------------------------- */

#define UNIT_MOST (4 + FRAME + 2 * TL_RUN_FOOTER + 4) /* with what has to be known behind it */
#define FEWEST    64                                  /* frames to try with */
static_assert(FEWEST << TL_TPIU_LUCK == TL_DEAL_GROUPS * 4, "all that there is room for");

static bool is_fsync(const uint8_t *p)
{
    return tl_le32(p) == FSYNC_LE;
}

/*
 * Put together frames that lie between two FSYNCs each, `most` at most; `left`: bytes until a
 * footer.
 */
static size_t collect_from_blocks(struct tl_tpiu *t, const uint8_t *p, size_t n, size_t left,
                                  size_t most)
{
    const uint8_t *const begin = p, *const end = p + n;
    size_t frames = 0;
    while (frames < most && end - p >= UNIT_MOST + FRAME && left >= 4 && is_fsync(p)) {
        uint8_t *const out = t->frames + frames * FRAME;
        p += 4;
        left -= 4;
        if (left == 0) {
            p += TL_RUN_FOOTER;
            left = BLOCK_USE;
        }
        t->frame_at[frames] = (struct tl_run_frame){(uint16_t)(p - begin), FRAME};
        memcpy(out, p, FRAME);
        if (left < FRAME) {
            t->frame_at[frames].cut = (uint16_t)left;
            p += TL_RUN_FOOTER;
            memcpy(out + left, p + left, FRAME);
            left += BLOCK_USE;
        }
        p += FRAME;
        left -= FRAME;
        if (left == 0) {
            p += TL_RUN_FOOTER;
            left = BLOCK_USE;
        }
        frames += left >= 4 && is_fsync(p); /* not one that a footer cuts */
    }
    return frames;
}

/* Put a frame, `at` bytes behind the first one, behind those there are. */
static inline void add_frame(struct tl_tpiu *t, size_t frames, const uint8_t *p, size_t at)
{
    memcpy(t->frames + frames * FRAME, p, FRAME);
    t->frame_at[frames] = (struct tl_run_frame){(uint16_t)at, FRAME};
}

/* The same of four that are adjacent, with one store for where they are. */
static inline void add_four(struct tl_tpiu *t, size_t frames, const uint8_t *p, size_t at)
{
    typedef uint16_t where __attribute__((vector_size(4 * sizeof(struct tl_run_frame))));
    static_assert(sizeof(struct tl_run_frame) == 2 * sizeof(uint16_t), "pairs");
    const where of_first = {0, FRAME, FRAME, FRAME, 2 * FRAME, FRAME, 3 * FRAME, FRAME};
    const where at_only = {0xffff, 0, 0xffff, 0, 0xffff, 0, 0xffff, 0};
    const where all = of_first + (((where){0} + (uint16_t)at) & at_only);
    memcpy(t->frames + frames * FRAME, p, FOUR);
    memcpy(&t->frame_at[frames], &all, sizeof all);
}

/*
 * The same of frames with FSYNCs here and there, the first one at `p`: fours of frames up to one.
 */
static size_t collect(struct tl_tpiu *t, const uint8_t *p, size_t n, size_t most)
{
    const uint8_t *const begin = p, *const end = p + n;
    size_t frames = 0, whole = 0;
    while (frames < most && end - p >= 4 + FRAME + 4) {
        if (is_fsync(p)) {
            whole = frames % 4 ? whole : frames;
            p += 4;
        } else if (frames == 0) {
            break;
        }
        const bool four =
            frames % 4 == 0 && end - p >= (ptrdiff_t)FOUR + 8 &&
            !(is_fsync(p + FRAME) | is_fsync(p + 2 * FRAME) | is_fsync(p + 3 * FRAME));
        if (four)
            add_four(t, frames, p, (size_t)(p - begin));
        else
            add_frame(t, frames, p, (size_t)(p - begin));
        p += four ? FOUR : FRAME;
        frames += four ? 4 : 1;
    }
    return frames % 4 == 0 && is_fsync(p) ? frames : whole;
}

/* Is there an FSYNC in front of frame `i`, perhaps with a footer? */
static bool follows_fsync(const struct tl_tpiu *t, size_t i)
{
    const struct tl_run_frame *const last = &t->frame_at[i - 1];
    const unsigned end = last->at + FRAME + (last->cut < FRAME ? TL_RUN_FOOTER : 0);
    return (t->frame_at[i].at - end) & 4;
}

int64_t tl_tpiu_take_units(struct tl_tpiu *t, const uint8_t *p, size_t n, size_t left,
                           uint64_t offset)
{
    const bool known = is_source(t->id) && t->sink.apart[t->id / 64] >> t->id % 64 & 1;
    const bool blocks = left != SIZE_MAX;
    const size_t most = (size_t)FEWEST << t->luck;
    const bool each = blocks || (n >= 2 * 4 + FRAME && is_fsync(p + 4 + FRAME));
    if (!known || t->lost || !(each || t->mixed))
        return 0;
    const size_t frames =
        blocks ? collect_from_blocks(t, p, n, left, most) : collect(t, p, n, most);
    const size_t quiet = each ? TL_DEAL_GROUPS : QUIET;
    size_t done = 4 * deal(t, t->frames, frames / 4, quiet);
    const bool stopped = done < frames / 4 * 4;
    if (stopped) { /* What comes next is to be an FSYNC. */
        size_t sure = done;
        while (sure > 0 && !follows_fsync(t, sure))
            sure -= 4;
        if (sure < done)
            done = 4 * deal(t, t->frames, sure / 4, quiet);
    }
    if (stopped || done == 0) {
        t->luck = 0;
        t->mixed = false;
    } else if (t->luck < TL_TPIU_LUCK) {
        t->luck++;
    }
    if (done == 0)
        return 0;
    const int rc = deliver_dealt(t, offset, t->frame_at);
    const struct tl_run_frame *const last = &t->frame_at[done - 1];
    t->window = __builtin_bswap64(tl_le64(t->frames + done * FRAME - 8));
    return rc < 0 ? rc : last->at + FRAME + (last->cut < FRAME ? TL_RUN_FOOTER : 0);
}
