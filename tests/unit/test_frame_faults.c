/* SPDX-License-Identifier: MIT */
/*
 * Faults in captures: flipped bits; bytes dropped, repeated and inserted; in generated captures of
 * several sources and in real ones, in every container. Each damaged capture is compared with the
 * undamaged one, stream by stream: everything before the fault is the same, and so is everything
 * after the stream's next synchronisation point.
 */
#include "hurt_capture.h"

#include <malloc.h>

enum { KINDS = 5 };

/* ---- faults --------------------------------------------------------------------------------- */

static const char *const kinds[KINDS] = {"flip", "drop", "double", "insert", "overwrite"};

/* A copy of the capture with a fault of this kind at `at`; `*end` is the first intact byte. */
static void damage(const struct tl_buf *from, struct tl_buf *to, unsigned kind, size_t at,
                   struct tl_sim_rng *rng, size_t *end)
{
    uint8_t other = (uint8_t)tl_sim_rand(rng);
    size_t drop = 0, more = 0;
    tl_buf_reset(to);
    switch (kind) {
    case 0:
        other = from->p[at] ^ (uint8_t)(1u << tl_sim_below(rng, 8));
        drop = more = 1;
        break;
    case 1:
        drop = 1;
        break;
    case 2:
        other = from->p[at];
        more = 1;
        break;
    case 3:
        more = 1;
        break;
    default:
        drop = more = 1;
        break;
    }
    *end = at + drop;
    assert_int_equal(tl_buf_add(to, from->p, at), TL_OK);
    assert_int_equal(tl_buf_add(to, &other, more), TL_OK);
    assert_int_equal(tl_buf_add(to, from->p + *end, from->n - *end), TL_OK);
}

static uint64_t fsync_after(const struct tl_buf *b, uint64_t from)
{
    while (from + 4 <= b->n && memcmp(b->p + from, "\xff\xff\xff\x7f", 4) != 0)
        from++;
    return from;
}

/* In frames without synchronisation a stream recovers at the next ID. */
static uint64_t id_after(const struct tl_buf *b, uint64_t from)
{
    from = (from + 15) & ~15ULL;
    while (from < b->n && (from % 16 == 15 || from % 2 || !(b->p[from] & 1)))
        from++;
    return from;
}

/*
 * The offset where frames without synchronisation are aligned again: after unknown sources have
 * appeared in some frames. They are not if the rest is too short to tell, or the configuration does
 * not match anyway; and in a DSTREAM capture with as few FSYNCs as here, footers shifted by a few
 * bytes are not noticed until one is next to an FSYNC (test_tpiu has captures with more).
 */
static uint64_t out_of_step(const struct capture *c, const struct outcome *whole, uint64_t end)
{
    if (c->setup.sync == TL_SYNC_DSTREAM || c->bytes.n - end < 8192 || c->setup.n_sources < 2 ||
        whole->faults)
        return UINT64_MAX;
    return end + 16 * 16;
}

/* Test `n` faults, one at a time. Returns how many of them were noticed. */
static unsigned check_faults(const struct capture *c, unsigned n, uint64_t seed, const char *name)
{
    struct tl_sim_rng rng = {seed};
    struct outcome whole, hurt, pieces;
    struct tl_buf bad = {0};
    unsigned noticed = 0;
    decode(c, c->bytes.p, c->bytes.n, c->bytes.n, true, &whole);
    for (unsigned i = 0; i < n; i++) {
        const unsigned kind = i % KINDS;
        const size_t at = (size_t)(tl_sim_rand(&rng) % c->bytes.n);
        const bool framed = c->setup.container == TL_CONTAINER_TPIU;
        const bool moved = kind >= 1 && kind <= 3;
        size_t end;
        char what[200];
        damage(&c->bytes, &bad, kind, at, &rng, &end);
        snprintf(what, sizeof what, "%s: %s at %zu (seed %" PRIu64 ", fault %u)", name, kinds[kind],
                 at, seed, i);
        decode(c, bad.p, bad.n, 1 + tl_sim_below(&rng, 3000), false, &hurt);
        decode(c, bad.p, bad.n, bad.n, false, &pieces);
        struct bounds b = {.from = at, .until = end};
        if (framed) {
            /* in frames, the bytes of a packet can be this far apart */
            b.from = at < 1200 ? 0 : at - 1200;
            b.until = c->setup.sync == TL_SYNC_NONE || (c->setup.sync == TL_SYNC_DSTREAM && moved)
                          ? (moved ? out_of_step(c, &whole, end) : id_after(&c->bytes, end) + 16)
                          : fsync_after(&c->bytes, fsync_after(&c->bytes, end + 1) + 4) + 64;
        } else {
            b.from = at < 40 ? 0 : at - 40;
        }
        unsigned touched = 0;
        for (unsigned id = 0; id < IDS; id++) {
            char where[240];
            snprintf(where, sizeof where, "%s, stream %02x", what, id);
            check_lane(&whole.lanes[id], &hurt.lanes[id], &b, where);
            touched += !is_same(&whole.lanes[id], &hurt.lanes[id]);
        }
        check_same(&hurt, &pieces);
        if (framed && c->setup.sync == TL_SYNC_NONE && !moved && at % 2 && at % 16 != 15 &&
            touched > 1) /* the byte belonged to one source */
            fail_msg("%s: touches %u streams", what, touched);
        if (hurt.faults > whole.faults) {
            noticed++;
            if (!whole.faults && hurt.fault_end + 32 <= at)
                fail_msg("%s: told as %" PRIu64 "..%" PRIu64, what, hurt.fault_at, hurt.fault_end);
        }
        outcome_fini(&hurt);
        outcome_fini(&pieces);
    }
    outcome_fini(&whole);
    tl_buf_fini(&bad);
    return noticed;
}

