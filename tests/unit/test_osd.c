/* SPDX-License-Identifier: MIT */
/* The OSD decoder compared with the datagram encoder's truth, real vectors and osd-sw's logs. */
#include "decode/ops.h"
#include "osd/osdsw.h"
#include "sim/osd_encoder.h"
#include "steps.h"
#include "unit/data.h"
#include "unit/random.h"

#include <stddef.h>
#include <string.h>

/* ---- recording a decode ----------------------------------------------------------------- */

struct written {
    struct tl_buf lines;      /* packets */
    struct tl_buf text[8];    /* flow text per stream */
    struct tl_buf offsets[8]; /* of the items */
    char names[8][32];
    unsigned streams;
    uint64_t lost;
    unsigned losses;
    struct steps_streams steps;
};

static void written_fini(struct written *w)
{
    tl_buf_fini(&w->lines);
    for (int i = 0; i < 8; i++) {
        tl_buf_fini(&w->text[i]);
        tl_buf_fini(&w->offsets[i]);
    }
}

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct written *const w = context;
    assert_int_equal(stream->index, w->streams);
    assert_true(w->streams < 8);
    snprintf(w->names[w->streams++], 32, "%s", stream->name);
    return TL_OK;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct written *const w = context;
    assert_true(stream->index < w->streams && n > 0);
    steps_demand_of(&w->steps, stream->index, items, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(tl_buf_add(&w->offsets[stream->index], &items[i].offset, 8), TL_OK);
    return tl_item_text(&w->text[stream->index], items, n);
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    return tl_buf_printf(&((struct written *)context)->lines, "%s\n", line);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct written *const w = context;
    assert_non_null(loss->reason);
    w->lost += loss->bytes;
    w->losses++;
    return TL_OK;
}

static void decode(struct written *w, const struct tl_setup *setup, const uint8_t *p, size_t n,
                   unsigned chunk)
{
    const struct tl_decode_sink sink = {
        .context = w, .stream = on_stream, .items = on_items, .packet = on_packet, .loss = on_loss};
    struct tl_setup none;
    tl_setup_init(&none);
    none.container = TL_CONTAINER_DI;
    struct tl_decode *d;
    assert_int_equal(tl_osd_ops.create(&d, setup ? setup : &none, NULL, &sink, NULL), TL_OK);
    while (n) {
        size_t part = chunk ? 1 + next() % chunk : n;
        part = part < n ? part : n;
        assert_int_equal(tl_osd_ops.push(d, p, part), TL_OK);
        p += part;
        n -= part;
    }
    assert_int_equal(tl_osd_ops.finish(d), TL_OK);
    tl_osd_ops.destroy(d);
}

static void assert_buf(const struct tl_buf *a, const struct tl_buf *b)
{
    assert_int_equal(a->n, b->n);
    if (a->n)
        assert_memory_equal(a->p, b->p, a->n);
}

static void assert_same(const struct written *a, const struct written *b)
{
    assert_buf(&a->lines, &b->lines);
    assert_int_equal(a->streams, b->streams);
    assert_int_equal(a->lost, b->lost);
    assert_int_equal(a->losses, b->losses);
    for (unsigned i = 0; i < a->streams; i++) {
        assert_string_equal(a->names[i], b->names[i]);
        assert_buf(&a->text[i], &b->text[i]);
        assert_buf(&a->offsets[i], &b->offsets[i]);
    }
}

static const struct tl_buf *text_of(const struct written *w, const char *name)
{
    static const struct tl_buf none;
    for (unsigned i = 0; i < w->streams; i++)
        if (strcmp(w->names[i], name) == 0)
            return &w->text[i];
    return &none;
}

/* ---- comparison with the truth ---------------------------------------------------------- */

struct expected {
    struct tl_buf text;
    bool timed;
    uint64_t time;
    int mode;
    uint64_t missed;
    bool at_least;
};

static void flush_missed(struct expected *x)
{
    if (x->missed)
        assert_int_equal(tl_buf_printf(&x->text, "G overflow %llu%s\n",
                                       (unsigned long long)x->missed, x->at_least ? "+" : ""),
                         TL_OK);
    x->missed = 0;
    x->at_least = false;
}

