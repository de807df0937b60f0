/* SPDX-License-Identifier: MIT */
/*
 * Dumps are compared by bytes, with bounded numbers of positions: a TSC names the place at once,
 * and without one, equal bytes that are too many for coincidence do. What two dumps share is
 * decoded once, otherwise the program would seem to have run twice.
 */
#include "perf/snapshot.h"

#include "pt/packet.h"

enum {
    MIN_SAME = 32,       /* equal bytes that cannot be coincidence */
    MAX_TAIL = 1 << 20,  /* maximum bytes kept without a TSC */
    MAX_TRIES = 1 << 12, /* maximum positions compared in a dump */
    HEADER_MAX = 4096    /* maximum bytes of a PSB+ */
};

void tl_perf_snapshot_fini(struct tl_perf_snapshot *s)
{
    tl_buf_fini(&s->tail);
}

void tl_perf_snapshot_state(struct tl_perf_snapshot *s, struct tl_state *state)
{
    tl_state_buf(state, &s->tail, SIZE_MAX);
    tl_state_u64(state, &s->tsc);
    tl_state_bool(state, &s->has_tsc);
    tl_state_bool(state, &s->any);
}

/* Read the TSC of the PSB+ at byte `at`. */
static bool read_tsc(struct tl_bytes in, size_t at, uint64_t *tsc)
{
    static const struct tl_pt_config config = {0};
    const size_t end = in.n - at < HEADER_MAX ? in.n : at + HEADER_MAX;
    while (at < end) {
        struct tl_pt_packet p = {0};
        const int size = tl_pt_parse(&config, (struct tl_bytes){in.p + at, in.n - at}, &p);
        if (size <= 0 || p.kind == TL_PT_PSBEND || p.kind == TL_PT_OVF)
            return false;
        if (p.kind == TL_PT_TSC) {
            *tsc = p.tsc;
            return true;
        }
        at += (size_t)size;
    }
    return false;
}

/* Find the last PSB+ with a TSC; in.n: none. */
static size_t last_tsc(struct tl_bytes in, uint64_t *tsc)
{
    struct tl_bytes rest = in;
    for (unsigned i = 0; i < MAX_TRIES; i++) {
        const size_t psb = tl_pt_find_psb_backward(rest);
        if (psb == rest.n)
            break;
        if (read_tsc(in, psb, tsc))
            return psb;
        rest.n = psb;
    }
    return in.n;
}

/* Find the PSB+ with this TSC; in.n: none. */
static size_t find_tsc(struct tl_bytes in, uint64_t tsc)
{
    for (size_t at = 0; at < in.n;) {
        const size_t psb = at + tl_pt_find_psb((struct tl_bytes){in.p + at, in.n - at});
        uint64_t its = 0;
        if (psb >= in.n)
            break;
        if (read_tsc(in, psb, &its) && its == tsc)
            return psb;
        at = psb + TL_PT_PSB_SIZE;
    }
    return in.n;
}

/* Number of equal bytes at the ends of both. */
static size_t same_ends(struct tl_bytes a, struct tl_bytes b)
{
    size_t n = 0;
    while (n < a.n && n < b.n && a.p[a.n - 1 - n] == b.p[b.n - 1 - n])
        n++;
    return n;
}

/* Position in `dump` of the end of the longest suffix of `tail` found there; 0: none. */
static size_t find_end(struct tl_bytes tail, struct tl_bytes dump)
{
    size_t best = 0, length = 0;
    if (tail.n < MIN_SAME)
        return 0;
    const uint8_t *const last = tail.p + tail.n - MIN_SAME;
    for (size_t at = 0, tries = 0; at + MIN_SAME <= dump.n && tries < MAX_TRIES; at++) {
        const uint8_t *const hit = memmem(dump.p + at, dump.n - at, last, MIN_SAME);
        if (!hit)
            break;
        at = (size_t)(hit - dump.p);
        const size_t end = at + MIN_SAME;
        const size_t same = same_ends(tail, (struct tl_bytes){dump.p, end});
        if (same > length) {
            length = same;
            best = end;
        }
        tries++;
    }
    return best;
}

static int keep_tail(struct tl_perf_snapshot *s, struct tl_bytes dump)
{
    size_t from = last_tsc(dump, &s->tsc);
    s->has_tsc = from < dump.n;
    if (!s->has_tsc)
        from = dump.n > MAX_TAIL ? dump.n - MAX_TAIL : 0;
    s->any = true;
    tl_buf_reset(&s->tail);
    return tl_buf_add(&s->tail, dump.p + from, dump.n - from);
}

size_t tl_perf_padding(struct tl_bytes dump)
{
    size_t n = 0;
    while (n < TL_PERF_PAD_MAX && n < dump.n && dump.p[dump.n - 1 - n] == 0)
        n++;
    return n;
}

/* Number of equal bytes at the beginnings of both. */
static size_t same_beginnings(struct tl_bytes a, struct tl_bytes b)
{
    size_t n = 0;
    while (n < a.n && n < b.n && a.p[n] == b.p[n])
        n++;
    return n;
}

/*
 * The older dump's bytes from its PSB on were found at `from`: return the end of the known bytes.
 */
static size_t known_after(struct tl_bytes tail, struct tl_bytes dump, size_t from, size_t *padding)
{
    const struct tl_bytes rest = {dump.p + from, dump.n - from};
    const size_t same = same_beginnings(tail, rest);
    if (same < tail.n && same < rest.n && tail.n - same <= tl_perf_padding(tail)) {
        *padding = tail.n - same;
        return from + same;
    }
    return rest.n > tail.n ? from + tail.n : dump.n;
}

int tl_perf_snapshot_join(struct tl_perf_snapshot *s, struct tl_bytes dump, size_t *known,
                          size_t *padding)
{
    struct tl_bytes tail = {s->tail.p, s->tail.n};
    int joined = 0;
    *known = *padding = 0;
    if (s->any && s->has_tsc) {
        const size_t psb = find_tsc(dump, s->tsc);
        joined = psb < dump.n;
        if (joined)
            *known = known_after(tail, dump, psb, padding);
    } else if (s->any) {
        const size_t zeros = tl_perf_padding(tail);
        tail.n -= zeros;
        *known = find_end(tail, dump);
        joined = *known > 0;
        size_t same = 0; /* zeros that are not padding */
        while (joined && same < zeros && *known + same < dump.n && dump.p[*known + same] == 0)
            same++;
        *known += same;
        *padding = joined ? zeros - same : 0;
    }
    if (joined && *known == dump.n) /* nothing new: keep the older dump's tail */
        return joined;
    const int rc = keep_tail(s, dump);
    return rc < 0 ? rc : joined;
}
