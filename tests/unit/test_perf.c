/* SPDX-License-Identifier: MIT */
/* perf.data: truncated at every byte, overlapping snapshots, records out of order, times. */
#include "base/buf.h"
#include "decode/decode.h"
#include "import/jitdump.h"
#include "import/made_code.h"
#include "perf/info.h"
#include "perf/sideband.h"
#include "perf/snapshot.h"
#include "setup/setup.h"
#include "steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- streams of threads ---------------------------------------------------------------------- */

struct processes {
    unsigned streams, before_any; /* of threads; those with code before their process is known */
    bool known[16];
    struct steps_streams steps;
};

static int on_thread_items(void *context, const struct tl_decode_stream *stream,
                           const struct tl_item *items, size_t n)
{
    struct processes *const p = context;
    steps_demand_of(&p->steps, stream->index, items, n);
    if (strncmp(stream->name, "thread.", 7) != 0)
        return TL_OK;
    assert_true(stream->index < 16);
    for (size_t i = 0; i < n; i++) {
        bool *const known = &p->known[stream->index];
        if (items[i].kind == TL_ITEM_CONTEXT) {
            assert_int_equal(items[i].pc, 77);
            p->streams += !*known;
            *known = true;
        }
        p->before_any += tl_item_is_branch(&items[i]) && !*known;
    }
    return TL_OK;
}

/* Two threads of one process take turns on one processor, whose stream reports the process once:
 * the streams of both threads report it. */
static void process_of_each_thread(void **state)
{
    (void)state;
    struct tl_buf file = {0};
    struct processes p = {0};
    struct tl_setup setup;
    struct tl_decode *d;
    const struct tl_decode_sink sink = {.context = &p, .items = on_thread_items};
    const char *const path = TL_SOURCE_DIR "/tests/fuzz/corpus/perf/two-threads.data";
    assert_int_equal(tl_buf_read_file(&file, path, 1 << 20, NULL), TL_OK);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "perf,threads=yes", NULL), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, NULL, &sink, NULL), TL_OK);
    assert_int_equal(tl_decode_push(d, file.p + 1, file.n - 1), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    assert_int_equal(p.streams, 2);
    assert_int_equal(p.before_any, 0);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    tl_buf_fini(&file);
}

/* ---- truncated files ------------------------------------------------------------------------- */

enum { STREAMS = 8 };

struct said {
    struct tl_buf branches[STREAMS]; /* branch targets of each stream */
    unsigned losses;
    uint64_t lost_at, lost; /* the last fault: its offset and bytes */
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct said *const s = context;
    for (size_t i = 0; i < n; i++) {
        const uint64_t to = tl_item_address(&items[i]);
        if (tl_item_is_branch(&items[i]))
            assert_int_equal(tl_buf_add(&s->branches[stream->index], &to, sizeof to), TL_OK);
    }
    return TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct said *const s = context;
    if (!loss->fault)
        return TL_OK;
    s->losses++;
    s->lost_at = loss->offset;
    s->lost = loss->bytes;
    return TL_OK;
}

/* Decode `p`, with `gap` zero bytes at `at`. */
static void decode_apart(struct said *s, const uint8_t *p, size_t n, size_t at, uint64_t gap)
{
    static const uint8_t zeros[1 << 20];
    const struct tl_decode_sink sink = {.context = s, .items = on_items, .loss = on_loss};
    struct tl_setup setup;
    struct tl_decode *d;
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "perf", NULL), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, NULL, &sink, NULL), TL_OK);
    assert_int_equal(tl_decode_push(d, p, at), TL_OK);
    for (; gap > 0; gap -= gap < sizeof zeros ? gap : sizeof zeros)
        assert_int_equal(tl_decode_push(d, zeros, gap < sizeof zeros ? gap : sizeof zeros), TL_OK);
    assert_int_equal(tl_decode_push(d, p + at, n - at), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
}

static void decode(struct said *s, const uint8_t *p, size_t n)
{
    decode_apart(s, p, n, n, 0);
}

static void said_fini(struct said *s)
{
    for (size_t i = 0; i < STREAMS; i++)
        tl_buf_fini(&s->branches[i]);
}