static void expect_event(struct expected *x, const struct tl_sim_osd_truth *t, unsigned width)
{
    if (t->overflow) {
        x->missed += t->value;
        x->at_least = x->at_least || t->value == 65535;
        return;
    }
    flush_missed(x);
    if (t->type == TL_SIM_OSD_UART) {
        assert_int_equal(tl_buf_printf(&x->text, "S uart - %02x\n", (unsigned)t->value), TL_OK);
        return;
    }
    const uint32_t step = t->time - (uint32_t)x->time;
    if (!x->timed || step) {
        if (x->timed && step >= 0x80000000u)
            assert_int_equal(tl_buf_printf(&x->text, "A time ambiguous\n"), TL_OK);
        x->time = x->timed ? x->time + step : t->time;
        x->timed = true;
        assert_int_equal(tl_buf_printf(&x->text, "T %llu\n", (unsigned long long)x->time), TL_OK);
    }
    const uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    if (t->type == TL_SIM_OSD_STM) {
        assert_int_equal(tl_buf_printf(&x->text, "S osd-stm %x %0*llx\n", t->id, (int)width / 4,
                                       (unsigned long long)(t->value & mask)),
                         TL_OK);
        return;
    }
    if (t->modechange || t->mode != x->mode) {
        x->mode = t->mode;
        assert_int_equal(tl_buf_printf(&x->text, "M %c.%s\n", "ushm"[t->mode],
                                       width == 64   ? "rv64"
                                       : width == 32 ? "rv32"
                                                     : tl_isa_name(TL_ISA_NONE)),
                         TL_OK);
    }
    if (!t->modechange || t->call || t->ret)
        assert_int_equal(tl_buf_printf(&x->text, "B %016llx %016llx\n",
                                       (unsigned long long)(t->pc & mask),
                                       (unsigned long long)(t->npc & mask)),
                         TL_OK);
}

static void assert_truth(const struct tl_sim_osd *e, const struct written *w, uint16_t src,
                         const char *name, unsigned width)
{
    struct expected x = {.mode = -1};
    for (size_t i = 0; i < e->n_truth; i++)
        if (e->truth[i].src == src)
            expect_event(&x, &e->truth[i], width);
    flush_missed(&x);
    assert_buf(&x.text, text_of(w, name));
    tl_buf_fini(&x.text);
}

/* Random events of CTM 1, STM 2, UART 3 and CTM 0x403 (subnet 1). */
static void fill(struct tl_sim_osd *e, size_t events, unsigned width)
{
    uint32_t time = next();
    for (size_t i = 0; i < events; i++) {
        time += next() % 64 ? next() % 1000 : next();
        struct tl_sim_osd_truth event = {.time = time,
                                         .pc = (uint64_t)next() << 32 | next(),
                                         .npc = (uint64_t)next() << 32 | next(),
                                         .mode = next() % 8 ? 0 : next() % 4};
        event.call = next() % 2;
        event.ret = !event.call;
        if (next() % 10 == 0)
            event.modechange = true, event.call = event.ret = false;
        int rc;
        switch (next() % 16) {
        case 0:
            rc = tl_sim_osd_uart(e, 3, (uint8_t)(2 + next() % 200));
            break;
        case 1:
        case 2: {
            const uint16_t src = next() % 2 ? 1 : 2;
            rc = tl_sim_osd_overflow(e, src, next() % 9 ? (uint16_t)(next() % 90) + 1 : 65535,
                                     src == 1 ? TL_SIM_OSD_CTM : TL_SIM_OSD_STM);
            break;
        }
        case 3:
        case 4:
            rc = tl_sim_osd_stm(e, 2, width, time, (uint16_t)(next() % 9), next() % 256);
            break;
        case 5:
            rc = tl_sim_osd_read_reply(e, (uint16_t)(next() % 4), (uint16_t)(next() % 2));
            break;
        case 6:
            rc = tl_sim_osd_ctm(e, 0x403, width, &event);
            break;
        default:
            rc = tl_sim_osd_ctm(e, 1, width, &event);
        }
        assert_int_equal(rc, TL_OK);
    }
}

