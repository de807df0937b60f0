/* SPDX-License-Identifier: MIT */
/* The DI framer compared with the datagram encoder, with every one-word fault, and on real
 * vectors. */
#include "frame/di.h"
#include "sim/osd_encoder.h"
#include "unit/data.h"
#include "unit/random.h"

#include <stddef.h>
#include <string.h>

struct got {
    struct tl_buf packets; /* <offset u64> <n u16> <words> each */
    size_t n;
    unsigned losses;
    uint64_t lost;
};

static int on_packet(void *context, const struct tl_di_packet *packet)
{
    struct got *const g = context;
    const uint16_t n = (uint16_t)packet->n;
    assert_true(n >= TL_DI_HEADER);
    assert_int_equal(tl_buf_add(&g->packets, &packet->offset, 8), TL_OK);
    assert_int_equal(tl_buf_add(&g->packets, &n, 2), TL_OK);
    assert_int_equal(tl_buf_add(&g->packets, packet->words, 2 * packet->n), TL_OK);
    g->n++;
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct got *const g = context;
    assert_non_null(reason);
    assert_true(bytes > 0);
    g->losses++;
    g->lost += bytes;
    return TL_OK;
}

static void frame(struct got *g, const uint8_t *p, size_t n, unsigned chunk)
{
    static struct tl_di d;
    const struct tl_di_sink sink = {g, on_packet, on_loss};
    tl_di_init(&d, 0, 0, &sink);
    while (n) {
        size_t part = chunk ? 1 + next() % chunk : n;
        part = part < n ? part : n;
        assert_int_equal(tl_di_push(&d, p, part), TL_OK);
        assert_true(d.pending.n < 16 * 1024);
        p += part;
        n -= part;
    }
    assert_int_equal(tl_di_finish(&d, "unfinished"), TL_OK);
    tl_di_fini(&d);
}

static void assert_same(const struct got *a, const struct got *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->lost, b->lost);
    assert_int_equal(a->losses, b->losses);
    assert_int_equal(a->packets.n, b->packets.n);
    if (a->packets.n)
        assert_memory_equal(a->packets.p, b->packets.p, a->packets.n);
}

static void drop(struct got *g)
{
    tl_buf_fini(&g->packets);
    *g = (struct got){0};
}

static const struct tl_sim_osd_module modules[] = {
    {0, TL_SIM_OSD_SCM, 0},
    {1, TL_SIM_OSD_CTM, 32},
    {2, TL_SIM_OSD_STM, 32},
    {3, TL_SIM_OSD_UART, 0},
};

static void fill(struct tl_sim_osd *e, size_t events, unsigned width)
{
    struct tl_sim_osd_module m[4];
    memcpy(m, modules, sizeof m);
    m[1].width = m[2].width = (uint8_t)width;
    assert_int_equal(tl_sim_osd_enumerate(e, m, 4), TL_OK);
    uint32_t time = next();
    for (size_t i = 0; i < events; i++, time += next() % 100) {
        const struct tl_sim_osd_truth event = {
            .time = time, .pc = next(), .npc = next(), .call = i % 2, .ret = !(i % 2)};
        int rc;
        switch (next() % 16) {
        case 0:
            rc = tl_sim_osd_uart(e, 3, (uint8_t)next());
            break;
        case 1:
            rc = tl_sim_osd_overflow(e, 1, (uint16_t)(next() % 50), TL_SIM_OSD_CTM);
            break;
        case 2:
        case 3:
        case 4:
            rc = tl_sim_osd_stm(e, 2, width, time, (uint16_t)(next() % 9), next() % 256);
            break;
        case 5:
            rc = tl_sim_osd_read_reply(e, (uint16_t)(next() % 4), (uint16_t)(next() % 3));
            break;
        default:
            rc = tl_sim_osd_ctm(e, 1, width, &event);
        }
        assert_int_equal(rc, TL_OK);
    }
}

static void test_round_trip(void **state)
{
    for (unsigned round = 0; round < 60; round++) {
        struct tl_sim_osd e;
        tl_sim_osd_init(&e);
        e.little_endian = round % 2;
        e.max_pkt_len = (uint16_t)(12 + next() % 10);
        fill(&e, 300, 16u << round % 3);
        struct got whole = {0}, parts = {0};
        frame(&whole, e.out.p, e.out.n, 0);
        assert_int_equal(whole.n, e.packets);
        assert_int_equal(whole.lost, 0);
        const uint8_t *p = whole.packets.p;
        for (uint64_t at = 0; at < e.out.n;) { /* every packet where it should be, word by word */
            uint64_t offset;
            uint16_t n;
            memcpy(&offset, p, 8);
            memcpy(&n, p + 8, 2);
            p += 10;
            assert_int_equal(offset, at);
            for (unsigned i = 0; i <= n; i++) {
                const uint8_t *const q = e.out.p + at + 2 * i;
                uint16_t w = n;
                if (i)
                    memcpy(&w, p + 2 * (i - 1), 2);
                assert_int_equal(w, e.little_endian ? tl_le16(q) : tl_be16(q));
            }
            p += 2 * n;
            at += 2 * (1u + n);
        }
        frame(&parts, e.out.p, e.out.n, 1 + next() % 60);
        assert_same(&whole, &parts);
        drop(&whole);
        drop(&parts);
        tl_sim_osd_fini(&e);
    }
}

