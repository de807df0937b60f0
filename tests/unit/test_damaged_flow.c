/* SPDX-License-Identifier: MIT */
/*
 * Traces of all formats, whole and damaged, with images in which functions and pages are missing:
 * no step from one instruction to the next is impossible, and what is told has happened, but for a
 * window behind damage. Each round makes its own program, trace and damage from the seed, so that a
 * longer run is only a matter of time.
 *
 *   TL_SEED=N TL_ROUNDS=PERCENT test_damaged_flow [FORMAT]
 */
#include "decode/decode.h"
#include "decode/ops.h"
#include "steps.h"
#include "unit/hurt_flow.h"
#include "unit/seed.h"

#include <inttypes.h>

enum {
    ROUNDS = 16,
    NEAR = 64 /* bytes in front of damage that are read together with it */,
    SHORT = 200,
    MUCH = 4000000 /* instructions: damage may claim 2^32 branches, which are not all listened to */
};

static const char *const formats[] = {"etm",     "etm3", "mtb",     "tpiu",        "pt",
                                      "n-trace", "zcmt", "e-trace", "e-trace-zcmt"};
static const char *only; /* this format */

/* ---- what is told -------------------------------------------------------------------------------
 */

/* An instruction; or pc UINT64_MAX: from here on the flow was lost for a while. */
struct told {
    uint64_t pc, offset;
};

struct heard {
    struct steps steps;
    struct steps_given given;
    struct told *told;
    size_t n, cap;
    size_t joint; /* the connection was lost before this byte; 0: it was not */
};

static void tell(struct heard *h, uint64_t pc, uint64_t offset)
{
    assert_int_equal(tl_grow(&h->told, &h->cap, h->n + 1, sizeof *h->told), TL_OK);
    h->told[h->n++] = (struct told){pc, offset};
}

static void tell_block(struct heard *h, const struct tl_block *b, uint32_t n, uint64_t offset)
{
    struct tl_insn insn;
    for (uint32_t i = 0, at = 0; i < n; i++, at += insn.size) {
        tl_block_insn(b, at, &insn);
        tell(h, b->pc + at, offset);
    }
}

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct heard *const h = context;
    (void)stream;
    steps_take(&h->steps, items, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t kind = items[i].kind;
        if (kind == TL_ITEM_BLOCK)
            tell_block(h, items[i].block, items[i].n, items[i].offset);
        for (uint32_t k = 0; kind == TL_ITEM_PATH && k < items[i].n; k++) {
            const struct tl_block *const b = tl_path_block(items[i].path[k]);
            tell_block(h, b, b->n, items[i].offset);
        }
        if (kind == TL_ITEM_GAP || kind == TL_ITEM_TRACE_ON || kind == TL_ITEM_UNKNOWN)
            tell(h, UINT64_MAX, items[i].offset);
    }
    return h->n > MUCH ? TL_CANCELLED : TL_OK;
}

static int hear_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    struct heard *const h = context;
    (void)stream;
    steps_give_line(&h->given, line);
    return TL_OK;
}

static void decode(const struct hurt *h, const struct tl_image *image, bool packets, bool paths,
                   struct heard *heard)
{
    const struct tl_decode_sink sink = {
        .context = heard, .items = packets ? NULL : hear, .packet = packets ? hear_packet : NULL};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    if (tl_decode_new(&d, &h->setup, image, &sink, &fail) < 0)
        fail_msg("%s: %s", h->format, fail.text);
    if (paths)
        tl_decode_allow_paths(d);
    const size_t joint = heard->joint;
    int rc = tl_decode_push(d, h->trace.p, joint);
    if (rc == TL_OK && joint > 0)
        rc = tl_decode_reconnect(d, 0);
    if (rc == TL_OK)
        rc = tl_decode_push(d, h->trace.p + joint, h->trace.n - joint);
    if (rc == TL_OK)
        rc = tl_decode_finish(d);
    assert_int_equal(rc, heard->n > MUCH ? TL_CANCELLED : TL_OK);
    tl_decode_free(d);
}