static void enumerate(struct tl_sim_osd *e, unsigned width)
{
    const struct tl_sim_osd_module modules[] = {
        {0, TL_SIM_OSD_SCM, 0},
        {1, TL_SIM_OSD_CTM, (uint8_t)width},
        {2, TL_SIM_OSD_STM, (uint8_t)width},
        {3, TL_SIM_OSD_UART, 0},
        {0x403, TL_SIM_OSD_CTM, (uint8_t)width},
    };
    assert_int_equal(tl_sim_osd_enumerate(e, modules, 5), TL_OK);
}

static void assert_all_truth(const struct tl_sim_osd *e, const struct written *w, unsigned width)
{
    assert_truth(e, w, 1, "di.0.1", width);
    assert_truth(e, w, 2, "di.0.2", width);
    assert_truth(e, w, 3, "di.0.3", width);
    assert_truth(e, w, 0x403, "di.1.3", width);
    assert_int_equal(w->lost, 0);
}

static void test_truth(void **state)
{
    for (unsigned round = 0; round < 60; round++) {
        const unsigned width = 16u << round % 3;
        struct tl_sim_osd e;
        struct written whole = {0}, parts = {0};
        tl_sim_osd_init(&e);
        e.little_endian = next() % 2;
        e.max_pkt_len = (uint16_t)(8 + next() % 12); /* long events are split */
        enumerate(&e, width);
        fill(&e, 400, width);
        decode(&whole, NULL, e.out.p, e.out.n, 0);
        assert_all_truth(&e, &whole, width);
        decode(&parts, NULL, e.out.p, e.out.n, 1 + next() % 100);
        assert_same(&whole, &parts);
        written_fini(&whole);
        written_fini(&parts);
        tl_sim_osd_fini(&e);
    }
}

static void give_register(struct tl_setup *setup, unsigned id, const char *width_name,
                          uint64_t type, uint64_t width)
{
    struct tl_source *const source = tl_setup_add_source(setup);
    assert_non_null(source);
    source->id = (uint16_t)id;
    assert_int_equal(tl_source_set_reg(source, "MOD_TYPE", type), TL_OK);
    if (width)
        assert_int_equal(tl_source_set_reg(source, width_name, width), TL_OK);
}

/* No enumeration in the stream: the setup declares the modules, or they must be inferred. */
static void test_without_enumeration(void **state)
{
    for (unsigned round = 0; round < 30; round++) {
        const unsigned width = 16u << round % 3;
        struct tl_sim_osd e;
        struct written reported = {0}, guessed = {0};
        struct tl_setup setup;
        tl_setup_init(&setup);
        setup.container = TL_CONTAINER_DI;
        give_register(&setup, 1, "ADDR_WIDTH", 5, width);
        give_register(&setup, 2, "VALWIDTH", 4, width);
        give_register(&setup, 3, "", 2, 0);
        give_register(&setup, 0x403, "ADDR_WIDTH", 5, width);
        tl_sim_osd_init(&e);
        const struct tl_sim_osd_truth first = {.time = 1, .pc = 4, .npc = 8, .call = true};
        /* an overflow at the beginning does not identify its module */
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tl_sim_osd_ctm(&e, 1, width, &first), TL_OK);
            assert_int_equal(tl_sim_osd_stm(&e, 2, width, 1, 4, 'x'), TL_OK);
        }
        fill(&e, 300, width);
        decode(&reported, &setup, e.out.p, e.out.n, 0);
        assert_all_truth(&e, &reported, width);
        decode(&guessed, NULL, e.out.p, e.out.n, 0);
        assert_all_truth(&e, &guessed, width);
        written_fini(&reported);
        written_fini(&guessed);
        tl_setup_fini(&setup);
        tl_sim_osd_fini(&e);
    }
}