/* A truncated file gives a prefix of the branches, and a loss is reported. */
static void cut_at_every_byte(const char *name)
{
    struct tl_buf file = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/perf/%s", TL_SOURCE_DIR, name);
    assert_int_equal(tl_buf_read_file(&file, path, 1 << 20, NULL), TL_OK);
    const uint8_t *const p = file.p + 1; /* the first byte is the fuzz target's */
    const size_t size = file.n - 1;
    struct said whole = {0};
    decode(&whole, p, size);
    assert_true(whole.branches[0].n > 0);
    size_t most = 0, reported = 0;
    for (size_t n = 0; n < size; n++) {
        struct said s = {0};
        decode(&s, p, n);
        for (size_t i = 0; i < STREAMS; i++) {
            assert_true(s.branches[i].n <= whole.branches[i].n);
            if (s.branches[i].n)
                assert_memory_equal(s.branches[i].p, whole.branches[i].p, s.branches[i].n);
        }
        assert_true(s.branches[0].n >= most); /* more input never gives less output */
        most = s.branches[0].n;
        reported += s.losses > 0;
        said_fini(&s);
    }
    assert_true(reported > size * 9 / 10); /* a pipe may end between two records */
    said_fini(&whole);
    tl_buf_fini(&file);
}

static void pipe_cut(void **state)
{
    (void)state;
    cut_at_every_byte("remap.pipe");
}

static void file_cut(void **state)
{
    (void)state;
    cut_at_every_byte("remap.file");
}

static void other_order_cut(void **state)
{
    (void)state;
    cut_at_every_byte("other-order.file");
}

static void compressed_cut(void **state)
{
    (void)state;
    cut_at_every_byte("compressed.pipe");
}

static void coresight_cut(void **state)
{
    (void)state;
    cut_at_every_byte("coresight.pipe");
}

/* ---- records far from the header ------------------------------------------------------------- */

/* The records of a file may begin anywhere after its attributes: all branches are decoded; a file
 * that ends before them says so. */
static void records_far_away(void **state)
{
    (void)state;
    static const uint64_t gaps[] = {1, 16 << 20, 64 << 20, (uint64_t)4097 << 20};
    struct tl_buf file = {0};
    struct said whole = {0}, cut = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/perf/remap.file", TL_SOURCE_DIR);
    assert_int_equal(tl_buf_read_file(&file, path, 1 << 20, NULL), TL_OK);
    uint8_t *const p = file.p + 1; /* the first byte is the fuzz target's */
    const size_t size = file.n - 1;
    const size_t data_at = (size_t)tl_le64(p + 40);
    decode(&whole, p, size);
    assert_true(whole.branches[0].n > 0);
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        struct said s = {0};
        tl_put_le64(p + 40, data_at + gaps[g]);
        decode_apart(&s, p, size, data_at, gaps[g]);
        assert_int_equal(s.losses, whole.losses);
        assert_int_equal(s.branches[0].n, whole.branches[0].n);
        assert_memory_equal(s.branches[0].p, whole.branches[0].p, s.branches[0].n);
        said_fini(&s);
    }
    decode_apart(&cut, p, data_at, data_at, 100 << 20);
    assert_int_equal(cut.losses, 1);
    said_fini(&cut);
    said_fini(&whole);
    tl_buf_fini(&file);
}

/* ---- damaged --------------------------------------------------------------------------------- */

/* The size of the record at p, with trace. */
static size_t record_size(const uint8_t *p)
{
    const bool is_area = tl_le32(p) == TL_PERF_AUXTRACE;
    return tl_le16(p + 6) + (is_area ? (size_t)tl_le64(p + 8) : 0);
}

/* The pieces of trace were shortened: they continue each other again. */
static void close_holes(uint8_t *p, size_t size)
{
    uint64_t end = 0;
    for (uint8_t *const last = p + size; p < last; p += record_size(p))
        if (tl_le32(p) == TL_PERF_AUXTRACE) {
            tl_put_le64(p + 16, end);
            end += tl_le64(p + 8);
        }
}

/* Insert junk between any two records: all records are read, and exactly the junk is reported as
 * lost. */