static void generated_captures(void **state)
{
    const uint64_t from = first_seed();
    static const char *const names[] = {"aligned", "fsync", "hsync", "dstream"};
    for (unsigned sync = 0; sync < 4; sync++) {
        for (uint64_t seed = from; seed < from + 2; seed++) {
            struct capture c;
            make_capture(&c, (enum tl_tpiu_sync)sync, seed);
            const unsigned noticed = check_faults(&c, 60, seed, names[sync]);
            print_message("%s: %zu bytes, %u of 60 faults noticed\n", names[sync], c.bytes.n,
                          noticed);
            assert_true(noticed > 5);
            capture_fini(&c);
        }
    }
}

/* Captures that begin anywhere: everything is correct from each stream's first synchronisation
 * point on. */
static void any_beginning(void **state)
{
    for (unsigned sync = 0; sync < 3; sync++) {
        struct capture c;
        struct outcome whole, rest;
        make_capture(&c, (enum tl_tpiu_sync)sync, 77);
        decode(&c, c.bytes.p, c.bytes.n, c.bytes.n, true, &whole);
        for (unsigned from = 1; from < 60; from++) {
            decode(&c, c.bytes.p + from, c.bytes.n - from, 4096, false, &rest);
            const struct bounds b = {0, from + 2500};
            for (unsigned id = 0; id < IDS; id++) {
                char what[80];
                snprintf(what, sizeof what, "container %u from byte %u, stream %02x", sync, from,
                         id);
                check_lane(&whole.lanes[id], &rest.lanes[id], &b, what);
                assert_true(!whole.lanes[id].n || rest.lanes[id].n > whole.lanes[id].n / 2);
            }
            outcome_fini(&rest);
        }
        outcome_fini(&whole);
        capture_fini(&c);
    }
}

/* A source that cannot be decoded is reported, and the others are not affected. */
static void unsupported_neighbour(void **state)
{
    struct capture c;
    struct outcome whole, without;
    make_capture(&c, TL_TPIU_ALIGNED, 5);
    decode(&c, c.bytes.p, c.bytes.n, c.bytes.n, false, &whole);
    struct tl_source *const source = &c.setup.sources[1];
    source->protocol = TL_PROTO_NONE;
    snprintf(source->type, sizeof source->type, "PTM1.1");
    snprintf(source->device, sizeof source->device, "PTM_7");
    decode(&c, c.bytes.p, c.bytes.n, 1000, false, &without);
    assert_int_equal(without.faults, 1);
    assert_string_equal(without.last_reason,
                        "trace source PTM_7 of type 'PTM1.1' is not supported");
    for (unsigned id = 0; id < IDS; id++)
        assert_true(id == source->id ? !without.lanes[id].n
                                     : is_same(&whole.lanes[id], &without.lanes[id]));
    outcome_fini(&whole);
    outcome_fini(&without);
    capture_fini(&c);
}

static int no_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    return TL_OK;
}