/* If the stream has the host's requests, every answer is interpreted exactly. */
static void test_learns_from_requests(void **state)
{
    struct tl_sim_osd e;
    struct written w = {0};
    tl_sim_osd_init(&e);
    const uint16_t version = 2, type = 1, width = 0x200;
    for (uint16_t src = 1; src <= 2; src++) {
        assert_int_equal(tl_sim_osd_packet(&e, src, TL_SIM_OSD_HOST, 0x0000, &version, 1), TL_OK);
        assert_int_equal(tl_sim_osd_read_reply(&e, src, 5), TL_OK); /* version 5, not a type */
        assert_int_equal(tl_sim_osd_packet(&e, src, TL_SIM_OSD_HOST, 0x0000, &type, 1), TL_OK);
        assert_int_equal(tl_sim_osd_packet(&e, src, TL_SIM_OSD_HOST, 0x0000, &width, 1), TL_OK);
        assert_int_equal(tl_sim_osd_read_reply(&e, src, 4), TL_OK);
        assert_int_equal(tl_sim_osd_read_reply(&e, src, 32), TL_OK);
    }
    /* As long as a 16-bit CTM event, with a last word that looks like CTM flags. */
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(tl_sim_osd_stm(&e, 1, 32, i, 7, 0x00080000 + i), TL_OK);
    decode(&w, NULL, e.out.p, e.out.n, 0);
    assert_truth(&e, &w, 1, "di.0.1", 32);
    assert_int_equal(w.streams, 1);
    written_fini(&w);
    tl_sim_osd_fini(&e);
}

/* A single event of an unknown module, in a system with known modules, does not create a stream. */
static void test_lone_event(void **state)
{
    const struct tl_sim_osd_truth event = {.time = 1, .pc = 4, .npc = 8, .call = true};
    struct tl_sim_osd e;
    struct written known = {0}, unknown = {0};
    tl_sim_osd_init(&e);
    assert_int_equal(tl_sim_osd_ctm(&e, 1, 32, &event), TL_OK);
    decode(&unknown, NULL, e.out.p, e.out.n, 0);
    assert_int_equal(unknown.streams, 1);
    enumerate(&e, 32);
    assert_int_equal(tl_sim_osd_ctm(&e, 9, 32, &event), TL_OK);
    assert_int_equal(tl_sim_osd_ctm(&e, 1, 32, &event), TL_OK);
    decode(&known, NULL, e.out.p, e.out.n, 0);
    assert_int_equal(known.streams, 1);
    assert_int_equal(known.losses, 1);
    written_fini(&known);
    written_fini(&unknown);
    tl_sim_osd_fini(&e);
}

/* ---- faults ----------------------------------------------------------------------------- */

static unsigned count_lines(const struct tl_buf *b, char first)
{
    unsigned n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += b->p[i] == first && (i == 0 || b->p[i - 1] == '\n');
    return n;
}

/* One word lost, doubled or changed: no stream appears, and at most two events are lost. */
static void test_faults(void **state)
{
    struct tl_sim_osd e;
    struct written clean = {0};
    tl_sim_osd_init(&e);
    enumerate(&e, 64);
    fill(&e, 150, 64);
    decode(&clean, NULL, e.out.p, e.out.n, 0);
    const unsigned branches = count_lines(text_of(&clean, "di.0.1"), 'B');
    const unsigned others = count_lines(text_of(&clean, "di.1.3"), 'B');
    const size_t words = e.out.n / 2;
    struct tl_buf bad = {0};
    for (unsigned round = 0; round < 3 * words; round++) {
        const size_t at = 2 * (round / 3);
        tl_buf_reset(&bad);
        assert_int_equal(tl_buf_add(&bad, e.out.p, at + (round % 3 == 0 ? 0 : 2)), TL_OK);
        if (round % 3 == 1)
            bad.p[at + next() % 2] ^= (uint8_t)(1u << next() % 8);
        const size_t rest = round % 3 == 2 ? at : at + 2;
        assert_int_equal(tl_buf_add(&bad, e.out.p + rest, e.out.n - rest), TL_OK);
        struct written w = {0};
        decode(&w, NULL, bad.p, bad.n, 0);
        if (w.streams > clean.streams)
            fail_msg("stream %s appeared, word %zu, fault %u", w.names[w.streams - 1], at / 2,
                     round % 3);
        const unsigned found = count_lines(text_of(&w, "di.0.1"), 'B');
        const unsigned found_others = count_lines(text_of(&w, "di.1.3"), 'B');
        const unsigned changed = round % 3 == 1; /* a changed flags word can add one event */
        if (found > branches + changed || found + 2 < branches || found_others > others + changed ||
            found_others + 2 < others)
            fail_msg("word %zu, fault %u: %u of %u events and %u of %u", at / 2, round % 3, found,
                     branches, found_others, others);
        written_fini(&w);
    }
    tl_buf_fini(&bad);
    written_fini(&clean);
    tl_sim_osd_fini(&e);
}