static void bad_record_between(void **state)
{
    (void)state;
    enum { JUNK = 29, HEADER = 16 };
    struct tl_buf file = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/perf/remap.pipe", TL_SOURCE_DIR);
    assert_int_equal(tl_buf_read_file(&file, path, 1 << 20, NULL), TL_OK);
    uint8_t *const p = file.p + 1; /* the first byte is the fuzz target's */
    const size_t size = file.n - 1;
    struct said whole = {0};
    close_holes(p + HEADER, size - HEADER);
    decode(&whole, p, size);
    assert_int_equal(whole.losses, 0);
    unsigned places = 0;
    for (size_t at = HEADER; at < size; places++) {
        struct tl_buf damaged = {0};
        struct said s = {0};
        uint8_t junk[JUNK];
        memset(junk, 0xa5, sizeof junk);
        memcpy(junk, "\x09\0\0\0\0\0\x03\0", 8); /* a sample of 3 bytes */
        assert_int_equal(tl_buf_add(&damaged, p, at), TL_OK);
        assert_int_equal(tl_buf_add(&damaged, junk, sizeof junk), TL_OK);
        assert_int_equal(tl_buf_add(&damaged, p + at, size - at), TL_OK);
        decode(&s, damaged.p, damaged.n);
        assert_int_equal(s.losses, 1);
        assert_int_equal(s.lost_at, at);
        assert_int_equal(s.lost, JUNK);
        for (size_t i = 0; i < STREAMS; i++) {
            assert_int_equal(s.branches[i].n, whole.branches[i].n);
            if (s.branches[i].n)
                assert_memory_equal(s.branches[i].p, whole.branches[i].p, s.branches[i].n);
        }
        said_fini(&s);
        tl_buf_fini(&damaged);
        at += record_size(p + at);
    }
    assert_true(places > 4);
    said_fini(&whole);
    tl_buf_fini(&file);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Fill with bytes that contain no PSB. */
static void fill(uint8_t *p, size_t n)
{
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (uint8_t)(x >> 24 | 1);
    }
}

static void snapshots_without_time(void **state)
{
    (void)state;
    uint8_t ring[1000] = {0};
    struct tl_perf_snapshot s = {0};
    size_t known, padding;
    fill(ring, sizeof ring);
    uint8_t first[600 + 5] = {0}; /* padded */
    memcpy(first, ring, 600);
    assert_int_equal(
        tl_perf_snapshot_join(&s, (struct tl_bytes){first, sizeof first}, &known, &padding), 0);
    assert_int_equal(
        tl_perf_snapshot_join(&s, (struct tl_bytes){ring + 400, 600}, &known, &padding), 1);
    assert_int_equal(known, 200);
    assert_int_equal(padding, 5);
    uint8_t other[300];
    memset(other, 0x55, sizeof other);
    assert_int_equal(
        tl_perf_snapshot_join(&s, (struct tl_bytes){other, sizeof other}, &known, &padding), 0);
    assert_int_equal(known, 0);
    tl_perf_snapshot_fini(&s);
}

/* PSB, TSC, PSBEND. */
static size_t put_psb(uint8_t *p, uint64_t tsc)
{
    for (size_t i = 0; i < 16; i += 2)
        memcpy(p + i, "\x02\x82", 2);
    p[16] = 0x19;
    for (unsigned i = 0; i < 7; i++)
        p[17 + i] = (uint8_t)(tsc >> 8 * i);
    memcpy(p + 24, "\x02\x23", 2);
    return 26;
}