/* Endless input that is not trace, or is out of order, needs constant memory. */
static void bounded_memory(void **state)
{
    enum { PIECE = 1 << 16, PIECES = 24, LIMIT = 64 << 20 };
    static const uint8_t masks[] = {0xff, 0x83, 0x01, 0x00};
    uint8_t *const piece = malloc(PIECE);
    assert_non_null(piece);
    for (unsigned sync = 0; sync < 4; sync++) {
        struct capture c;
        struct tl_decode *d;
        struct tl_sim_rng rng = {sync};
        struct tl_fail fail = {0};
        const struct tl_decode_sink sink = {.items = no_items};
        make_capture(&c, (enum tl_tpiu_sync)sync, 9);
        assert_int_equal(tl_decode_new(&d, &c.setup, c.image, &sink, &fail), TL_OK);
        const struct mallinfo2 before = mallinfo2();
        size_t most = 0;
        for (unsigned k = 0; k < PIECES; k++) {
            const size_t at = tl_sim_below(&rng, (uint32_t)c.bytes.n - 4096);
            for (size_t i = 0; i < PIECE; i++)
                piece[i] = k % 2 ? c.bytes.p[at + i % 4093] : (uint8_t)tl_sim_rand(&rng);
            for (size_t i = 0; k % 2 == 0 && i < PIECE; i++)
                piece[i] &= masks[k / 2 % 4];
            assert_int_equal(tl_decode_push(d, piece, PIECE - k), TL_OK);
            const struct mallinfo2 now = mallinfo2();
            const size_t used = now.uordblks + now.hblkhd;
            most = used > most ? used : most;
        }
        if (before.uordblks) /* unknown with a sanitizer's heap */
            assert_true(most - before.uordblks - before.hblkhd < LIMIT);
        assert_int_equal(tl_decode_finish(d), TL_OK);
        tl_decode_free(d);
        capture_fini(&c);
    }
    free(piece);
}

static void hurt_real(const struct capture *c, const char *name, size_t buffer, void *faults)
{
    *(unsigned *)faults += check_faults(c, c->bytes.n > 20000 ? 5 : 25, 7 + buffer, name);
}

/* Faults in real captures, as far as they have synchronisation points. */
static void snapshots(void **state)
{
    unsigned faults = 0;
    const unsigned buffers = real_captures(hurt_real, &faults);
    print_message("%u buffers, %u faults noticed\n", buffers, faults);
    assert_true(buffers > 0 && faults > buffers);
}

/* Faults in a single source without frames. */
static void unformatted(void **state)
{
    for (unsigned core = 0; core < 3; core++) {
        struct tl_sim_program program;
        struct tl_sim_core *sim;
        struct capture c = {0};
        struct tl_buf elf = {0};
        const struct tl_sim_program_options shape = {.seed = core, .extra = 10};
        const struct tl_sim_core_options options = {
            .seed = core, .irq_every = 900, .etm = tl_sim_etm4_unlike(core, 3)};
        tl_setup_init(&c.setup);
        c.setup.container = TL_CONTAINER_SINGLE;
        struct tl_source *const source = tl_setup_add_source(&c.setup);
        assert_non_null(source);
        assert_int_equal(tl_sim_etm4_source(&options.etm, source), TL_OK);
        source->id = 0x10;
        assert_int_equal(tl_sim_program_init(&program, &shape), TL_OK);
        assert_int_equal(tl_sim_core_new(&sim, &program, &options, &c.bytes, NULL, NULL), TL_OK);
        assert_int_equal(tl_sim_core_step(sim, 12000), TL_OK);
        assert_int_equal(tl_sim_core_flush(sim), TL_OK);
        assert_int_equal(tl_sim_program_elf(&program, &elf), TL_OK);
        assert_int_equal(tl_image_new(&c.image), TL_OK);
        assert_int_equal(tl_image_add_elf(c.image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY,
                                          "program", NULL),
                         TL_OK);
        assert_int_equal(tl_image_freeze(c.image), TL_OK);
        const unsigned noticed = check_faults(&c, 100, 5 + core, "unformatted");
        print_message("unformatted: %zu bytes, %u of 100 faults noticed\n", c.bytes.n, noticed);
        assert_true(noticed > 15);
        tl_sim_core_free(sim);
        tl_sim_program_fini(&program);
        tl_buf_fini(&elf);
        capture_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unformatted),
        cmocka_unit_test(any_beginning),
        cmocka_unit_test(unsupported_neighbour),
        cmocka_unit_test(bounded_memory),
        cmocka_unit_test(snapshots),
        cmocka_unit_test(generated_captures),
    };
    return cmocka_run_group_tests_name("frame_faults", tests, NULL, NULL);
}
