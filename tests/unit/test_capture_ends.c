/* SPDX-License-Identifier: MIT */
/*
 * Captures of all formats that end anywhere, as buffers do and rigs that are stopped: that is no
 * fault, what is told are the first things of the whole, and where the end is within a packet this
 * is said, by the container and the stream once each. Said is what is missing up to the end: a
 * capture that ends in front of those bytes is complete.
 */
#include "decode/decode.h"
#include "decode/ops.h"
#include "unit/hurt_flow.h"
#include "unit/seed.h"
#include "unit/soft_bytes.h"

#include <inttypes.h>

enum { LAST = 80 /* bytes, each of which is an end */ };

/* ---- captures of software trace
 * --------------------------------------------------------------- */

static void begin(struct hurt *h, const char *format)
{
    h->format = format;
    tl_setup_init(&h->setup);
    assert_int_equal(tl_setup_format(&h->setup, format, NULL), TL_OK);
}

static void soft_itm(struct hurt *h, struct tl_sim_rng *rng)
{
    begin(h, "itm");
    make_itm(&h->trace, rng, 60);
}

static void soft_stm(struct hurt *h, struct tl_sim_rng *rng)
{
    begin(h, "stm");
    make_stm(&h->trace, rng, 60);
}

static void soft_di(struct hurt *h, struct tl_sim_rng *rng)
{
    begin(h, "di");
    make_di(&h->trace, rng, 60);
}

static void ptm(struct hurt *h, struct tl_sim_rng *rng)
{
    hurt_etm3(h, rng);
    while (strcmp(h->format, "ptm") != 0) {
        hurt_fini(h);
        *h = (struct hurt){0};
        hurt_etm3(h, rng);
    }
}

static hurt_make *const makes[] = {hurt_etm,    hurt_etm3, ptm,        hurt_mtb,
                                   hurt_frames, hurt_pt,   hurt_nexus, hurt_etrace,
                                   soft_itm,    soft_stm,  soft_di};

/* ---- what is told
 * ----------------------------------------------------------------------------- */

struct heard {
    uint64_t *told; /* addresses of instructions, values of software */
    size_t n, cap;
    unsigned ends, stream_ends, faults;
    uint64_t from, to; /* bytes that are said to be a packet's begin */
};

static void tell(struct heard *h, uint64_t what)
{
    assert_int_equal(tl_grow(&h->told, &h->cap, h->n + 1, sizeof *h->told), TL_OK);
    h->told[h->n++] = what;
}

static void tell_block(struct heard *h, const struct tl_block *b, uint32_t n)
{
    struct tl_insn insn;
    for (uint32_t i = 0, at = 0; i < n; i++, at += insn.size) {
        tl_block_insn(b, at, &insn);
        tell(h, b->pc + at);
    }
}

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct heard *const h = context;
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == TL_ITEM_BLOCK)
            tell_block(h, items[i].block, items[i].n);
        for (uint32_t k = 0; items[i].kind == TL_ITEM_SOFTWARE && k < items[i].n; k++)
            tell(h, items[i].data[k]);
    }
    return TL_OK;
}

static int hear_loss(void *context, const struct tl_decode_loss *loss)
{
    struct heard *const h = context;
    h->faults += loss->fault;
    if (strcmp(loss->reason, TL_LOSS_CUT_OFF) != 0)
        return TL_OK;
    h->ends++;
    h->stream_ends += loss->stream != NULL;
    h->from = loss->offset;
    h->to = loss->offset + loss->bytes;
    return TL_OK;
}

static void end_at(const struct hurt *h, const struct tl_image *image, size_t n, struct heard *out)
{
    const struct tl_decode_sink sink = {.context = out, .items = hear, .loss = hear_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    *out = (struct heard){.ends = 0};
    if (tl_decode_new(&d, &h->setup, image, &sink, &fail) < 0)
        fail_msg("%s: %s", h->format, fail.text);
    assert_int_equal(tl_decode_push(d, h->trace.p, n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

/* ---- what must be true
 * ------------------------------------------------------------------------ */

/* MTB's registers say where in its RAM the trace begins: less of it has other records at its end.
 * ETMv3 tells behind an instruction that it was not completed, so of the last one this is not
 * known. */
static bool is_begin(const struct hurt *h, const struct heard *part, const struct heard *whole)
{
    const size_t n = part->n - (strcmp(h->format, "etm3") == 0 && part->n > 0);
    return strcmp(h->format, "mtb") == 0 ||
           (n <= whole->n &&
            (n == 0 || memcmp(part->told, whole->told, n * sizeof *whole->told) == 0));
}

/* What the capture's first `n` bytes tell; returns whether they end within a packet. */
static bool check_end(const struct hurt *h, const struct tl_image *image, size_t n,
                      const struct heard *whole)
{
    struct heard part, less = {0};
    const bool framed = h->setup.container == TL_CONTAINER_TPIU;
    end_at(h, image, n, &part);
    if (part.ends > 0 && !framed && strcmp(h->format, "stm") != 0) /* its packets: in mid-byte */
        end_at(h, image, part.from, &less);
    if (part.faults > whole->faults || part.stream_ends > 1 || part.ends > 1u + framed ||
        (part.ends > 0 && !framed && part.to > n) || less.ends > 0 || !is_begin(h, &part, whole))
        fail_msg("%s, %zu of %zu bytes: %u faults, %u ends, at %" PRIu64 " to %" PRIu64 "; %u at "
                 "%" PRIu64,
                 h->format, n, h->trace.n, part.faults, part.ends, part.from, part.to, less.ends,
                 less.from);
    free(part.told);
    free(less.told);
    return part.ends > 0;
}

static void ends_anywhere(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof makes / sizeof *makes; i++) {
        struct tl_sim_rng rng = {test_seed() + i};
        struct hurt h = {0};
        struct heard whole;
        unsigned said = 0;
        makes[i](&h, &rng);
        struct tl_image *const image = hurt_image(&h, 0, &rng);
        end_at(&h, image, h.trace.n, &whole);
        for (size_t k = 1; k < LAST && k < h.trace.n; k++)
            said += check_end(&h, image, h.trace.n - k, &whole);
        print_message("%s: %u of %d ends are within a packet\n", h.format, said, LAST - 1);
        assert_true(whole.n > 0 && said > 0 && said < LAST);
        free(whole.told);
        tl_image_free(image);
        hurt_fini(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
