/* SPDX-License-Identifier: MIT */
/*
 * The last bytes of a push are kept with those before them, and the first bytes of the next one are
 * processed together with them, so that only a few bytes are ever copied. The bytes before are
 * needed because a bad packet may have consumed the beginning of the PSB that ends the loss.
 */
#include "pt/packetizer.h"

#include <assert.h>

static_assert(sizeof(struct tl_pt_packetizer) / 1024 == 24, "as the manual says");

/* Bytes of a push that are processed together with those of previous pushes. */
#define JOINED 64

void tl_pt_packetizer_init(struct tl_pt_packetizer *p, const struct tl_pt_config *config,
                           const struct tl_pt_packet_sink *sink)
{
    *p = (struct tl_pt_packetizer){.sink = *sink, .config = *config};
    tl_pt_tape_reset(&p->tape);
}

void tl_pt_packetizer_begin(struct tl_pt_packetizer *p, uint64_t offset)
{
    p->end = p->lost = offset;
}

void tl_pt_packetizer_move(struct tl_pt_packetizer *p, uint64_t offset)
{
    if (!p->in_sync)
        p->lost += offset - p->end;
    p->end = offset;
}

/* A run of 02 82 reaches the end of the bytes and may continue after it, so its last PSB is
 * unknown. */
static bool may_continue(struct tl_bytes in, size_t psb)
{
    const size_t after = psb + TL_PT_PSB_SIZE;
    return after == in.n || (after + 1 == in.n && in.p[after] == 0x02);
}

/*
 * Search for the next PSB from byte `*at` on. Sets `*at` to it, in sync then, or else to the first
 * byte that a PSB may begin at.
 */
static int seek(struct tl_pt_packetizer *p, struct tl_bytes in, size_t *at, uint64_t base,
                bool last)
{
    const size_t found = *at + tl_pt_find_psb((struct tl_bytes){in.p + *at, in.n - *at});
    if (found == in.n || (may_continue(in, found) && !last)) {
        const size_t kept = found < in.n ? in.n - found : last ? 0 : TL_PT_HISTORY;
        *at = in.n - *at > kept ? in.n - kept : *at;
        return TL_OK;
    }
    *at = found;
    p->in_sync = true;
    tl_pt_tape_reset(&p->tape);
    return base + found > p->lost ? p->sink.loss(p->sink.context, p->lost, base + found - p->lost)
                                  : TL_OK;
}

/* Process complete packets from byte `*at` of `in` on; `base` is the offset of in.p. `last`: no
 * more bytes follow. */
static int take(struct tl_pt_packetizer *p, struct tl_bytes in, size_t *at, uint64_t base,
                bool last)
{
    int rc = TL_OK;
    while (rc >= 0) {
        if (!p->in_sync)
            rc = seek(p, in, at, base, last);
        if (rc < 0 || !p->in_sync)
            break;
        struct tl_pt_piece piece = {.bytes = in, .from = *at, .base = base};
        const int why = tl_pt_tape_fill(&p->tape, &p->config, in, at);
        piece.to = *at;
        if (piece.to > piece.from)
            rc = p->sink.tape(p->sink.context, &p->tape, &piece);
        if (why == TL_AGAIN || rc < 0)
            break;
        if (why == TL_OK)
            continue;
        rc = p->sink.error(p->sink.context, why, base + *at);
        p->in_sync = false;
        p->lost = base + *at;
        *at -= *at < TL_PT_HISTORY ? *at : TL_PT_HISTORY;
    }
    return rc;
}

/* Keep the last bytes so far; byte `at` of `in` is the first unprocessed one. */
static void keep_tail(struct tl_pt_packetizer *p, struct tl_bytes in, size_t at)
{
    p->n_held = (uint8_t)(in.n - at);
    const size_t history = at < TL_PT_HISTORY ? at : TL_PT_HISTORY;
    p->n_tail = (uint8_t)(history + p->n_held);
    memmove(p->tail, in.p + in.n - p->n_tail, p->n_tail);
}

int tl_pt_packetizer_push(struct tl_pt_packetizer *p, struct tl_bytes in)
{
    uint8_t bytes[sizeof p->tail + JOINED];
    const size_t some = in.n < JOINED ? in.n : JOINED;
    const size_t before = p->n_tail;
    memcpy(bytes, p->tail, before);
    if (some)
        memcpy(bytes + before, in.p, some);
    const struct tl_bytes joined = {bytes, before + some};
    size_t at = before - p->n_held;
    int rc = take(p, joined, &at, p->end - before, false);
    if (rc >= 0 && some < in.n) {
        /*
         * Enough was joined that all unprocessed bytes, with the history before them, are in `in`.
         */
        at -= before;
        rc = take(p, in, &at, p->end, false);
        keep_tail(p, in, at);
    } else {
        keep_tail(p, joined, at);
    }
    p->end += in.n;
    return rc;
}

int tl_pt_packetizer_finish(struct tl_pt_packetizer *p)
{
    const struct tl_bytes in = {p->tail, p->n_tail};
    const uint64_t base = p->end - in.n;
    size_t at = in.n - p->n_held;
    int rc = take(p, in, &at, base, true);
    p->n_held = 0;
    if (rc < 0)
        return rc;
    if (!p->in_sync)
        return p->end > p->lost ? p->sink.loss(p->sink.context, p->lost, p->end - p->lost) : TL_OK;
    return at < in.n ? p->sink.error(p->sink.context, TL_AGAIN, base + at) : TL_OK;
}

void tl_pt_packetizer_state(struct tl_pt_packetizer *p, struct tl_state *s)
{
    tl_state_u64(s, &p->end);
    if (p->in_sync)
        p->lost = 0;
    tl_state_u64(s, &p->lost);
    tl_state_bool(s, &p->in_sync);
    tl_state_u8(s, &p->n_tail, sizeof p->tail);
    tl_state_u8(s, &p->n_held, TL_PT_HELD);
    tl_state_check(s, p->n_held <= p->n_tail && p->n_tail <= p->end);
    tl_state_bytes(s, p->tail, p->n_tail);
    tl_state_u64(s, &p->tape.ip);
}