/* Formats whose listings have the addresses that the trace gives. */
static bool lists_addresses(const struct hurt *h)
{
    return strcmp(h->format, "etm4") == 0 || strcmp(h->format, "ete") == 0 ||
           strcmp(h->format, "tpiu") == 0 || strcmp(h->format, "pt") == 0;
}

static void listen_joined(const struct hurt *h, const struct tl_image *image, bool paths,
                          size_t joint, struct heard *heard)
{
    *heard = (struct heard){.joint = joint};
    if (lists_addresses(h)) {
        decode(h, NULL, true, false, heard);
        heard->steps.given = &heard->given;
    }
    decode(h, image, false, paths, heard);
}

static void listen(const struct hurt *h, const struct tl_image *image, bool paths,
                   struct heard *heard)
{
    listen_joined(h, image, paths, 0, heard);
}

static void heard_fini(struct heard *h)
{
    steps_given_fini(&h->given);
    free(h->told);
}

/* ---- what must be true
 * --------------------------------------------------------------------------- */

struct round {
    uint64_t seed;
    uint64_t insns, wrong;
};

static void require_possible(const struct hurt *h, const struct heard *heard, struct round *r,
                             const char *what)
{
    r->insns += heard->steps.insns;
    if (heard->steps.impossible == 0)
        return;
    r->wrong += heard->steps.impossible;
    print_error("%s, TL_SEED=0x%" PRIx64 ", %s: %" PRIu64 " impossible, %s\n", h->format, r->seed,
                what, heard->steps.impossible, heard->steps.what);
}

/* The first place in the truth from `from` on where the `n` instructions at `run` are; SIZE_MAX:
 * there is none. */
static size_t find_run(const struct hurt *h, size_t from, const struct told *run, size_t n)
{
    for (size_t at = from; at + n <= h->n_truth; at++) {
        size_t i = 0;
        while (i < n && h->truth[at + i] == run[i].pc)
            i++;
        if (i == n)
            return at;
    }
    return SIZE_MAX;
}

/* Bytes whose instructions may be wrong. */
struct hole {
    uint64_t from, to;
};

static bool is_within(const struct told *told, const struct hole *hole)
{
    return told->offset >= hole->from && told->offset < hole->to;
}

/* Check that what was told outside of `hole` was executed, in that order, and without anything
 * between instructions told one after the other. `again`: behind the hole, another run of the same
 * program is told, or the same one from another place on. */
static void require_runs(const struct hurt *h, const struct heard *heard, const struct hole *hole,
                         bool again, struct round *r, const char *what)
{
    size_t in_truth = 0;
    if (h->unclear)
        return;
    for (size_t i = 0, n; i<heard->n; i += n> 0 ? n : 1) {
        n = 0;
        if (again && heard->told[i].offset >= hole->to) {
            in_truth = 0;
            again = false;
        }
        while (i + n < heard->n && heard->told[i + n].pc != UINT64_MAX &&
               !is_within(&heard->told[i + n], hole))
            n++;
        const size_t at = find_run(h, in_truth, heard->told + i, n);
        if (at == SIZE_MAX) {
            r->wrong++;
            print_error("%s, TL_SEED=0x%" PRIx64 ", %s: %zu instructions from %" PRIx64
                        " on (offset %" PRIu64 ") were not executed\n",
                        h->format, r->seed, what, n, heard->told[i].pc, heard->told[i].offset);
            return;
        }
        in_truth = at + n;
    }
}

static void require_true(const struct hurt *h, const struct heard *heard, const struct hole *hole,
                         struct round *r, const char *what)
{
    require_runs(h, heard, hole, false, r, what);
}

/* Whole traces, and all of the code, in pieces that adjoin: what was executed is told, and no more.
 */