static void snapshots_by_time(void **state)
{
    (void)state;
    uint8_t ring[400];
    memset(ring, 0x06, sizeof ring); /* TNT */
    put_psb(ring + 100, 1000);
    put_psb(ring + 200, 2000);
    put_psb(ring + 300, 3000);
    struct tl_perf_snapshot s = {0};
    size_t known, padding;
    assert_int_equal(tl_perf_snapshot_join(&s, (struct tl_bytes){ring, 250}, &known, &padding), 0);
    assert_int_equal(
        tl_perf_snapshot_join(&s, (struct tl_bytes){ring + 150, 200}, &known, &padding), 1);
    assert_int_equal(known, 100);
    assert_int_equal(padding, 0);
    /* A snapshot that is known completely. */
    assert_int_equal(
        tl_perf_snapshot_join(&s, (struct tl_bytes){ring + 250, 100}, &known, &padding), 1);
    assert_int_equal(known, 100);
    put_psb(ring + 100, 9000);
    assert_int_equal(tl_perf_snapshot_join(&s, (struct tl_bytes){ring, 200}, &known, &padding), 0);
    tl_perf_snapshot_fini(&s);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct tl_perf_record switch_in(uint64_t time, uint32_t cpu, int32_t tid)
{
    return (struct tl_perf_record){.type = TL_PERF_SWITCH,
                                   .has_time = true,
                                   .has_cpu = true,
                                   .has_tid = true,
                                   .time = time,
                                   .cpu = cpu,
                                   .pid = tid,
                                   .tid = tid};
}

/* Records are drained CPU by CPU, as perf does; they take effect only when they are final. */
static void records_out_of_order(void **state)
{
    (void)state;
    struct tl_perf_sideband s = {0};
    static const uint64_t times[] = {10, 30, 50, 20, 40, 60};
    for (size_t i = 0; i < 6; i++) {
        const struct tl_perf_record r = switch_in(times[i], i / 3, (int32_t)times[i]);
        assert_int_equal(tl_perf_sideband_add(&s, &r), TL_OK);
    }
    assert_null(tl_perf_sideband_run(&s, 0, 100));
    /* the first round only sets the limit for the next */
    assert_int_equal(tl_perf_sideband_round(&s), TL_OK);
    assert_null(tl_perf_sideband_run(&s, 0, 100));
    assert_int_equal(tl_perf_sideband_round(&s), TL_OK);
    assert_int_equal(s.final, 60);
    assert_int_equal(tl_perf_sideband_run(&s, 0, 49)->tid, 30);
    assert_int_equal(tl_perf_sideband_run(&s, 1, 49)->tid, 40);
    assert_null(tl_perf_sideband_run(&s, 1, 19));
    tl_perf_sideband_fini(&s);
}

/* A recording of one process has records of its own threads only: one that leaves is out, on any
 * processor, until its next record, and nothing says who ran there. */
static void threads_switched_out(void **state)
{
    (void)state;
    struct tl_perf_sideband s = {0};
    static const uint64_t times[] = {10, 20, 40, 50};
    for (size_t i = 0; i < 4; i++) {
        struct tl_perf_record r = switch_in(times[i], 0, 7);
        r.misc = i % 2 ? TL_PERF_MISC_OUT : 0;
        r.has_cpu = i != 3; /* as of a buffer of one thread */
        assert_int_equal(tl_perf_sideband_add(&s, &r), TL_OK);
    }
    assert_int_equal(tl_perf_sideband_end(&s), TL_OK);
    assert_int_equal(tl_perf_sideband_run(&s, 0, 30)->tid, 7);
    assert_true(tl_perf_sideband_left(&s, 7, 10, 20));
    assert_true(tl_perf_sideband_left(&s, 7, 10, 40));
    assert_false(tl_perf_sideband_left(&s, 7, 10, 19));
    assert_false(tl_perf_sideband_left(&s, 7, 20, 49));
    assert_true(tl_perf_sideband_left(&s, 7, 20, 50));
    assert_false(tl_perf_sideband_left(&s, 8, 0, 100));
    assert_int_equal(tl_perf_sideband_next(&s, -1, 7, 10), 20);
    assert_int_equal(tl_perf_sideband_next(&s, -1, 7, 20), 50);
    assert_int_equal(tl_perf_sideband_next(&s, -1, -1, 0), UINT64_MAX);
    tl_perf_sideband_fini(&s);
}

static void names_of_threads(void **state)
{
    (void)state;
    struct tl_perf_sideband s = {0};
    struct tl_perf_record comm = {.type = TL_PERF_COMM, .has_time = true, .time = 10};
    comm.comm.pid = comm.comm.tid = 7;
    comm.comm.name = "shell";
    assert_int_equal(tl_perf_sideband_add(&s, &comm), TL_OK);
    comm.time = 30;
    comm.misc = TL_PERF_MISC_EXEC;
    comm.comm.name = "program";
    assert_int_equal(tl_perf_sideband_add(&s, &comm), TL_OK);
    struct tl_perf_record fork = {.type = TL_PERF_FORK, .has_time = true, .time = 40};
    fork.task.pid = fork.task.ppid = fork.task.ptid = 7;
    fork.task.tid = 8;
    assert_int_equal(tl_perf_sideband_add(&s, &fork), TL_OK);
    assert_int_equal(tl_perf_sideband_end(&s), TL_OK);
    assert_string_equal(tl_perf_sideband_thread(&s, 0, 7, 29)->name, "shell");
    assert_string_equal(tl_perf_sideband_thread(&s, 0, 7, 30)->name, "program");
    assert_string_equal(tl_perf_sideband_thread(&s, 0, 8, 50)->name, "program");
    assert_int_equal(tl_perf_sideband_thread(&s, 0, 8, 50)->pid, 7);
    assert_int_equal(tl_perf_sideband_changed(&s, 29), 0);
    assert_int_equal(tl_perf_sideband_changed(&s, 35), 30);
    tl_perf_sideband_fini(&s);
}

struct codes {
    unsigned n;
    uint64_t bytes;
};

static int on_code(void *context, const struct tl_jit_code *code)
{
    struct codes *const c = context;
    assert_int_equal(code->pid, 7);
    assert_string_equal(code->name, c->n ? "second" : "first");
    assert_int_equal(code->address, c->n ? 0x2000 : 0x1000);
    c->n++;
    c->bytes += code->length;
    return TL_OK;
}

/* Complete records are reported once, whatever part of the file is available; damage is reported
 * with its offset. */
static void code_made_at_run_time(void **state)
{
    (void)state;
    struct tl_buf file = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/perf/jitted.dump", TL_SOURCE_DIR);
    assert_int_equal(tl_buf_read_file(&file, path, 1 << 20, NULL), TL_OK);
    struct tl_bytes all = {file.p + 1, file.n - 1};
    struct codes c = {0};
    bool ticks = false;
    uint64_t at = 0;
    for (size_t n = 40; n <= all.n; n++)
        assert_int_equal(tl_jitdump_read((struct tl_bytes){all.p, n}, &at, &ticks, on_code, &c),
                         TL_OK);
    assert_true(c.n == 2 && c.bytes == 11 && ticks && at == all.n);
    file.p[1 + 40 + 4] = 8; /* the first record's size */
    at = 0;
    assert_int_equal(tl_jitdump_read(all, &at, &ticks, on_code, &c), TL_BAD);
    assert_int_equal(at, 40);
    file.p[1 + 4]++; /* another version */
    assert_int_equal(tl_jitdump_read(all, &at, &ticks, on_code, &c), TL_BAD);
    assert_true(c.n == 2 && tl_jitdump_is("/tmp/x/jit-12.dump") && !tl_jitdump_is("jit-.dump"));
    tl_buf_fini(&file);
}

/* Pieces of code keep their offsets when more are added; mapped, they have their names. */
static void code_in_no_file(void **state)
{
    (void)state;
    struct tl_made_code made = {0};
    struct tl_buf bytes = {0};
    struct tl_setup setup;
    struct tl_image *image;
    uint64_t first, second, third;
    tl_setup_init(&setup);
    assert_int_equal(
        tl_made_code_add(&made, (struct tl_bytes){(uint8_t[]){0x90, 0xc3}, 2}, "one", &first),
        TL_OK);
    assert_int_equal(tl_made_code_add(&made, (struct tl_bytes){(uint8_t[]){0xcc}, 1}, "", &second),
                     TL_OK);
    assert_int_equal(
        tl_made_code_add(&made, (struct tl_bytes){(uint8_t[]){0xc3}, 1}, "three", &third), TL_OK);
    assert_int_equal(tl_made_code_file(&made, 62, &bytes), TL_OK);
    assert_true(bytes.p[first + 1] == 0xc3 && bytes.p[second] == 0xcc && bytes.p[third] == 0xc3);
    assert_int_equal(tl_setup_add_made(&setup, "[made]", &bytes), TL_OK);
    const uint64_t offsets[] = {first, second, third};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(tl_setup_add_image_at(&setup, "[made]", 0x1000 * (i + 1), offsets[i],
                                               i ? 1 : 2, TL_SPACE_ANY),
                         TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&setup, image, NULL, NULL, NULL), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_string_equal(tl_image_symbol_at(image, 0x1001)->name, "one");
    assert_null(tl_image_symbol_at(image, 0x2000));
    assert_string_equal(tl_image_symbol_at(image, 0x3000)->name, "three");
    assert_int_equal(tl_image_machine(image), 62);
    tl_image_free(image);
    tl_setup_fini(&setup);
    tl_made_code_fini(&made);
}

static void times(void **state)
{
    (void)state;
    const struct tl_clock clock = {true, 31, 932067555, UINT64_MAX - 40000000000 + 1};
    for (uint64_t tick = 5000000000000; tick < 5000000010000; tick += 37) {
        const uint64_t ns = tl_clock_ns(&clock, tick);
        const uint64_t back = tl_clock_ticks(&clock, ns);
        assert_true(back <= tick && tl_clock_ns(&clock, back) == ns);
        assert_true(tl_clock_ns(&clock, back - 1) < ns);
    }
    assert_true(tl_clock_rate(&clock) / 1000000 == 2303 || tl_clock_rate(&clock) / 1000000 == 2304);
}

/* The forms of TIME_CONV: three values, or with the kernel's capabilities. */
static void clock_records(void **state)
{
    (void)state;
    struct tl_perf_info info = {0};
    uint8_t body[48] = {0};
    const uint64_t numbers[] = {10, 40 << 10, 1000, 0x1230000000000, 0xffffffff};
    for (size_t i = 0; i < 5; i++)
        tl_put_le64(body + 8 * i, numbers[i]);
    tl_perf_info_clock(&info, false, (struct tl_bytes){body, 16});
    assert_false(info.clock.known);
    tl_perf_info_clock(&info, false, (struct tl_bytes){body, sizeof body});
    assert_false(info.clock.known); /* no relation to the counter */
    tl_perf_info_clock(&info, false, (struct tl_bytes){body, 24});
    assert_true(info.clock.known);
    assert_int_equal(tl_clock_ns(&info.clock, 25), 2000);
    body[40] = 1;
    tl_perf_info_clock(&info, false, (struct tl_bytes){body, sizeof body});
    assert_int_equal(tl_clock_ns(&info.clock, 25), 2000);
    body[41] = 1; /* the trace has the counter's lower bits */
    tl_perf_info_clock(&info, false, (struct tl_bytes){body, sizeof body});
    assert_int_equal(tl_clock_ns(&info.clock, 25), 2000 + 40 * 0x1230000000000);
    assert_int_equal(tl_clock_ticks(&info.clock, 2000 + 40 * 0x1230000000000), 25);
}

/* CoreSight timestamps are converted to perf's time if they are the virtual counter's. */
static void clocks_of_trace_units(void **state)
{
    (void)state;
    struct tl_perf_unit units[] = {
        {.protocol = TL_PROTO_ETM4, .n_regs = 8, .regs = {[0] = 1 << 11, [7] = 1}},
        {.protocol = TL_PROTO_ETE, .n_regs = 9, .regs = {[0] = 1 << 11, [7] = 0x47705a13, [8] = 1}},
    };
    struct tl_perf_info info = {.kind = TL_PERF_TRACE_CORESIGHT,
                                .clock = {true, 10, 40 << 10, 0},
                                .units = units,
                                .n_units = 2};
    assert_true(tl_perf_info_is_timed(&info, NULL) && tl_perf_info_has_stamps(&info));
    struct tl_clock axis = tl_perf_info_axis(&info, NULL);
    assert_int_equal(tl_clock_ns(&axis, 10), 400);
    units[1].regs[8] = 0;
    assert_false(tl_perf_info_is_timed(&info, NULL));
    axis = tl_perf_info_axis(&info, NULL);
    assert_int_equal(tl_clock_ns(&axis, 10), 10);
    units[1].regs[0] = 0; /* this unit has no timestamps; the other one does */
    assert_true(tl_perf_info_is_timed(&info, NULL));
    units[0].n_regs = 7;
    assert_false(tl_perf_info_is_timed(&info, NULL));
}

/* Mappings of a virtual machine do not belong to any of the traced processes. */
static void maps_of_guests(void **state)
{
    (void)state;
    uint8_t body[48] = {0};
    struct tl_perf_record r;
    const struct tl_perf_attrs none = {0};
    struct tl_perf_raw raw = {.type = TL_PERF_MMAP, .misc = 1, .body = {body, sizeof body}};
    memcpy(body + 32, "kernel", 7);
    assert_int_equal(tl_perf_record_read(&r, &raw, false, &none), TL_OK);
    assert_string_equal(r.mapping.name, "kernel");
    for (raw.misc = 4; raw.misc <= 5; raw.misc++)
        assert_int_equal(tl_perf_record_read(&r, &raw, false, &none), TL_NOTFOUND);
    /* Of a machine's kernel, the process tells which machine it is. */
    body[0] = 77;
    raw.misc = 4;
    assert_int_equal(tl_perf_record_read(&r, &raw, false, &none), TL_OK);
    assert_int_equal(r.machine, 77);
    assert_int_equal(r.mapping.pid, TL_PERF_KERNEL_PID);
}

/* Event IDs tell which virtual processor a record is of, and which thread of the host that is. */
static void virtual_processors(void **state)
{
    (void)state;
    struct tl_perf_attrs attrs = {0};
    uint8_t body[8 + 2 * 48] = {2};
    const uint64_t words[] = {11, 0, 3, UINT64_MAX, 12, 1, UINT64_MAX, 835, 0, 0, 834, 5};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        tl_put_le64(body + 8 + 8 * i, words[i]);
    assert_int_equal(tl_perf_attrs_index(&attrs, false, (struct tl_bytes){body, sizeof body}),
                     TL_OK);
    assert_null(tl_perf_attrs_guest(&attrs, 11));
    assert_int_equal(tl_perf_attrs_guest(&attrs, 12)->machine, 834);
    assert_int_equal(tl_perf_attrs_guest(&attrs, 12)->number, 5);
    assert_ptr_equal(tl_perf_attrs_vcpu(&attrs, 834, 835, ""), attrs.vcpus);
    assert_null(tl_perf_attrs_vcpu(&attrs, 834, 836, "CPU 5/KVM"));
    assert_null(tl_perf_attrs_vcpu(&attrs, 833, 835, ""));
    attrs.vcpus[0].tid = -1; /* then by its name */
    assert_ptr_equal(tl_perf_attrs_vcpu(&attrs, 834, 836, "CPU 5/KVM"), attrs.vcpus);
    assert_null(tl_perf_attrs_vcpu(&attrs, 834, 836, "CPU 4/KVM"));
    tl_perf_attrs_fini(&attrs);
    /* Cut anywhere. */
    for (size_t n = 0; n < sizeof body; n++) {
        assert_int_equal(tl_perf_attrs_index(&attrs, false, (struct tl_bytes){body, n}), TL_OK);
        assert_null(tl_perf_attrs_guest(&attrs, 12));
    }
    tl_perf_attrs_fini(&attrs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipe_cut),
        cmocka_unit_test(file_cut),
        cmocka_unit_test(other_order_cut),
        cmocka_unit_test(compressed_cut),
        cmocka_unit_test(coresight_cut),
        cmocka_unit_test(snapshots_without_time),
        cmocka_unit_test(snapshots_by_time),
        cmocka_unit_test(records_out_of_order),
        cmocka_unit_test(threads_switched_out),
        cmocka_unit_test(process_of_each_thread),
        cmocka_unit_test(names_of_threads),
        cmocka_unit_test(times),
        cmocka_unit_test(clock_records),
        cmocka_unit_test(clocks_of_trace_units),
        cmocka_unit_test(maps_of_guests),
        cmocka_unit_test(virtual_processors),
        cmocka_unit_test(code_made_at_run_time),
        cmocka_unit_test(code_in_no_file),
        cmocka_unit_test(bad_record_between),
        cmocka_unit_test(records_far_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
