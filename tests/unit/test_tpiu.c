/* SPDX-License-Identifier: MIT */
/*
 * The de-framer compared with the frame encoder, and on hand-made frames, damage and real captures.
 */
#include "decode/ops.h"
#include "frame/tpiu.h"
#include "setup/setup.h"
#include "sim/tpiu_encoder.h"
#include "unit/data.h"
#include "unit/random.h"
#include "unit/seed.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert((int)TL_TPIU_ALIGNED == TL_SYNC_NONE && (int)TL_TPIU_FSYNC == TL_SYNC_FSYNC &&
                  (int)TL_TPIU_HSYNC == TL_SYNC_HSYNC && (int)TL_TPIU_DSTREAM == TL_SYNC_DSTREAM,
              "a setup's values are passed on as they are");

/* Bytes of each source with their offsets. */
struct sources {
    struct tl_buf bytes[128];
    struct tl_buf offsets[128]; /* uint64_t each */
    uint64_t lost;
    uint64_t not_yet; /* part of `lost`: before the first FSYNC */
    unsigned losses;
    unsigned resets;
    unsigned runs;
    uint64_t apart[2]; /* configuration of the de-framer */
    uint64_t after;    /* offset after all runs so far */
};

static void sources_fini(struct sources *s)
{
    for (int i = 0; i < 128; i++) {
        tl_buf_fini(&s->bytes[i]);
        tl_buf_fini(&s->offsets[i]);
    }
}

static void placed(void *context, uint8_t id, uint8_t byte, uint64_t offset)
{
    struct sources *const s = context;
    assert_int_equal(tl_buf_add(&s->bytes[id], &byte, 1), TL_OK);
    assert_int_equal(tl_buf_add(&s->offsets[id], &offset, sizeof offset), TL_OK);
}

static int on_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct sources *const s = context;
    assert_true(run->n > 0);
    assert_true(id > 0 && id < 0x70);
    const bool apart = s->apart[id / 64] >> id % 64 & 1;
    assert_true(apart || tl_run_offset(run, 0) >= s->after);
    s->after = tl_run_offset(run, run->n) > s->after ? tl_run_offset(run, run->n) : s->after;
    for (struct tl_run rest = *run; rest.n > 0;) { /* split anywhere */
        const size_t n = 1 + next() % rest.n;
        struct tl_buf *const offsets = &s->offsets[id];
        assert_int_equal(tl_buf_add(&s->bytes[id], rest.p, n), TL_OK);
        assert_int_equal(tl_buf_reserve(offsets, n * sizeof(uint64_t)), TL_OK);
        for (size_t i = 0; i < n; i++, offsets->n += sizeof(uint64_t))
            tl_put_le64(offsets->p + offsets->n, tl_run_offset(&rest, i));
        rest = tl_run_from(&rest, n);
    }
    s->runs++;
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct sources *const s = context;
    assert_non_null(reason);
    assert_true(bytes > 0);
    s->lost += bytes;
    if (strcmp(reason, TL_LOSS_NOT_SYNC) == 0)
        s->not_yet += bytes;
    s->losses++;
    return TL_OK;
}

static int on_reset(void *context, uint64_t offset, bool out_of_step)
{
    ((struct sources *)context)->resets++;
    return TL_OK;
}

static void decode(struct sources *s, enum tl_tpiu_sync sync, const uint8_t *p, size_t n,
                   uint64_t start, unsigned chunk)
{
    static struct tl_tpiu t;
    const unsigned way = next() % 3; /* all sources separated, all in order, or a mixture */
    s->apart[0] = way == 0 ? ~0ull : way == 1 ? 0 : (uint64_t)next() << 32 | next();
    s->apart[1] = way == 0 ? ~0ull : way == 1 ? 0 : (uint64_t)next() << 32 | next();
    const struct tl_tpiu_sink sink = {s, on_run, on_loss, on_reset, {s->apart[0], s->apart[1]}};
    tl_tpiu_init(&t, sync, start, &sink);
    uint64_t random = chunk;
    while (n) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t part = chunk ? 1 + (size_t)(random >> 33) % chunk : n;
        part = part < n ? part : n;
        assert_int_equal(tl_tpiu_push(&t, p, part), TL_OK);
        p += part;
        n -= part;
    }
    assert_int_equal(tl_tpiu_finish(&t, TL_TPIU_UNFINISHED), TL_OK);
}