static void miss_nothing(const struct hurt *h, struct tl_sim_rng *rng, struct round *r)
{
    struct heard heard;
    struct tl_image *const image = hurt_image(h, 0, rng);
    listen(h, image, tl_sim_below(rng, 2), &heard);
    require_possible(h, &heard, r, "whole");
    size_t n = 0, i = 0;
    for (; i < heard.n && n < h->n_truth; i++)
        if (heard.told[i].pc == h->truth[n])
            n++;
        else if (heard.told[i].pc != UINT64_MAX)
            break;
    while (i < heard.n && heard.told[i].pc == UINT64_MAX)
        i++;
    if (i < heard.n || n < h->n_truth) {
        r->wrong++;
        print_error("%s, TL_SEED=0x%" PRIx64 ", whole: %zu of %zu instructions, then %" PRIx64
                    " (offset %" PRIu64 ")\n",
                    h->format, r->seed, n, h->n_truth, i < heard.n ? heard.told[i].pc : 0,
                    i < heard.n ? heard.told[i].offset : h->trace.n);
    }
    heard_fini(&heard);
    tl_image_free(image);
}

/* Whole traces, with code missing. */
static void miss_code(const struct hurt *h, struct tl_sim_rng *rng, struct round *r)
{
    static const struct hole none = {0};
    struct heard heard;
    struct tl_image *const image = hurt_image(h, 5 + tl_sim_below(rng, 60), rng);
    listen(h, image, tl_sim_below(rng, 2), &heard);
    require_possible(h, &heard, r, "code missing");
    require_true(h, &heard, &none, r, "code missing");
    heard_fini(&heard);
    tl_image_free(image);
}

/* Any damage, with or without all of the code. */
static void damage_much(struct hurt *h, struct tl_sim_rng *rng, struct round *r)
{
    struct heard heard;
    if (h->trace.n < SHORT)
        return;
    struct tl_image *const image = hurt_image(h, tl_sim_below(rng, 2) * 20, rng);
    const uint32_t places = (uint32_t)h->trace.n - 64;
    for (unsigned n = 1 + tl_sim_below(rng, 12); n > 0; n--)
        hurt_once(&h->trace, (enum hurt_kind)tl_sim_below(rng, HURT_KINDS),
                  tl_sim_below(rng, places), rng);
    listen(h, image, tl_sim_below(rng, 2), &heard);
    require_possible(h, &heard, r, "damaged");
    heard_fini(&heard);
    tl_image_free(image);
}

/* Damage at one place: in front of it and some way behind it all is true. */
static void damage_once(struct hurt *h, struct tl_sim_rng *rng, struct round *r)
{
    struct heard heard;
    if (h->window == 0 || h->trace.n < 2 * h->window || h->trace.n < SHORT)
        return;
    struct tl_image *const image = hurt_image(h, tl_sim_below(rng, 2) * 20, rng);
    const size_t at = tl_sim_below(rng, (uint32_t)h->trace.n - 64);
    const size_t end = hurt_once(&h->trace, (enum hurt_kind)tl_sim_below(rng, HALVES), at, rng);
    const struct hole hole = {at < NEAR ? 0 : at - NEAR, end + h->window};
    listen(h, image, false, &heard);
    require_possible(h, &heard, r, "damaged once");
    require_true(h, &heard, &hole, r, "damaged once");
    heard_fini(&heard);
    tl_image_free(image);
}

/* ETMv3 tells behind an instruction that it was not completed, so of the last one in a capture that
 * is cut off this is not known. */
static void forgive_last(const struct hurt *h, struct heard *heard)
{
    while (strcmp(h->format, "etm3") == 0 && heard->n > 0 &&
           heard->told[--heard->n].pc == UINT64_MAX) {
    }
}

/* Cut off at any byte at both ends, as a buffer is that wrapped or was read in mid-trace: what is
 * told behind the first bytes was executed. MTB's RAM is read as a whole, its registers say where
 * it begins. */
