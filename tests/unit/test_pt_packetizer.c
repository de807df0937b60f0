/* SPDX-License-Identifier: MIT */
/* The Intel PT packetizer: in chunks of any size, and when saved and loaded between them, it gives
 * the same result as a simple loop over all bytes, for intact and damaged streams. */
#include "decode/decode.h"
#include "pt/packet_text.h"
#include "pt/packetizer.h"
#include "sim/pt_encoder.h"
#include "unit/random.h"

#include <inttypes.h>

struct account {
    struct tl_buf text;
    const struct tl_pt_config *config;
    size_t entries;
};

static void say(struct account *a, const char *what, uint64_t offset, int64_t value)
{
    assert_int_equal(tl_buf_printf(&a->text, "%" PRIu64 " %s %" PRIi64 "\n", offset, what, value),
                     TL_OK);
}

static size_t say_packet(struct account *a, struct tl_bytes in, size_t at, uint64_t base)
{
    struct tl_pt_packet p = {.offset = base + at};
    char line[TL_PT_TEXT_MAX];
    const int size = tl_pt_parse(a->config, (struct tl_bytes){in.p + at, in.n - at}, &p);
    if (size < 0)
        return 0;
    tl_pt_packet_text(line, &p, 0);
    assert_int_equal(tl_buf_printf(&a->text, "%s\n", line), TL_OK);
    return (size_t)size;
}

static int on_tape(void *context, const struct tl_pt_tape *tape, const struct tl_pt_piece *piece)
{
    struct account *const a = context;
    size_t at = piece->from;
    while (at < piece->to) {
        const size_t size = say_packet(a, piece->bytes, at, piece->base);
        assert_true(size > 0);
        at += size;
    }
    assert_int_equal(at, piece->to);
    for (size_t i = 0; i < tape->n; i++)
        assert_true(piece->from <= tl_pt_tape_at(tape, i) && tl_pt_tape_at(tape, i) <= piece->to);
    a->entries += tape->n;
    return TL_OK;
}

static int on_error(void *context, int why, uint64_t offset)
{
    say(context, "error", offset, why);
    return TL_OK;
}

static int on_loss(void *context, uint64_t offset, uint64_t bytes)
{
    assert_true(bytes > 0);
    say(context, "loss", offset, (int64_t)bytes);
    return TL_OK;
}

static void by_loop(struct account *a, struct tl_bytes in)
{
    size_t at = tl_pt_find_psb(in), lost = 0;
    for (;;) {
        if (at > lost)
            say(a, "loss", lost, (int64_t)(at - lost));
        for (size_t size = 1; size > 0 && at < in.n; at += size)
            size = say_packet(a, in, at, 0);
        if (at == in.n)
            return;
        struct tl_pt_packet p;
        const int why = tl_pt_parse(a->config, (struct tl_bytes){in.p + at, in.n - at}, &p);
        say(a, "error", at, why);
        if (why == TL_AGAIN)
            return;
        lost = at;
        at = tl_pt_resync(in, at);
    }
}

static void in_chunks(struct account *a, struct tl_bytes in, uint32_t most, bool saved)
{
    static struct tl_pt_packetizer p;
    const struct tl_pt_packet_sink sink = {a, on_tape, on_error, on_loss};
    tl_pt_packetizer_init(&p, a->config, &sink);
    for (size_t i = 0; i < in.n;) {
        const size_t some = 1 + next() % most;
        const size_t n = some < in.n - i ? some : in.n - i;
        /* A copy of exactly these bytes lets a sanitizer detect reads past the end. */
        uint8_t *const chunk = malloc(n);
        memcpy(chunk, in.p + i, n);
        assert_int_equal(tl_pt_packetizer_push(&p, (struct tl_bytes){chunk, n}), TL_OK);
        free(chunk);
        i += n;
        if (saved) {
            struct tl_buf bytes = {0};
            struct tl_state save = {.out = &bytes};
            tl_pt_packetizer_state(&p, &save);
            tl_pt_packetizer_init(&p, a->config, &sink);
            struct tl_state load = {.in = {bytes.p, bytes.n}};
            tl_pt_packetizer_state(&p, &load);
            assert_true(save.rc >= 0 && load.rc >= 0 && load.in.n == 0);
            tl_buf_fini(&bytes);
        }
    }
    assert_int_equal(tl_pt_packetizer_finish(&p), TL_OK);
}

static void compare(struct tl_bytes in, const struct tl_pt_config *config)
{
    static const uint32_t sizes[] = {1, 3, 17, 64, 100, 5000, UINT32_MAX};
    struct account want = {.config = config};
    by_loop(&want, in);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct account got = {.config = config};
        in_chunks(&got, in, sizes[k], k & 1);
        if (got.text.n != want.text.n ||
            (got.text.n && memcmp(got.text.p, want.text.p, got.text.n) != 0)) {
            size_t i = 0;
            while (i < got.text.n && i < want.text.n && got.text.p[i] == want.text.p[i])
                i++;
            const size_t from = i < 60 ? 0 : i - 60;
            fprintf(stderr, "chunks of %u:\n%.*s\n--- not\n%.*s\n", sizes[k],
                    (int)(got.text.n - from < 160 ? got.text.n - from : 160), got.text.p + from,
                    (int)(want.text.n - from < 160 ? want.text.n - from : 160), want.text.p + from);
            fail();
        }
        tl_buf_fini(&got.text);
    }
    tl_buf_fini(&want.text);
}