static void assert_same(const struct sources *a, const struct sources *b)
{
    for (int id = 1; id < 0x70; id++) {
        assert_int_equal(a->bytes[id].n, b->bytes[id].n);
        if (!a->bytes[id].n)
            continue;
        assert_memory_equal(a->bytes[id].p, b->bytes[id].p, a->bytes[id].n);
        assert_memory_equal(a->offsets[id].p, b->offsets[id].p, a->offsets[id].n);
    }
}

static const uint8_t some_ids[] = {0x01, 0x10, 0x11, 0x3f, 0x40, 0x55, 0x6f};

/* Bytes of `ids` sources in turns of up to `longest` bytes. */
static void encode(struct tl_tpiu_encoder *e, size_t total, unsigned ids, unsigned longest)
{
    uint8_t data[4096];
    for (size_t done = 0; done < total;) {
        const size_t n = 1 + next() % longest;
        /* many ff, 7f and 00: the bytes of synchronisation words */
        for (size_t i = 0; i < n; i++)
            data[i] = next() % 3 ? (uint8_t)next() : (uint8_t[]){0xff, 0x7f, 0, 0xfe}[next() % 4];
        assert_int_equal(tl_tpiu_encoder_add(e, some_ids[next() % ids], data, n), TL_OK);
        done += n;
    }
    assert_int_equal(tl_tpiu_encoder_flush(e), TL_OK);
}

static void test_round_trip(void **state)
{
    for (unsigned round = 0; round < test_rounds(240); round++) {
        const enum tl_tpiu_sync sync = round % 4;
        struct tl_tpiu_encoder e;
        struct sources said = {0}, whole = {0}, parts = {0};
        tl_tpiu_encoder_init(&e, sync, next());
        e.placed = placed;
        e.context = &said;
        e.repeat_percent = next() % 20;
        e.hsync_percent = next() % 40;
        e.fsync_every = next() % 4 ? 1 + next() % 40 : 1;
        encode(&e, 1 + next() % 6000, 1 + next() % 7, 1u << next() % 12);

        decode(&whole, sync, e.out.p, e.out.n, 0, 0);
        assert_same(&said, &whole);
        assert_int_equal(whole.lost, 0);
        decode(&parts, sync, e.out.p, e.out.n, 0, (unsigned[]){1, 2, 3, 7, 16, 33, 999}[round % 7]);
        assert_same(&said, &parts);
        assert_int_equal(parts.lost, 0);
        sources_fini(&said);
        sources_fini(&whole);
        sources_fini(&parts);
        tl_tpiu_encoder_fini(&e);
    }
}

/* Offsets beyond 32 bits, and runs of the maximum length that the interface allows. */
static void test_long_runs(void **state)
{
    const uint64_t start = 0x7fffffff0;
    struct tl_tpiu_encoder e;
    struct sources said = {0}, got = {0};
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, next());
    e.placed = placed;
    e.context = &said;
    e.repeat_percent = 0;
    encode(&e, 1 << 20, 1, 4096);
    decode(&got, TL_TPIU_ALIGNED, e.out.p, e.out.n, start, 0);
    assert_int_equal(got.bytes[1].n, said.bytes[1].n);
    assert_memory_equal(got.bytes[1].p, said.bytes[1].p, said.bytes[1].n);
    const uint64_t *const ours = (const void *)got.offsets[1].p;
    const uint64_t *const theirs = (const void *)said.offsets[1].p;
    for (size_t i = 0; i < said.bytes[1].n; i++)
        assert_int_equal(ours[i], theirs[i] + start);
    assert_true(got.runs <= e.out.n / TL_DEMUX_BLOCK + 2);
    sources_fini(&said);
    sources_fini(&got);
    tl_tpiu_encoder_fini(&e);
}

static void expect(const uint8_t *capture, size_t n, enum tl_tpiu_sync sync, uint8_t id,
                   const char *bytes, size_t length)
{
    struct sources s = {0};
    decode(&s, sync, capture, n, 0, 0);
    assert_int_equal(s.bytes[id].n, length);
    if (length)
        assert_memory_equal(s.bytes[id].p, bytes, length);
    sources_fini(&s);
}