/* ---- real vectors ----------------------------------------------------------------------- */

static bool read_file(struct tl_buf *out, const char *name)
{
    char path[4096];
    if (!test_data(path, sizeof path, name))
        return false;
    FILE *const f = fopen(path, "rb");
    assert_non_null(f);
    size_t n;
    do {
        assert_int_equal(tl_buf_reserve(out, 65536), TL_OK);
        n = fread(out->p + out->n, 1, 65536, f);
        out->n += n;
    } while (n);
    fclose(f);
    return true;
}

static void check_log(const char *vector, const char *suffix, enum tl_osdsw_log log,
                      const struct tl_buf *bytes)
{
    char name[128];
    struct tl_buf golden = {0};
    struct tl_osdsw s;
    snprintf(name, sizeof name, "di/%s.osdsw-%s.txt", vector, suffix);
    assert_true(read_file(&golden, name));
    assert_int_equal(tl_osdsw_init(&s, log, NULL), TL_OK);
    for (size_t i = 0; i < bytes->n; i += 7)
        assert_int_equal(tl_osdsw_push(&s, bytes->p + i, bytes->n - i < 7 ? bytes->n - i : 7),
                         TL_OK);
    assert_int_equal(tl_osdsw_finish(&s), TL_OK);
    assert_buf(&golden, &s.out);
    tl_osdsw_fini(&s);
    tl_buf_fini(&golden);
}

static unsigned long long sum_of(const struct tl_buf *text, const char *what)
{
    unsigned long long sum = 0;
    for (size_t i = 0; i + strlen(what) < text->n; i++)
        if (memcmp(text->p + i, what, strlen(what)) == 0)
            sum += strtoull((const char *)text->p + i + strlen(what), NULL, 10);
    return sum;
}

static unsigned count_word(const struct tl_buf *text, const char *what)
{
    unsigned n = 0;
    for (size_t i = 0; i + strlen(what) < text->n; i++)
        n += (i == 0 || text->p[i - 1] == '\n') && !memcmp(text->p + i, what, strlen(what));
    return n;
}

/* Copy the next line of a log, NUL-terminated. Returns false at the end. */
static bool next_line(const struct tl_buf *log, size_t *at, char line[static 200])
{
    size_t n = 0;
    while (*at + n < log->n && log->p[*at + n] != '\n')
        n++;
    if (*at + n >= log->n || n >= 200)
        return false;
    memcpy(line, log->p + *at, n);
    line[n] = '\0';
    *at += n + 1;
    return true;
}

/* The next stimulus in the form of the log, its addresses and values truncated to `width`. */
static bool next_stimulus(const struct tl_buf *stimulus, size_t *at, enum tl_osdsw_log log,
                          unsigned width, char out[static 200])
{
    char line[200];
    const uint64_t mask = UINT64_MAX >> (64 - width);
    while (next_line(stimulus, at, line)) {
        unsigned time, change, call, ret, mode, id;
        unsigned long long pc, npc, value;
        if (log == TL_OSDSW_CTM &&
            sscanf(line, "ctm %u modechange=%u call=%u ret=%u mode=%u pc=%llx npc=%llx", &time,
                   &change, &call, &ret, &mode, &pc, &npc) == 7) {
            snprintf(out, 200, "%08x %u %u %u %u %016llx %016llx", time, change, call, ret, mode,
                     (unsigned long long)(pc & mask), (unsigned long long)(npc & mask));
            return true;
        }
        if (log == TL_OSDSW_CTM && sscanf(line, "ctm %u modechange=1 mode=%u", &time, &mode) == 2) {
            snprintf(out, 200, "%08x 1 0 0 %u ", time, mode);
            return true;
        }
        if (log == TL_OSDSW_STM &&
            sscanf(line, "stm %u id=%x value=%llx", &time, &id, &value) == 3) {
            snprintf(out, 200, "%08x %04x %016llx", time, id, (unsigned long long)(value & mask));
            return true;
        }
    }
    return false;
}