static void cut_ends(struct hurt *h, struct tl_sim_rng *rng, struct round *r)
{
    const struct hole first = {0, NEAR};
    struct heard heard;
    if (h->trace.n < SHORT || strcmp(h->format, "mtb") == 0)
        return;
    struct tl_image *const image = hurt_image(h, 0, rng);
    const size_t n = tl_sim_below(rng, (uint32_t)h->trace.n / 2);
    h->trace.n -= n + tl_sim_below(rng, 100);
    memmove(h->trace.p, h->trace.p + n, h->trace.n);
    listen(h, image, tl_sim_below(rng, 2), &heard);
    require_possible(h, &heard, r, "cut");
    forgive_last(h, &heard);
    require_true(h, &heard, &first, r, "cut");
    heard_fini(&heard);
    tl_image_free(image);
}

/* The connection was lost: bytes are missing, and it is known where. */
static void lose_connection(struct hurt *h, struct tl_sim_rng *rng, struct round *r)
{
    struct heard heard;
    if (h->trace.n < SHORT || strcmp(h->format, "mtb") == 0)
        return;
    struct tl_image *const image = hurt_image(h, 0, rng);
    const size_t at = 1 + tl_sim_below(rng, (uint32_t)h->trace.n - 100), left = h->trace.n - at,
                 n = tl_sim_below(rng, (uint32_t)left / 2);
    const struct hole hole = {at < NEAR ? 0 : at - NEAR, at + NEAR};
    memmove(h->trace.p + at, h->trace.p + at + n, left - n);
    h->trace.n -= n;
    listen_joined(h, image, tl_sim_below(rng, 2), at, &heard);
    require_possible(h, &heard, r, "connection lost");
    require_true(h, &heard, &hole, r, "connection lost");
    heard_fini(&heard);
    tl_image_free(image);
}

/* Two captures one behind the other, without a word between them: each of them whole, or the first
 * cut off at its end, or the second at its begin. Padding of whole frames tells that the first one
 * ends. */
static void join_captures(struct hurt *h, struct tl_sim_rng *rng, struct round *r)
{
    static const uint8_t padding[16] = {0x01};
    struct heard heard;
    char what[32];
    if (h->window == 0 || h->trace.n < SHORT || strcmp(h->format, "mtb") == 0)
        return;
    struct tl_image *const image = hurt_image(h, 0, rng);
    const bool framed = strcmp(h->format, "tpiu") == 0, cut = tl_sim_below(rng, 2),
               begun = tl_sim_below(rng, 2);
    const size_t n = h->trace.n, unit = framed ? sizeof padding : 1;
    const size_t end = cut ? tl_sim_below(rng, (uint32_t)n) / unit * unit : n,
                 from = begun ? tl_sim_below(rng, (uint32_t)n) / unit * unit : 0;
    struct tl_buf joined = {0};
    assert_int_equal(tl_buf_add(&joined, h->trace.p, end), TL_OK);
    if (framed && !cut)
        assert_int_equal(tl_buf_add(&joined, padding, sizeof padding), TL_OK);
    const size_t seam = joined.n;
    assert_int_equal(tl_buf_add(&joined, h->trace.p + from, n - from), TL_OK);
    tl_buf_fini(&h->trace);
    h->trace = joined;
    const bool told = framed && !cut && !(joined.p[seam] & 1); /* no ID follows the padding */
    const bool unsure = begun ? !told : cut && h->swallows;
    const struct hole hole = {seam < NEAR ? 0 : seam - NEAR, seam + (unsure ? h->window : NEAR)};
    snprintf(what, sizeof what, "joined%s%s", cut ? ", cut" : "", begun ? ", begun" : "");
    listen(h, image, false, &heard);
    require_possible(h, &heard, r, what);
    require_runs(h, &heard, &hole, true, r, what);
    heard_fini(&heard);
    tl_image_free(image);
}

/* ---- bytes that are missing
 * ------------------------------------------------------------------- */

struct losses {
    unsigned ends, missing;
};