static void test_id_rules(void **state)
{
    /* The flag bit of an ID in byte 14 has no meaning. */
    const uint8_t last[32] = {0x21, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0x23, 0x80, 2, 3};
    expect(last, 32, TL_TPIU_ALIGNED, 0x10, "\1\2\3\4\5\6\7\10\11\12\13\14\15", 13);
    expect(last, 32, TL_TPIU_ALIGNED, 0x11, "\2\3\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);

    /* Before the first ID, the source of the bytes is unknown. */
    const uint8_t nobody[16] = {2, 2, 2, 2, 0x21, 'a', 'b', 'c', 0x01};
    struct sources s = {0};
    decode(&s, TL_TPIU_ALIGNED, nobody, 16, 0, 0);
    assert_int_equal(s.lost, 4);
    assert_int_equal(s.bytes[0x10].n, 3);
    sources_fini(&s);

    /* Reserved IDs (the trigger 0x7d among them) carry no trace data. */
    const uint8_t trigger[16] = {0x21, 'a', 0xfb, 'T', 0x21, 'c', 0xe1, 'T', 0x21, 'e', 0x01};
    expect(trigger, 16, TL_TPIU_ALIGNED, 0x10, "ace", 3);
}

static void test_reset_marker(void **state)
{
    uint8_t capture[48] = {0x21, 'a', 'b', 'a'};
    for (int i = 0; i < 16; i++)
        capture[16 + i] = i % 4 == 3 ? 0x7f : 0xff;
    struct sources s = {0};
    decode(&s, TL_TPIU_ALIGNED, capture, sizeof capture, 0, 5);
    assert_int_equal(s.resets, 1);
    assert_int_equal(s.bytes[0x10].n, 14);
    assert_int_equal(s.lost, 15); /* in the last frame: no ID since the marker */
    sources_fini(&s);
}

static void count_resets(const uint8_t *capture, size_t n, unsigned resets, size_t of_10,
                         uint64_t lost)
{
    for (unsigned chunk = 0; chunk < 20; chunk++) {
        struct sources s = {0};
        decode(&s, TL_TPIU_ALIGNED, capture, n, 0, chunk);
        assert_int_equal(s.resets, resets);
        assert_int_equal(s.bytes[0x10].n, of_10);
        assert_int_equal(s.lost, lost);
        sources_fini(&s);
    }
}

/* Behind padding up to the end of a frame, data without an ID begin another capture. */
static void test_behind_padding(void **state)
{
    /* The first ID 0 is delayed by a byte. */
    uint8_t p[64] = {0x21, 'a', 'b', 'a', 0x01, 'b', [15] = 1 << 2};
    count_resets(p, sizeof p, 0, 4, 0);
    p[48] = 0x21; /* the next source has its ID */
    count_resets(p, sizeof p, 0, 4 + 14, 0);
    p[48] = 0x02; /* it has none */
    count_resets(p, sizeof p, 1, 4, 15);
    p[52] = 0x21;
    count_resets(p, sizeof p, 1, 4 + 10, 4);
    p[7] = 'c'; /* an ID that was damaged, not padding */
    count_resets(p, sizeof p, 0, 4 + 10, 0);
    memset(p + 4, 0, 12);
    p[14] = 0x01; /* behind it the frame has no room for padding */
    count_resets(p, sizeof p, 0, 13 + 10, 0);
}

/* The index of the first byte of `s` at an offset >= `offset`. */
static size_t index_at(const struct sources *s, uint8_t id, uint64_t offset)
{
    const uint64_t *const at = (const void *)s->offsets[id].p;
    size_t i = 0;
    while (i < s->bytes[id].n && at[i] < offset)
        i++;
    return i;
}

/* Check that everything after `from` (in the expected bytes) and `from + shift` (in the result) is
 * equal. */
static bool is_tail(const struct sources *said, const struct sources *got, uint8_t id,
                    uint64_t from, int64_t shift)
{
    const size_t a = index_at(said, id, from);
    const size_t b = index_at(got, id, from + (uint64_t)shift);
    const size_t n = said->bytes[id].n - a;
    if (n == got->bytes[id].n - b &&
        (n == 0 || memcmp(said->bytes[id].p + a, got->bytes[id].p + b, n) == 0))
        return true;
    print_message("source 0x%x: %zu bytes from %llu on, got %zu\n", id, n, (unsigned long long)from,
                  got->bytes[id].n - b);
    return false;
}

static uint64_t fsync_after(const struct tl_buf *b, uint64_t from)
{
    while (from + 4 <= b->n && memcmp(b->p + from, "\xff\xff\xff\x7f", 4) != 0)
        from++;
    return from;
}

/*
 * Whatever happens to a few bytes, everything is correct again after the second FSYNC that follows.
 */
static void test_damage(void **state)
{
    for (unsigned round = 0; round < test_rounds(600); round++) {
        struct tl_tpiu_encoder e;
        struct sources said = {0}, got = {0}, parts = {0};
        tl_tpiu_encoder_init(&e, round % 2 ? TL_TPIU_FSYNC : TL_TPIU_HSYNC, next());
        e.placed = placed;
        e.context = &said;
        e.fsync_every = 4 + next() % 20;
        e.hsync_percent = 5;
        e.repeat_percent = 20;
        encode(&e, 4000, 1 + next() % 4, 30);
        struct tl_buf bad = {0};
        assert_int_equal(tl_buf_add(&bad, e.out.p, e.out.n), TL_OK);
        const size_t at = 600 + next() % 1000;
        size_t touched = 1;
        int64_t shift = 0;
        switch (round % 5) {
        case 0: /* flip */
            bad.p[at] ^= (uint8_t)(1u << next() % 8);
            break;
        case 1: /* drop */
            touched = 1 + next() % 40;
            memmove(bad.p + at, bad.p + at + touched, bad.n - at - touched);
            bad.n -= touched;
            shift = -(int64_t)touched;
            break;
        case 2: /* insert */
            assert_int_equal(tl_buf_add(&bad, "", 1), TL_OK);
            memmove(bad.p + at + 1, bad.p + at, bad.n - 1 - at);
            bad.p[at] = (uint8_t)next();
            shift = 1;
            break;
        case 3: /* double a half-word */
            assert_int_equal(tl_buf_add(&bad, "aa", 2), TL_OK);
            memmove(bad.p + at + 2, bad.p + at, bad.n - 2 - at);
            shift = 2;
            break;
        default: /* overwrite */
            touched = 1 + next() % 40;
            for (size_t i = 0; i < touched; i++)
                bad.p[at + i] = (uint8_t)next();
        }
        decode(&got, e.sync, bad.p, bad.n, 0, 0);
        decode(&parts, e.sync, bad.p, bad.n, 0, 1 + next() % 50);
        assert_same(&got, &parts);
        assert_int_equal(got.lost, parts.lost);
        const uint64_t sync = fsync_after(&e.out, at + touched);
        const uint64_t second = fsync_after(&e.out, sync + 4);
        /* After an FSYNC the source is unknown until its next ID; 600 bytes contain many. */
        for (size_t i = 0; i < sizeof some_ids; i++) {
            assert_true(is_tail(&said, &got, some_ids[i], second + 700, shift));
            const size_t before = index_at(&said, some_ids[i], at - 600);
            assert_true(got.bytes[some_ids[i]].n >= before);
            if (before)
                assert_memory_equal(got.bytes[some_ids[i]].p, said.bytes[some_ids[i]].p, before);
        }
        tl_buf_fini(&bad);
        sources_fini(&said);
        sources_fini(&got);
        sources_fini(&parts);
        tl_tpiu_encoder_fini(&e);
    }
}

/*
 * After bytes were lost or added, a DSTREAM's footers move: they are found again exactly.
 * Occasionally a footer happens to look like a continuation of its neighbour, and one more check is
 * needed.
 */
static void test_moved_blocks(void **state)
{
    unsigned late = 0;
    for (unsigned round = 0; round < test_rounds(56); round++) {
        struct tl_tpiu_encoder e;
        struct sources said = {0}, got = {0}, parts = {0};
        tl_tpiu_encoder_init(&e, TL_TPIU_DSTREAM, next());
        e.placed = placed;
        e.context = &said;
        e.repeat_percent = 20;
        encode(&e, 40000, 1 + next() % 4, 30);
        struct tl_buf bad = {0};
        const size_t at = round % 8 ? 2000 + next() % 4000 : 0;
        const size_t n = 1 + next() % (round % 4 ? 31 : 600);
        const bool added = round % 2;
        assert_int_equal(tl_buf_add(&bad, e.out.p, at), TL_OK);
        for (size_t i = 0; added && i < n; i++)
            assert_int_equal(tl_buf_add(&bad, (uint8_t[]){(uint8_t)next()}, 1), TL_OK);
        const size_t after = added ? at : at + n;
        assert_int_equal(tl_buf_add(&bad, e.out.p + after, e.out.n - after), TL_OK);
        decode(&got, e.sync, bad.p, bad.n, 0, 0);
        decode(&parts, e.sync, bad.p, bad.n, 0, 1 + next() % 2000);
        assert_same(&got, &parts);
        assert_int_equal(got.lost, parts.lost);
        assert_true(n % TL_BLOCK_BYTES == 0 || got.lost > 0);
        /* It takes five blocks until an FSYNC shows it, ten for certainty, and then until an ID
         * follows. */
        const int64_t shift = added ? (int64_t)n : -(int64_t)n;
        bool in_time = true;
        for (size_t i = 0; i < sizeof some_ids; i++) {
            in_time &= is_tail(&said, &got, some_ids[i], after + 16 * TL_BLOCK_BYTES + 1000, shift);
            assert_true(
                is_tail(&said, &got, some_ids[i], after + 50 * TL_BLOCK_BYTES + 1000, shift));
        }
        late += !in_time;
        tl_buf_fini(&bad);
        sources_fini(&said);
        sources_fini(&got);
        sources_fini(&parts);
        tl_tpiu_encoder_fini(&e);
    }
    assert_true(late <= 2);
}

/* An FSYNC inserted into the middle of a frame costs nothing. */
static void test_inserted_fsync(void **state)
{
    for (unsigned round = 0; round < test_rounds(200); round++) {
        struct tl_tpiu_encoder e;
        struct sources said = {0}, got = {0}, parts = {0};
        tl_tpiu_encoder_init(&e, TL_TPIU_FSYNC, next());
        e.placed = placed;
        e.context = &said;
        e.fsync_every = 1 + next() % 100;
        encode(&e, 9000, 1 + next() % 4, 40);
        struct tl_buf bad = {0};
        const size_t at = (1000 + next() % 1000) & ~(size_t)1;
        if (memchr(e.out.p + at - 4, 0xff, 8)) { /* not inside another FSYNC */
            sources_fini(&said);
            tl_tpiu_encoder_fini(&e);
            continue;
        }
        assert_int_equal(tl_buf_add(&bad, e.out.p, at), TL_OK);
        assert_int_equal(tl_buf_add(&bad, "\xff\xff\xff\x7f", 4), TL_OK);
        assert_int_equal(tl_buf_add(&bad, e.out.p + at, e.out.n - at), TL_OK);
        decode(&got, e.sync, bad.p, bad.n, 0, 0);
        decode(&parts, e.sync, bad.p, bad.n, 0, 20);
        assert_same(&got, &parts);
        assert_int_equal(got.lost, 0);
        for (size_t i = 0; i < sizeof some_ids; i++)
            assert_int_equal(got.bytes[some_ids[i]].n, said.bytes[some_ids[i]].n);
        tl_buf_fini(&bad);
        sources_fini(&said);
        sources_fini(&got);
        sources_fini(&parts);
        tl_tpiu_encoder_fini(&e);
    }
}

/* Garbage before the first FSYNC, and a single source whose ID is never repeated. */
static void test_single_source_damage(void **state)
{
    struct tl_tpiu_encoder e;
    struct sources said = {0}, got = {0};
    tl_tpiu_encoder_init(&e, TL_TPIU_FSYNC, next());
    e.placed = placed;
    e.context = &said;
    e.fsync_every = 8;
    e.repeat_percent = 0;
    encode(&e, 5000, 1, 40);
    struct tl_buf bad = {0};
    assert_int_equal(tl_buf_add(&bad, "garbage", 7), TL_OK);
    assert_int_equal(tl_buf_add(&bad, e.out.p, 1000), TL_OK);
    assert_int_equal(tl_buf_add(&bad, e.out.p + 1003, e.out.n - 1003), TL_OK);
    decode(&got, e.sync, bad.p, bad.n, 0, 0);
    assert_true(is_tail(&said, &got, 1, fsync_after(&e.out, 1003), 4));
    assert_true(got.lost >= 7 && got.lost < 7 + 8 * 20);
    assert_int_equal(got.not_yet, 7);
    tl_buf_fini(&bad);
    sources_fini(&said);
    sources_fini(&got);
    tl_tpiu_encoder_fini(&e);
}

/*
 * Every kernel compared with processing frames one by one, where no work is shared between bytes.
 */
static void test_variants_alike(void **state)
{
    enum { FRAMES = 600 };
    static struct tl_demux d;
    static uint8_t in[FRAMES * 16 + 15];
    for (unsigned round = 0; round < test_rounds(120); round++) {
        const uint8_t rare = (uint8_t)next(); /* frequency of IDs, from never to always */
        const unsigned ids = 1 + next() % 40; /* fewer or more than there are buffers */
        for (size_t i = 0; i < sizeof in; i++) {
            in[i] = (uint8_t)next();
            if (i % 2 == 0)
                in[i] = (next() & 0xff) >= rare ? in[i] & 0xfe : (uint8_t)((in[i] % ids) << 1 | 1);
        }
        const struct tl_tpiu_sink none = {.run = on_run};
        struct sources single = {.apart = {~0ull, next()}};
        struct tl_tpiu_sink sink = none;
        const uint64_t offset = next() & ~15u;
        sink.context = &single;
        memcpy(sink.apart, single.apart, sizeof sink.apart);
        tl_demux_init(&d, &sink);
        assert_int_equal(tl_demux_set_id(&d, 0x12), TL_OK);
        for (size_t f = 0; f < FRAMES; f++) {
            uint64_t at[16];
            for (size_t i = 0; i < 16; i++)
                at[i] = offset + f * 16 + i;
            assert_int_equal(tl_demux_frame(&d, in + f * 16, at), TL_OK);
        }
        assert_int_equal(tl_demux_flush(&d), TL_OK);
        for (int level = 0; level < TL_CPU_LEVELS; level++) {
            if (!tl_cpu_has((enum tl_cpu)level))
                continue;
            struct sources many = {.apart = {single.apart[0], single.apart[1]}};
            sink.context = &many;
            tl_demux_init(&d, &sink);
            d.kernel = tl_demux_variant((enum tl_cpu)level);
            assert_int_equal(tl_demux_set_id(&d, 0x12), TL_OK);
            assert_int_equal(tl_demux_frames(&d, in, FRAMES, offset, true), FRAMES);
            assert_int_equal(tl_demux_flush(&d), TL_OK);
            assert_same(&single, &many);
            if (ids < TL_DEMUX_SOURCES - 4)
                assert_int_equal(single.runs, many.runs);
            sources_fini(&many);
        }
        sources_fini(&single);
    }
}

/* A capture in one piece, with many frames at a time, or in pieces so small that no four frames are
 * visible at once. */
static void test_many_and_single_frames(void **state)
{
    static const enum tl_tpiu_sync syncs[] = {TL_TPIU_ALIGNED, TL_TPIU_FSYNC, TL_TPIU_DSTREAM};
    for (unsigned round = 0; round < test_rounds(60); round++) {
        struct tl_tpiu_encoder e;
        struct sources one = {0}, many = {0};
        const enum tl_tpiu_sync sync = syncs[round % 3];
        tl_tpiu_encoder_init(&e, sync, (uint64_t)round + 1);
        e.repeat_percent = round % 2 ? 20 : 0;
        encode(&e, 6000, 1 + next() % 7, 1 + next() % 60);
        for (int i = round % 4 * 5; i > 0; i--) /* damage, including IDs that no source has */
            e.out.p[next() % e.out.n] = (uint8_t)next();
        decode(&one, sync, e.out.p, e.out.n, 0, 17);
        decode(&many, sync, e.out.p, e.out.n, 0, 0);
        assert_same(&one, &many);
        sources_fini(&one);
        sources_fini(&many);
        tl_tpiu_encoder_fini(&e);
    }
}

/* ---- turns of sources that are not separated -------------------------------------------- */

enum { CALLS = 20000, FOREIGN = 0x55 };

struct calls {
    size_t n;
    struct {
        uint8_t id;
        size_t n;
        uint64_t offset;
    } call[CALLS];
};

static int count_call(void *context, uint8_t id, const struct tl_run *run)
{
    struct calls *const c = context;
    assert_true(c->n < CALLS);
    c->call[c->n].id = id;
    c->call[c->n].n = run->n;
    c->call[c->n++].offset = tl_run_offset(run, 0);
    return TL_OK;
}

static void list_calls(struct calls *c, const uint8_t *p, size_t n)
{
    static struct tl_tpiu t;
    struct tl_tpiu_sink sink = {.context = c, .run = count_call, .apart = {~0ull, ~0ull}};
    sink.apart[FOREIGN / 64] &= ~((uint64_t)1 << FOREIGN % 64);
    c->n = 0;
    tl_tpiu_init(&t, TL_TPIU_ALIGNED, 0, &sink);
    assert_int_equal(tl_tpiu_push(&t, p, n), TL_OK);
    assert_int_equal(tl_tpiu_finish(&t, TL_TPIU_UNFINISHED), TL_OK);
}

/*
 * The calls before such a turn do not depend on what follows its first frame: the search for the
 * frames' alignment stops there, and the same bytes are decoded again up to there.
 */
static void test_calls_before_turn(void **state)
{
    static struct calls whole, again;
    size_t turns = 0;
    for (unsigned round = 0; round < test_rounds(40); round++) {
        struct tl_tpiu_encoder e;
        tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, next());
        e.repeat_percent = round % 3 ? 0 : 10;
        /* a few turns of foreign sources, and occasionally runs that fill the run buffer */
        for (unsigned k = 0; k < 300; k++) {
            uint8_t data[4096];
            const uint8_t id = next() % 8 ? some_ids[next() % 4] : FOREIGN;
            const size_t n = 1 + next() % (next() % 16 ? 40 : sizeof data);
            for (unsigned times = next() % 60 ? 1 : 1 + next() % 10; times > 0; times--) {
                for (size_t i = 0; i < n; i++)
                    data[i] = (uint8_t)next();
                assert_int_equal(tl_tpiu_encoder_add(&e, id, data, n), TL_OK);
            }
        }
        assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
        list_calls(&whole, e.out.p, e.out.n);
        for (size_t k = 0; k < whole.n; k++) {
            if (whole.call[k].id != FOREIGN || next() % 4)
                continue;
            list_calls(&again, e.out.p, (size_t)whole.call[k].offset / 16 * 16 + 16);
            assert_true(again.n > k);
            for (size_t i = 0; i < k; i++) {
                assert_int_equal(again.call[i].id, whole.call[i].id);
                assert_int_equal(again.call[i].n, whole.call[i].n);
                assert_int_equal(again.call[i].offset, whole.call[i].offset);
            }
            turns++;
        }
        tl_tpiu_encoder_fini(&e);
    }
    assert_true(turns > test_rounds(100));
}