/* ---- faults ----------------------------------------------------------------------------- */

static uint64_t hash_packet(const uint8_t *p, size_t n)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* The packets' hashes in order, without their offsets. Returns their number. */
static size_t hashes(const struct got *g, uint64_t *out, size_t cap)
{
    size_t count = 0;
    for (size_t i = 0; i < g->packets.n && count < cap;) {
        uint16_t n;
        memcpy(&n, g->packets.p + i + 8, 2);
        out[count++] = hash_packet(g->packets.p + i + 8, 2 + 2 * (size_t)n);
        i += 10 + 2 * (size_t)n;
    }
    return count;
}

struct verdict {
    size_t lost;
    size_t invented;
};

/* The items that only `a` or only `b` has between their common beginning and common end, since
 * there is a single fault. */
static struct verdict compare(const uint64_t *a, size_t na, const uint64_t *b, size_t nb)
{
    size_t head = 0, tail = 0;
    while (head < na && head < nb && a[head] == b[head])
        head++;
    while (tail < na - head && tail < nb - head && a[na - 1 - tail] == b[nb - 1 - tail])
        tail++;
    return (struct verdict){na - head - tail, nb - head - tail};
}

enum fault { LOSE, DOUBLE, CHANGE };

/* CHANGE: the word (as stored) is XORed with `mask`. */
static void spoil(struct tl_buf *out, const uint8_t *p, size_t n, size_t word, enum fault fault,
                  uint16_t mask)
{
    const size_t at = 2 * word;
    tl_buf_reset(out);
    assert_int_equal(tl_buf_add(out, p, at), TL_OK);
    if (fault == DOUBLE)
        assert_int_equal(tl_buf_add(out, p + at, 2), TL_OK);
    if (fault == CHANGE) {
        uint8_t changed[2];
        tl_put_le16(changed, tl_le16(p + at) ^ mask);
        assert_int_equal(tl_buf_add(out, changed, 2), TL_OK);
    }
    const size_t rest = fault == DOUBLE ? at : at + 2;
    assert_int_equal(tl_buf_add(out, p + rest, n - rest), TL_OK);
}

struct tally {
    size_t faults;
    size_t worst_lost;
    size_t total_lost;
    size_t invented;
    size_t unreported;
};

static void tally_fault(struct tally *t, const struct got *clean, const struct tl_buf *bad,
                        enum fault fault)
{
    static uint64_t a[8192], b[8192];
    struct got got = {0}, parts = {0};
    frame(&got, bad->p, bad->n, 0);
    if (next() % 16 == 0) {
        frame(&parts, bad->p, bad->n, 30);
        assert_same(&got, &parts);
        drop(&parts);
    }
    const struct verdict v = compare(a, hashes(clean, a, 8192), b, hashes(&got, b, 8192));
    t->faults++;
    t->total_lost += v.lost;
    if (v.lost > t->worst_lost)
        t->worst_lost = v.lost;
    /* A changed payload word cannot be detected: the original packet counts as lost, the changed
     * one as invented. */
    if (v.invented > (fault == CHANGE))
        t->invented++;
    if (v.lost > v.invented && got.lost == 0)
        t->unreported++;
    drop(&got);
}

static void assert_tally(const char *name, const struct tally *t, enum fault fault, size_t word,
                         uint16_t mask)
{
    if (t->worst_lost > 2 || t->unreported)
        fail_msg("%s, word %zu, %s %04x: %zu packets lost, %zu unreported", name, word,
                 fault == LOSE     ? "lost"
                 : fault == DOUBLE ? "doubled"
                                   : "changed by",
                 mask, t->worst_lost, t->unreported);
}