static int count_loss(void *context, const struct tl_decode_loss *loss)
{
    struct losses *const l = context;
    l->ends += strcmp(loss->reason, TL_LOSS_CUT_OFF) == 0;
    l->missing += strcmp(loss->reason, TL_LOSS_STORED) == 0;
    return TL_OK;
}

static int ignore_items(void *context, const struct tl_decode_stream *stream,
                        const struct tl_item *items, size_t n)
{
    (void)context;
    (void)stream;
    (void)items;
    (void)n;
    return TL_OK;
}

/* Where bytes are missing in mid-capture, that is said, and not that the capture ends there. */
static void miss_bytes(const struct hurt *h, size_t from, size_t n)
{
    struct losses losses = {0};
    const struct tl_decode_sink sink = {
        .context = &losses, .items = ignore_items, .loss = count_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    if (tl_decode_new(&d, &h->setup, NULL, &sink, &fail) < 0)
        fail_msg("%s: %s", h->format, fail.text);
    assert_int_equal(tl_decode_push(d, h->trace.p, from), TL_OK);
    if (tl_decode_skip(d, n) == TL_OK) {
        assert_int_equal(tl_decode_push(d, h->trace.p + from + n, h->trace.n - from - n), TL_OK);
        assert_int_equal(losses.ends, 0);
        assert_int_equal(losses.missing, 1);
    }
    tl_decode_free(d);
}

static void missing_bytes(void **state)
{
    static hurt_make *const makes[] = {hurt_etm, hurt_etm3,  hurt_mtb,   hurt_frames,
                                       hurt_pt,  hurt_nexus, hurt_etrace};
    (void)state;
    for (unsigned i = 0; i < 3 * sizeof makes / sizeof *makes; i++) {
        struct tl_sim_rng rng = {test_seed() + i};
        struct hurt h = {0};
        makes[i / 3](&h, &rng);
        for (size_t from = 100; from < 120 && h.trace.n > 2 * SHORT; from++)
            miss_bytes(&h, from, 1 + i);
        hurt_fini(&h);
    }
}

static void one(hurt_make *make, struct round *r, const char **format)
{
    static void (*const ways[])(struct hurt *, struct tl_sim_rng *,
                                struct round *) = {damage_once, damage_much, cut_ends};
    struct tl_sim_rng rng = {r->seed};
    struct hurt h = {0};
    make(&h, &rng);
    *format = h.format;
    miss_nothing(&h, &rng, r);
    miss_code(&h, &rng, r);
    ways[tl_sim_below(&rng, sizeof ways / sizeof *ways)](&h, &rng, r);
    hurt_fini(&h);
    if (r->seed % 4 != 0)
        return;
    rng = (struct tl_sim_rng){r->seed};
    h = (struct hurt){0};
    make(&h, &rng);
    lose_connection(&h, &rng, r);
    hurt_fini(&h);
    rng = (struct tl_sim_rng){r->seed};
    h = (struct hurt){0};
    make(&h, &rng);
    join_captures(&h, &rng, r);
    hurt_fini(&h);
}

static void rounds(const char *name, hurt_make *make)
{
    const unsigned n = test_rounds(ROUNDS);
    struct round all = {.seed = 0};
    const uint64_t seed = test_seed();
    if (only && strcmp(only, name) != 0)
        skip();
    for (unsigned i = 0; i < n; i++) {
        const char *format;
        all.seed = seed + i;
        one(make, &all, &format);
    }
    print_message("%s: %" PRIu64 " instructions, %" PRIu64 " wrong\n", name, all.insns, all.wrong);
    assert_int_equal(all.wrong, 0);
}

static void etm(void **state)
{
    (void)state;
    rounds("etm", hurt_etm);
}

static void etm3(void **state)
{
    (void)state;
    rounds("etm3", hurt_etm3);
}

/* A capture that ends within a packet which takes the last instruction back; an I-sync where the
 * program is followed, or a branch to where it goes anyway, and a branch from another place behind
 * it. */
static void etm3_taken_back(void **state)
{
    static const uint64_t seeds[] = {0x4e63d, 0x61000138, 0x6200019c, 0xb1000925};
    struct round r = {.seed = 0};
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        r.seed = seeds[i];
        struct tl_sim_rng rng = {r.seed};
        struct hurt h = {0};
        hurt_etm3(&h, &rng);
        miss_nothing(&h, &rng, &r);
        miss_code(&h, &rng, &r);
        cut_ends(&h, &rng, &r);
        damage_once(&h, &rng, &r);
        damage_much(&h, &rng, &r);
        hurt_fini(&h);
    }
    assert_int_equal(r.wrong, 0);
}