/* ---- real captures ---------------------------------------------------------------------- */

static bool read_all(struct tl_buf *b, FILE *f)
{
    size_t n;
    do {
        assert_int_equal(tl_buf_reserve(b, 1 << 16), TL_OK);
        n = fread(b->p + b->n, 1, 1 << 16, f);
        b->n += n;
    } while (n);
    return b->n > 0;
}

/* The bytes of each source in the golden listing. */
static void read_golden(struct sources *s, const char *path)
{
    char command[4200];
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *const f = popen(command, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    int id = -1;
    while (getline(&line, &cap, f) > 0) {
        const char *const run = strstr(line, "ID_DATA[0x");
        const char *p = line;
        if (run) {
            id = (int)strtol(run + 8, NULL, 16);
            p = strchr(run, ';') + 1;
        } else if (strncmp(line, "Frame Data", 10) == 0) {
            id = -1;
        }
        if (id < 0 || (!run && line[2] != ' '))
            continue;
        for (char *end; strlen(p) > 2; p = end) {
            const long byte = strtol(p, &end, 16);
            if (end == p)
                break;
            placed(s, (uint8_t)id, (uint8_t)byte, 0);
        }
    }
    free(line);
    pclose(f);
}

static void check_capture(const char *golden, const char *capture, enum tl_tpiu_sync sync)
{
    char golden_path[4096], path[4096], name[256];
    snprintf(name, sizeof name, "coresight/golden/%s.frames.ppl.gz", golden);
    const bool have = test_data(golden_path, sizeof golden_path, name);
    snprintf(name, sizeof name, "coresight/snapshots/%s", capture);
    if (!have || !test_data(path, sizeof path, name)) {
        print_message("skipped: %s is not here\n", name);
        return;
    }
    struct tl_buf bytes = {0};
    FILE *const f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(read_all(&bytes, f));
    fclose(f);
    struct sources theirs = {0}, ours = {0}, parts = {0};
    read_golden(&theirs, golden_path);
    decode(&ours, sync, bytes.p, bytes.n, 0, 0);
    decode(&parts, sync, bytes.p, bytes.n, 0, 100);
    assert_same(&ours, &parts);
    unsigned sources = 0;
    for (int id = 1; id < 0x70; id++) {
        const size_t n = theirs.bytes[id].n; /* the reference may have stopped before the end */
        if (ours.bytes[id].n < n)
            fail_msg("source 0x%02x: %zu bytes, %zu in the reference", (unsigned)id,
                     ours.bytes[id].n, n);
        if (n)
            assert_memory_equal(ours.bytes[id].p, theirs.bytes[id].p, n);
        sources += n > 0;
    }
    assert_true(sources > 0);
    sources_fini(&theirs);
    sources_fini(&ours);
    sources_fini(&parts);
    tl_buf_fini(&bytes);
}

/* Synchronisation words are distinguished from frames and barrier packets by their position. */
static void test_marked(void **state)
{
    static const uint8_t fsync[] = {0xff, 0xff, 0xff, 0x7f};
    uint8_t p[160] = {0};
    assert_false(tl_tpiu_is_marked(p, 0));
    memcpy(p + 36, fsync, 4);
    assert_false(tl_tpiu_is_marked(p, sizeof p));
    memcpy(p + 91, fsync, 4); /* at any offset, as in a truncated capture */
    assert_true(tl_tpiu_is_marked(p, sizeof p));
    assert_false(tl_tpiu_is_marked(p, 94));
    memset(p, 0, sizeof p);
    for (size_t i = 0; i < 32; i += 4) {
        memcpy(p + i, fsync, 4);
        memcpy(p + 64 + i, fsync, 4);
    }
    assert_false(tl_tpiu_is_marked(p, sizeof p));
    assert_true(tl_tpiu_is_marked(p, 12));
}

static void test_captures(void **state)
{
    check_capture("a55-test-tpiu", "a55-test-tpiu/DSTREAM_0.bin", TL_TPIU_DSTREAM);
    check_capture("a57_single_step", "a57_single_step/CSTMC_TRACE_FIFO.bin", TL_TPIU_ALIGNED);
    check_capture("itm_only_csformat", "itm_only_csformat/itm_testdata_ID_0x14.bin",
                  TL_TPIU_ALIGNED);
    check_capture("juno-uname-002", "juno-uname-002/trace.bin", TL_TPIU_ALIGNED);
    check_capture("juno_r1_1.ETB_0", "juno_r1_1/cstrace.bin", TL_TPIU_ALIGNED);
    check_capture("juno_r1_1.ETB_1", "juno_r1_1/cstraceitm.bin", TL_TPIU_ALIGNED);
    check_capture("stm_only", "stm_only/cstraceitm.bin", TL_TPIU_ALIGNED);
    check_capture("stm_only-juno", "stm_only-juno/cstraceitm.bin", TL_TPIU_ALIGNED);
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_alike),
        cmocka_unit_test(test_many_and_single_frames),
        cmocka_unit_test(test_calls_before_turn),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_id_rules),
        cmocka_unit_test(test_reset_marker),
        cmocka_unit_test(test_behind_padding),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_moved_blocks),
        cmocka_unit_test(test_inserted_fsync),
        cmocka_unit_test(test_single_source_damage),
        cmocka_unit_test(test_marked),
        cmocka_unit_test(test_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