/* Every word dropped, doubled, with each bit flipped, and replaced by `more` others. */
static void fault_all_words(const char *name, const uint8_t *p, size_t n, unsigned more)
{
    struct got clean = {0};
    struct tl_buf bad = {0};
    struct tally all = {0};
    frame(&clean, p, n, 0);
    for (size_t word = 0; word < n / 2; word++)
        for (unsigned i = 0; i < 18 + more; i++) {
            struct tally t = {0};
            const enum fault fault = i == 0 ? LOSE : i == 1 ? DOUBLE : CHANGE;
            const uint16_t mask = i < 2    ? 0
                                  : i < 18 ? (uint16_t)(1u << (i - 2))
                                           : (uint16_t)(1 + next() % UINT16_MAX);
            spoil(&bad, p, n, word, fault, mask);
            tally_fault(&t, &clean, &bad, fault);
            assert_tally(name, &t, fault, word, mask);
            all.faults++;
            all.total_lost += t.total_lost;
            all.invented += t.invented;
            all.worst_lost = t.worst_lost > all.worst_lost ? t.worst_lost : all.worst_lost;
        }
    /* A changed address can make a payload look like a packet, since there is no checksum. */
    if (all.invented * 5000 > all.faults)
        fail_msg("%s: %zu faults, %zu bogus packets", name, all.faults, all.invented);
    print_message("%s: %zu faults, worst %zu of %zu packets lost, mean %.2f\n", name, all.faults,
                  all.worst_lost, clean.n, (double)all.total_lost / (double)all.faults);
    tl_buf_fini(&bad);
    drop(&clean);
}

/* Properties of a generated stream. */
struct scene {
    unsigned width, max_pkt_len;
    bool little_endian, enumerated, ctm, stm, uart, replies;
};

static void add_event(struct tl_sim_osd *e, const struct scene *s, uint32_t time)
{
    const struct tl_sim_osd_truth event = {.time = time,
                                           .pc = 0x80000000u + next() % 65536,
                                           .npc = 0x80000000u + next() % 65536,
                                           .mode = 3,
                                           .call = next() % 2};
    const unsigned what = next() % 16;
    int rc = TL_OK;
    if (what < 2 && s->uart)
        rc = tl_sim_osd_uart(e, 3, (uint8_t)(32 + next() % 90));
    else if (what == 2 && s->ctm)
        rc = tl_sim_osd_overflow(e, 1, (uint16_t)(next() % 50), TL_SIM_OSD_CTM);
    else if (what == 3 && s->replies)
        rc = tl_sim_osd_read_reply(e, (uint16_t)(next() % 4), (uint16_t)(next() % 3));
    else if (s->stm && (what < 8 || !s->ctm))
        rc = tl_sim_osd_stm(e, 2, s->width, time, (uint16_t)(next() % 9), next() % 256);
    else if (s->ctm)
        rc = tl_sim_osd_ctm(e, 1, s->width, &event);
    else
        rc = tl_sim_osd_uart(e, 3, (uint8_t)(32 + next() % 90));
    assert_int_equal(rc, TL_OK);
}

static void make_scene(struct tl_sim_osd *e, const struct scene *s, size_t events)
{
    tl_sim_osd_init(e);
    e->little_endian = s->little_endian;
    e->max_pkt_len = (uint16_t)s->max_pkt_len;
    struct tl_sim_osd_module m[4];
    memcpy(m, modules, sizeof m);
    m[1].width = m[2].width = (uint8_t)s->width;
    if (s->enumerated)
        assert_int_equal(tl_sim_osd_enumerate(e, m, 4), TL_OK);
    uint32_t time = next();
    for (size_t i = 0; i < events; i++, time += next() % 100)
        add_event(e, s, time);
}

static void test_faults(void **state)
{
    const char *const rounds = getenv("TL_ROUNDS");
    for (unsigned round = 0; round < (rounds ? (unsigned)atoi(rounds) : 10); round++) {
        static const uint16_t limits[] = {8, 9, 10, 12, 14, 16, 31, 64, 255, 256};
        const struct scene s = {.width = 16u << round % 3,
                                .max_pkt_len = limits[round % 10],
                                .little_endian = next() % 2,
                                .enumerated = next() % 4,
                                .ctm = next() % 4,
                                .stm = next() % 4,
                                .uart = next() % 2,
                                .replies = next() % 2};
        struct tl_sim_osd e;
        make_scene(&e, &s, 40 + next() % 40);
        char name[96];
        snprintf(name, sizeof name, "made, %u bit, %u words at most%s%s%s%s%s%s", s.width,
                 s.max_pkt_len, s.little_endian ? ", le" : "", s.enumerated ? ", enum" : "",
                 s.ctm ? ", ctm" : "", s.stm ? ", stm" : "", s.uart ? ", uart" : "",
                 s.replies ? ", reg" : "");
        fault_all_words(name, e.out.p, e.out.n, 2);
        tl_sim_osd_fini(&e);
    }
}