static void encode(struct tl_sim_pt *pt, struct tl_sim_rng *rng)
{
    for (unsigned k = tl_sim_below(rng, 40); k > 0; k--)
        tl_sim_pt_bare(pt, TL_PT_OVF);
    for (unsigned groups = tl_sim_below(rng, 6); groups > 0; groups--) {
        for (unsigned k = tl_sim_between(rng, 1, 3); k > 0; k--)
            tl_sim_pt_bare(pt, TL_PT_PSB);
        for (unsigned k = tl_sim_below(rng, 80); k > 0; k--) {
            struct tl_pt_packet p;
            tl_sim_pt_random(&p, rng);
            tl_sim_pt_packet(pt, &p);
        }
    }
}

static void damaged_streams(void **state)
{
    (void)state;
    static const struct tl_pt_config configs[2] = {{.family = 0},
                                                   {.errata = {.skd007 = true, .skz84 = true}}};
    struct tl_sim_rng rng = {next()};
    for (unsigned i = 0; i < 150; i++) {
        struct tl_sim_pt pt = {0};
        encode(&pt, &rng);
        for (unsigned k = 0; k < 4 && pt.out.n > 0; k++) {
            const uint32_t n = (uint32_t)pt.out.n, at = tl_sim_below(&rng, n);
            compare((struct tl_bytes){pt.out.p, k ? 1 + tl_sim_below(&rng, n) : n},
                    &configs[i & 1]);
            /* A byte, or a PSB pattern, which may be truncated or overlap another. */
            pt.out.p[at] = (uint8_t)next();
            for (uint32_t j = 0; (k & 1) && j < tl_sim_below(&rng, 40) && at + j < n; j++)
                pt.out.p[at + j] = j & 1 ? 0x82 : 0x02;
        }
        tl_sim_pt_fini(&pt);
    }
}

/* Streams that fill many tapes. */
static void long_streams(void **state)
{
    (void)state;
    static const struct tl_pt_config config;
    struct tl_sim_rng rng = {next()};
    struct tl_sim_pt pt = {0};
    tl_sim_pt_program(&pt, &rng, 60000, true);
    compare((struct tl_bytes){pt.out.p, pt.out.n}, &config);
    tl_sim_pt_fini(&pt);
}

/* ---- as a format of the decode layer --------------------------------------------------------- */

static int on_line(void *context, const struct tl_decode_stream *stream, const char *line)
{
    assert_string_equal(stream->name, "pt.200");
    return tl_buf_printf(context, "%s\n", line);
}

static void list(struct tl_buf *out, struct tl_bytes in, size_t chunk)
{
    const struct tl_decode_sink sink = {.context = out, .packet = on_line};
    struct tl_setup setup;
    struct tl_decode *decode;
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "pt,id=200", NULL), TL_OK);
    assert_int_equal(tl_decode_new(&decode, &setup, NULL, &sink, NULL), TL_OK);
    for (size_t i = 0; i < in.n; i += chunk)
        assert_int_equal(tl_decode_push(decode, in.p + i, in.n - i < chunk ? in.n - i : chunk),
                         TL_OK);
    assert_int_equal(tl_decode_finish(decode), TL_OK);
    tl_decode_free(decode);
    tl_setup_fini(&setup);
}

static void listing_of_a_capture(void **state)
{
    (void)state;
    struct tl_sim_pt pt = {0};
    struct tl_buf whole = {0}, pieces = {0};
    tl_sim_pt_bare(&pt, TL_PT_OVF);
    tl_sim_pt_bare(&pt, TL_PT_PSB);
    tl_sim_pt_branch(&pt, true);
    tl_sim_pt_branch(&pt, false);
    tl_sim_pt_ip(&pt, TL_PT_TIP, 0x401000);
    assert_int_equal(tl_buf_add(&pt.out, "\x05zz", 3), TL_OK);
    tl_sim_pt_bare(&pt, TL_PT_PSB);
    assert_int_equal(tl_buf_add(&pt.out, "\x19", 1), TL_OK);
    list(&whole, (struct tl_bytes){pt.out.p, pt.out.n}, pt.out.n);
    list(&pieces, (struct tl_bytes){pt.out.p, pt.out.n}, 1);
    assert_int_equal(tl_buf_add(&whole, "", 1), TL_OK);
    assert_int_equal(tl_buf_add(&pieces, "", 1), TL_OK);
    assert_string_equal((char *)whole.p, "0 c8 NOT_SYNC bytes=2\n"
                                         "2 c8 PSB\n"
                                         "18 c8 TNT.8 bits=TN\n"
                                         "19 c8 TIP ipc=2 payload=0x401000\n"
                                         "24 c8 BAD_OPCODE\n"
                                         "24 c8 NOT_SYNC bytes=3\n"
                                         "27 c8 PSB\n"
                                         "43 c8 INCOMPLETE\n");
    assert_string_equal((char *)pieces.p, (char *)whole.p);
    tl_buf_fini(&whole);
    tl_buf_fini(&pieces);
    tl_sim_pt_fini(&pt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_streams),
        cmocka_unit_test(long_streams),
        cmocka_unit_test(listing_of_a_capture),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