/* Check that the delivered events are the stimulus in order, with exactly as many missing between
 * them as each overflow reports. A pure change of mode has whatever addresses the port held. */
static void check_stimulus(enum tl_osdsw_log log, unsigned width, const struct tl_buf *bytes,
                           const struct tl_buf *stimulus)
{
    struct tl_osdsw s;
    char line[200], wanted[200] = "";
    size_t at = 0, from = 0;
    unsigned missed, events = 0;
    assert_int_equal(tl_osdsw_init(&s, log, NULL), TL_OK);
    assert_int_equal(tl_osdsw_push(&s, bytes->p, bytes->n), TL_OK);
    assert_int_equal(tl_osdsw_finish(&s), TL_OK);
    while (next_line(&s.out, &at, line)) {
        if (sscanf(line, "Overflow, missed %u events", &missed) == 1) {
            for (; missed; missed--)
                assert_true(next_stimulus(stimulus, &from, log, width, wanted));
            continue;
        }
        assert_true(next_stimulus(stimulus, &from, log, width, wanted));
        const bool mode_only = log == TL_OSDSW_CTM && line[9] == '1';
        line[mode_only ? 17 : 199] = wanted[mode_only ? 17 : 199] = '\0';
        assert_string_equal(line, wanted);
        events++;
    }
    assert_true(events > 10);
    /* The last stimulus came when the module was stopped. */
    if (log == TL_OSDSW_CTM)
        assert_true(next_stimulus(stimulus, &from, log, width, wanted));
    assert_false(next_stimulus(stimulus, &from, log, width, wanted));
    tl_osdsw_fini(&s);
}

static void check_vector(const char *vector)
{
    char name[128];
    struct tl_buf bytes = {0}, golden = {0}, stimulus = {0};
    snprintf(name, sizeof name, "di/%s.dtd.bin", vector);
    if (!read_file(&bytes, name)) {
        print_message("skipped: %s is not here\n", name);
        return;
    }
    snprintf(name, sizeof name, "di/%s.decoded.txt", vector);
    assert_true(read_file(&golden, name));
    snprintf(name, sizeof name, "di/%s.stimulus.txt", vector);
    assert_true(read_file(&stimulus, name));
    struct written whole = {0}, parts = {0};
    decode(&whole, NULL, bytes.p, bytes.n, 0);
    assert_buf(&golden, &whole.lines);
    decode(&parts, NULL, bytes.p, bytes.n, 9);
    assert_same(&whole, &parts);
    assert_int_equal(whole.lost, 0);
    check_log(vector, "ctm", TL_OSDSW_CTM, &bytes);
    check_log(vector, "stm", TL_OSDSW_STM, &bytes);
    check_log(vector, "sysprint", TL_OSDSW_PRINT, &bytes);
    const unsigned width = (unsigned)strtoul(vector + 3, NULL, 10);
    check_stimulus(TL_OSDSW_CTM, width, &bytes, &stimulus);
    check_stimulus(TL_OSDSW_STM, width, &bytes, &stimulus);
    /* delivered + missed = generated */
    assert_int_equal(count_word(&golden, "@") > 100, 1);
    const struct tl_buf *const ctm = text_of(&whole, "di.0.1");
    const unsigned mode_only = count_word(&stimulus, "ctm") - count_word(ctm, "B");
    assert_true(mode_only >= sum_of(ctm, "G overflow "));
    assert_int_equal(count_word(text_of(&whole, "di.0.2"), "S") +
                         sum_of(text_of(&whole, "di.0.2"), "G overflow "),
                     count_word(&stimulus, "stm"));
    written_fini(&whole);
    written_fini(&parts);
    tl_buf_fini(&bytes);
    tl_buf_fini(&golden);
    tl_buf_fini(&stimulus);
}

static void test_vectors(void **state)
{
    check_vector("ctm16_mpl12");
    check_vector("ctm32_mpl12");
    check_vector("ctm64_mpl12");
    check_vector("ctm64_mpl16");
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_without_enumeration),
        cmocka_unit_test(test_learns_from_requests),
        cmocka_unit_test(test_lone_event),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