static void mtb(void **state)
{
    (void)state;
    rounds("mtb", hurt_mtb);
}

static void frames(void **state)
{
    (void)state;
    rounds("tpiu", hurt_frames);
}

/* Cut at both ends: the only synchronisation packet remains intact in an alignment next to the
 * right one, too. */
static void frames_cut(void **state)
{
    struct round r = {.seed = 0xa1000030};
    struct tl_sim_rng rng = {r.seed};
    struct hurt h = {0};
    (void)state;
    hurt_frames(&h, &rng);
    miss_nothing(&h, &rng, &r);
    miss_code(&h, &rng, &r);
    cut_ends(&h, &rng, &r);
    hurt_fini(&h);
    assert_int_equal(r.wrong, 0);
}

/* Cut, or begun anew, within a frame: a synchronisation packet remains intact in the alignment that
 * was assumed, in front of the one by which the right one is found. */
static void frames_begun_before(void **state)
{
    static const uint64_t seeds[] = {0xb1000701, 0xb300080c, 0xb8000078};
    struct round r = {.seed = 0};
    const char *format;
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        r.seed = seeds[i];
        one(hurt_frames, &r, &format);
    }
    assert_int_equal(r.wrong, 0);
}

static void pt(void **state)
{
    (void)state;
    rounds("pt", hurt_pt);
}

static void nexus(void **state)
{
    (void)state;
    rounds("n-trace", hurt_nexus);
}

static void zcmt(void **state)
{
    (void)state;
    rounds("zcmt", hurt_zcmt);
}

/* A jump by a table that is missing, in SiFive's dialect: it leads anywhere. */
static void zcmt_without_table(void **state)
{
    static const uint64_t seeds[] = {0x123458f, 0xb100001a};
    struct round r = {.seed = 0};
    const char *format;
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        r.seed = seeds[i];
        one(hurt_zcmt, &r, &format);
    }
    assert_int_equal(r.wrong, 0);
}

/* A place that was reported and is reached once more, by a direct jump, in front of a trap. */
static void etrace_round_to_trap(void **state)
{
    struct round r = {.seed = 0x15ca621ca3d015b8};
    const char *format;
    (void)state;
    one(hurt_etrace, &r, &format);
    assert_int_equal(r.wrong, 0);
}

/* Once the walk begins anew behind missing code, what was in front of it is not known: not the half
 * of a sequential jump, nor whether a support packet's options hold, nor the return addresses that
 * the encoder keeps. */
static void etrace_behind_holes(void **state)
{
    static const uint64_t seeds[] = {0xf4441,  0xf4cc4,  0x1e883a, 0x1e8a54,
                                     0x1e8b1a, 0x1e8fab, 0x77123cf};
    struct round r = {.seed = 0};
    const char *format;
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        r.seed = seeds[i];
        one(hurt_etrace, &r, &format);
    }
    assert_int_equal(r.wrong, 0);
}

/* Encoders that count inferred returns: of several returns to one address, and behind a packet for
 * the place where the walk stands, the one that the packet tells of. */
static void etrace_counted_returns(void **state)
{
    static const uint64_t seeds[] = {0x99b0a,   0x7712366, 0x7712395,
                                     0x7712406, 0x7712476, 0x77124e8};
    struct round r = {.seed = 0};
    const char *format;
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        r.seed = seeds[i];
        one(hurt_etrace, &r, &format);
    }
    assert_int_equal(r.wrong, 0);
}