static bool read_file(struct tl_buf *out, const char *path)
{
    FILE *const f = fopen(path, "rb");
    if (!f)
        return false;
    size_t n;
    do {
        assert_int_equal(tl_buf_reserve(out, 65536), TL_OK);
        n = fread(out->p + out->n, 1, 65536, f);
        out->n += n;
    } while (n);
    fclose(f);
    return true;
}

static void test_vectors(void **state)
{
    static const char *const names[] = {"di/ctm16_mpl12.dtd.bin", "di/ctm32_mpl12.dtd.bin",
                                        "di/ctm64_mpl12.dtd.bin", "di/ctm64_mpl16.dtd.bin",
                                        "di/check_cl_mam_write_burst.pkgdump"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096];
        struct tl_buf bytes = {0};
        if (!test_data(path, sizeof path, names[i])) {
            print_message("skipped: %s is not here\n", names[i]);
            continue;
        }
        assert_true(read_file(&bytes, path));
        struct got got = {0};
        frame(&got, bytes.p, bytes.n, 0);
        assert_int_equal(got.lost, 0);
        assert_true(got.n > 100);
        drop(&got);
        fault_all_words(names[i], bytes.p, bytes.n, 4);
        tl_buf_fini(&bytes);
    }
}

/* Noise gives no packet, needs no memory, and is reported completely. */
static void test_garbage(void **state)
{
    for (unsigned round = 0; round < 20; round++) {
        uint8_t noise[8192];
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)(round % 2 ? next() : next() & 0x81);
        struct got whole = {0}, parts = {0};
        frame(&whole, noise, sizeof noise, 0);
        frame(&parts, noise, sizeof noise, 100);
        assert_same(&whole, &parts);
        if (round % 2)
            assert_int_equal(whole.lost, sizeof noise);
        drop(&whole);
        drop(&parts);
    }
}

/* Unused header slots are also zero: they must not be mistaken for a common header. */
static void test_zeros(void **state)
{
    static const uint8_t zeros[4096];
    struct tl_sim_osd e;
    struct got only = {0}, between = {0}, parts = {0};
    frame(&only, zeros, sizeof zeros, 0);
    assert_int_equal(only.n, 0);
    assert_int_equal(only.lost, sizeof zeros);
    tl_sim_osd_init(&e);
    fill(&e, 200, 32);
    const uint64_t packets = e.packets;
    assert_int_equal(tl_buf_add(&e.out, zeros, 1000), TL_OK);
    fill(&e, 200, 32);
    frame(&between, e.out.p, e.out.n, 0);
    frame(&parts, e.out.p, e.out.n, 19);
    assert_same(&between, &parts);
    assert_true(between.n + 2 >= e.packets && between.n <= e.packets && between.n > packets);
    assert_true(between.lost >= 1000 && between.lost < 1100);
    drop(&only);
    drop(&between);
    drop(&parts);
    tl_sim_osd_fini(&e);
}

/* A capture that begins inside a packet, at an odd distance. */
static void test_late_start(void **state)
{
    for (unsigned round = 0; round < 50; round++) {
        struct tl_sim_osd e;
        tl_sim_osd_init(&e);
        e.little_endian = round % 2;
        fill(&e, 400, 32);
        const size_t cut = 1 + next() % 100;
        struct got got = {0};
        frame(&got, e.out.p + cut, e.out.n - cut, 0);
        /* in the worst case the framer follows a wrong alignment for a while */
        assert_true(got.lost < 4096);
        drop(&got);
        tl_sim_osd_fini(&e);
    }
}

/* Requests in between the answers: one to module 3 is, read a word later, a packet of 3 words from
 * the SCM to the host. */
static void test_requests(void **state)
{
    for (unsigned little = 0; little < 2; little++) {
        struct tl_buf bytes = {0};
        size_t packets = 0;
        for (uint16_t module = 0; module < 8; module++) {
            static const uint16_t registers[] = {0, 1, 2, 3, 0x200, 0x201};
            for (size_t i = 0; i < sizeof registers / sizeof *registers; i++, packets += 2) {
                const uint16_t words[] = {4, module,          TL_SIM_OSD_HOST, 0x0000, registers[i],
                                          4, TL_SIM_OSD_HOST, module,          0x2000, 1};
                for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
                    const uint8_t two[2] = {(uint8_t)(words[k] >> (little ? 0 : 8)),
                                            (uint8_t)(words[k] >> (little ? 8 : 0))};
                    assert_int_equal(tl_buf_add(&bytes, two, 2), TL_OK);
                }
            }
        }
        struct got got = {0};
        frame(&got, bytes.p, bytes.n, 0);
        assert_int_equal(got.lost, 0);
        assert_int_equal(got.n, packets);
        drop(&got);
        tl_buf_fini(&bytes);
    }
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_vectors),    cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_zeros),      cmocka_unit_test(test_late_start),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