/* Captures cut off at their begin: bytes that look like a support packet, a true one in mid-trace,
 * behind which the encoder goes on remembering, records that begin elsewhere, a sequential jump at
 * the first place, whose first half was executed in front of it, options that were found and fit
 * better than others by far, but not the first packet, or that no packet was there to try. */
static void etrace_begun_before(void **state)
{
    static const uint64_t seeds[] = {
        0x15ff8,    0x16334,    0x16889,    0x168a6,    0x16a3d,    0x16ac5,    0x16dbf,
        0x173ef,    0x177bb,    0x6acfe6,   0x6ad5e5,   0x6ad7eb,   0x6adf0e,   0x2114a257,
        0x2114a2d1, 0x2114a3d3, 0x2114a4ba, 0xb532d17,  0x510000f4, 0x52000076, 0x52000084,
        0x5200010f, 0x560001d1, 0x560002c5, 0x730000f1, 0x750000ca};
    struct round r = {.seed = 0};
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        r.seed = seeds[i];
        struct tl_sim_rng rng = {r.seed};
        struct hurt h = {0};
        hurt_etrace(&h, &rng);
        miss_nothing(&h, &rng, &r);
        miss_code(&h, &rng, &r);
        cut_ends(&h, &rng, &r);
        hurt_fini(&h);
    }
    assert_int_equal(r.wrong, 0);
}

/* Cut off at the begin, and damaged behind that: support packets that tell the options again and
 * again, sets of options that fit alike for a while, or of which wrong ones fit more where code is
 * missing, or packets that report returns, by which an encoder infers them, or of which the right
 * one leads to missing code soon. */
static void etrace_begun_before_and_damaged(void **state)
{
    static const uint64_t seeds[] = {0x81000009, 0x81000026, 0x81000075, 0x81000083,
                                     0x810000a1, 0x81000101, 0x81000122, 0x8100016f,
                                     0x81000179, 0x920000bc, 0x9300003e};
    struct round r = {.seed = 0};
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        r.seed = seeds[i];
        struct tl_sim_rng rng = {r.seed};
        struct hurt h = {0};
        hurt_etrace(&h, &rng);
        miss_nothing(&h, &rng, &r);
        miss_code(&h, &rng, &r);
        cut_ends(&h, &rng, &r);
        damage_once(&h, &rng, &r);
        damage_much(&h, &rng, &r);
        hurt_fini(&h);
    }
    assert_int_equal(r.wrong, 0);
}

static void etrace(void **state)
{
    (void)state;
    rounds("e-trace", hurt_etrace);
}

static void etrace_zcmt(void **state)
{
    (void)state;
    rounds("e-trace-zcmt", hurt_etrace_zcmt);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etm),
        cmocka_unit_test(etm3),
        cmocka_unit_test(etm3_taken_back),
        cmocka_unit_test(mtb),
        cmocka_unit_test(frames),
        cmocka_unit_test(frames_cut),
        cmocka_unit_test(frames_begun_before),
        cmocka_unit_test(pt),
        cmocka_unit_test(nexus),
        cmocka_unit_test(zcmt),
        cmocka_unit_test(zcmt_without_table),
        cmocka_unit_test(etrace),
        cmocka_unit_test(etrace_zcmt),
        cmocka_unit_test(missing_bytes),
        cmocka_unit_test(etrace_round_to_trap),
        cmocka_unit_test(etrace_behind_holes),
        cmocka_unit_test(etrace_counted_returns),
        cmocka_unit_test(etrace_begun_before),
        cmocka_unit_test(etrace_begun_before_and_damaged),
    };
    only = argc > 1 ? argv[1] : NULL;
    size_t i = 0;
    while (only && i < sizeof formats / sizeof *formats && strcmp(only, formats[i]) != 0)
        i++;
    if (i == sizeof formats / sizeof *formats) {
        fprintf(stderr, "no format '%s'\n", only);
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
