/* SPDX-License-Identifier: MIT */
/*
 * Streams of every address width and packet limit: the packet listing, osd-sw's logs and the flow
 * text, each generated here from what was sent, for any chunking and for every way in which the
 * decoder can learn about the modules.
 */
#include "decode/ops.h"
#include "osd/osdsw.h"
#include "sim/osd_encoder.h"
#include "steps.h"
#include "unit/random.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { CTM = 1, STM = 2, UART = 3, CDM = 4, MAM = 5, STREAMS = 8 };

static void add(struct tl_buf *b, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_int_equal(tl_buf_add(b, line, (size_t)n), TL_OK);
}

static void assert_buf(const char *what, const struct tl_buf *expected, const struct tl_buf *got)
{
    if (expected->n == got->n && (got->n == 0 || memcmp(expected->p, got->p, got->n) == 0))
        return;
    size_t i = 0;
    while (i < expected->n && i < got->n && expected->p[i] == got->p[i])
        i++;
    const size_t from = i < 200 ? 0 : i - 200;
    fail_msg("%s differs at %zu of %zu and %zu:\n%.*s\n---- instead of\n%.*s", what, i, got->n,
             expected->n, (int)(got->n - from < 400 ? got->n - from : 400), got->p + from,
             (int)(expected->n - from < 400 ? expected->n - from : 400), expected->p + from);
}

/* ---- a stream and its expected results --------------------------------------------------- */

struct stream {
    struct tl_sim_osd e;
    unsigned ctm_width, stm_width;
    struct tl_buf packets, ctm_log, stm_log, print_log; /* expected */
    struct tl_buf text[STREAMS];                        /* by module */
    uint64_t time[STREAMS];
    uint64_t missed[STREAMS];
    bool memory, enumerated;
    bool begun[STREAMS], at_least[STREAMS];
};

static void stream_init(struct stream *s, unsigned ctm_width, unsigned stm_width, unsigned limit,
                        bool little_endian)
{
    *s = (struct stream){.ctm_width = ctm_width, .stm_width = stm_width};
    tl_sim_osd_init(&s->e);
    s->e.max_pkt_len = (uint16_t)limit;
    s->e.little_endian = little_endian;
    s->e.keep_truth = false;
}

static void stream_fini(struct stream *s)
{
    tl_sim_osd_fini(&s->e);
    struct tl_buf *const all[] = {&s->packets, &s->ctm_log, &s->stm_log, &s->print_log};
    for (size_t i = 0; i < 4; i++)
        tl_buf_fini(all[i]);
    for (unsigned i = 0; i < STREAMS; i++)
        tl_buf_fini(&s->text[i]);
}

static void flush_missed(struct stream *s, unsigned module)
{
    if (s->missed[module])
        add(&s->text[module], "G overflow %llu%s\n", (unsigned long long)s->missed[module],
            s->at_least[module] ? "+" : "");
    s->missed[module] = 0;
    s->at_least[module] = false;
}

static void say_time(struct stream *s, unsigned module, uint64_t time)
{
    flush_missed(s, module);
    if (!s->begun[module] || s->time[module] != time)
        add(&s->text[module], "T %llu\n", (unsigned long long)time);
    s->begun[module] = true;
    s->time[module] = time;
}

/* Register reads between the parts of an event, as real hosts make them. */
static void interleave(struct stream *s)
{
    if (next() % 3)
        return;
    const uint16_t value = (uint16_t)(next() % 4);
    add(&s->packets, "@%llu len=4 dest=0401 src=0000 flags=2000 REG RESP_READ_16 %04x\n",
        (unsigned long long)s->e.written, value);
    assert_int_equal(tl_sim_osd_read_reply(&s->e, 0, value), TL_OK);
}

/* The SCM answers another, unknown host, which reads two of its registers. */
static void say_to_other_host(struct stream *s)
{
    const uint16_t host = (uint16_t)(0x0402 + next() % 8);
    for (unsigned i = 0; i < 2; i++) {
        const uint16_t value = (uint16_t)(next() % 0x200);
        add(&s->packets, "@%llu len=4 dest=%04x src=0000 flags=2000 REG RESP_READ_16 %04x\n",
            (unsigned long long)s->e.written, host, value);
        assert_int_equal(tl_sim_osd_packet(&s->e, host, 0, 0x2000, &value, 1), TL_OK);
    }
}

/* Write an event's packets; `line` describes the last one. */
static void put_event(struct stream *s, unsigned module, const uint16_t *words, size_t n,
                      const char *line)
{
    const size_t room = s->e.max_pkt_len - 3u;
    while (n > room) {
        add(&s->packets, "@%llu len=%u dest=0401 src=%04x flags=8400 EVENT part(CONT) %u words\n",
            (unsigned long long)s->e.written, (unsigned)room + 3, module, (unsigned)room);
        assert_int_equal(
            tl_sim_osd_packet(&s->e, TL_SIM_OSD_HOST, (uint16_t)module, 0x8400, words, room),
            TL_OK);
        interleave(s);
        words += room;
        n -= room;
    }
    add(&s->packets, "@%llu len=%u dest=0401 src=%04x flags=8000 %s\n",
        (unsigned long long)s->e.written, (unsigned)n + 3, module, line);
    assert_int_equal(tl_sim_osd_packet(&s->e, TL_SIM_OSD_HOST, (uint16_t)module, 0x8000, words, n),
                     TL_OK);
}

static uint64_t masked(uint64_t value, unsigned width)
{
    return value & UINT64_MAX >> (64 - width);
}

static size_t put_field(uint16_t *words, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width / 16; i++)
        words[i] = (uint16_t)(value >> 16 * i);
    return width / 16;
}

static void say_ctm(struct stream *s, uint32_t time, unsigned mode)
{
    const unsigned width = s->ctm_width;
    static unsigned last_mode;
    const uint64_t pc = masked((uint64_t)next() << 32 | next(), width);
    const uint64_t npc = masked((uint64_t)next() << 32 | next(), width);
    const bool change = mode != last_mode, call = !change && next() % 2, ret = !change && !call;
    uint16_t words[16];
    char line[200];
    size_t n = put_field(words, time, 32);
    n += put_field(words + n, npc, width);
    n += put_field(words + n, pc, width);
    words[n++] = (uint16_t)(mode | ret << 2 | call << 3 | change << 4);
    snprintf(line, sizeof line,
             "CTM ts=%u npc=%016llx pc=%016llx mode=%u ret=%d call=%d modechange=%d", time,
             (unsigned long long)npc, (unsigned long long)pc, mode, ret, call, change);
    put_event(s, CTM, words, n, line);
    add(&s->ctm_log, "%08x %d %d %d %u %016llx %016llx\n", time, change, call, ret, mode,
        (unsigned long long)pc, (unsigned long long)npc);
    const bool first = !s->begun[CTM];
    say_time(s, CTM, time);
    if (change || first)
        add(&s->text[CTM], "M %c.%s\n", "ushm"[mode],
            width == 64   ? "rv64"
            : width == 32 ? "rv32"
                          : "-");
    if (!change)
        add(&s->text[CTM], "B %016llx %016llx\n", (unsigned long long)pc, (unsigned long long)npc);
    last_mode = mode;
}

static void say_stm(struct stream *s, uint32_t time, uint16_t id, uint64_t value)
{
    uint16_t words[16];
    char line[100];
    size_t n = put_field(words, time, 32);
    words[n++] = id;
    n += put_field(words + n, value, s->stm_width);
    snprintf(line, sizeof line, "STM ts=%u id=%04x value=%016llx", time, id,
             (unsigned long long)value);
    put_event(s, STM, words, n, line);
    add(&s->stm_log, "%08x %04x %016llx\n", time, id, (unsigned long long)value);
    if (id == 4)
        add(&s->print_log, "%c", (int)value);
    say_time(s, STM, time);
    add(&s->text[STM], "S osd-stm %x %0*llx\n", id, (int)s->stm_width / 4,
        (unsigned long long)value);
}

static void say_overflow(struct stream *s, unsigned module, uint16_t count)
{
    add(&s->packets, "@%llu len=4 dest=0401 src=%04x flags=9400 OVERFLOW missed=%u \n",
        (unsigned long long)s->e.written, module, count);
    add(module == CTM ? &s->ctm_log : &s->stm_log, "Overflow, missed %u events\n", count);
    assert_int_equal(tl_sim_osd_packet(&s->e, TL_SIM_OSD_HOST, (uint16_t)module, 0x9400, &count, 1),
                     TL_OK);
    s->missed[module] += count;
    s->at_least[module] |= count == UINT16_MAX;
}

static void say_word(struct stream *s, unsigned module, uint16_t word)
{
    char line[40];
    snprintf(line, sizeof line, module == UART ? "UART %02x" : "CDM stall=%u", word);
    put_event(s, module, &word, 1, line);
    if (module == UART)
        add(&s->text[UART], "S uart - %02x\n", word);
    else
        add(&s->text[CDM], "A core %s\n", word ? "stalled" : "running");
}

static void say_memory(struct stream *s)
{
    if (!s->memory)
        add(&s->text[MAM], "A memory access set aside\n");
    s->memory = true;
}

/* Traffic from the host: a character and a memory write. */
static void say_inbound(struct stream *s)
{
    const uint16_t character = (uint16_t)(32 + next() % 90), write[] = {0x80ff, 0x0000, 0x1234, 7};
    add(&s->packets, "@%llu len=4 dest=0003 src=0401 flags=8000 UART %02x\n",
        (unsigned long long)s->e.written, character);
    assert_int_equal(tl_sim_osd_packet(&s->e, UART, TL_SIM_OSD_HOST, 0x8000, &character, 1), TL_OK);
    add(&s->text[UART], "S uart-in - %02x\n", character);
    add(&s->packets, "@%llu len=7 dest=0005 src=0401 flags=8000 MAM 80ff 0000 1234 0007\n",
        (unsigned long long)s->e.written);
    assert_int_equal(tl_sim_osd_packet(&s->e, MAM, TL_SIM_OSD_HOST, 0x8000, write, 4), TL_OK);
    say_memory(s);
}

static void say_memory_reply(struct stream *s)
{
    const uint16_t data[] = {0x0102, 0x0304};
    add(&s->packets, "@%llu len=5 dest=0401 src=0005 flags=8000 MAM 0102 0304\n",
        (unsigned long long)s->e.written);
    assert_int_equal(tl_sim_osd_packet(&s->e, TL_SIM_OSD_HOST, MAM, 0x8000, data, 2), TL_OK);
}

/* The answers to a host's enumeration, which are left out of the expected listing. */
static void enumerate(struct stream *s)
{
    const struct tl_sim_osd_module modules[] = {
        {0, TL_SIM_OSD_SCM, 0},
        {CTM, TL_SIM_OSD_CTM, (uint8_t)s->ctm_width},
        {STM, TL_SIM_OSD_STM, (uint8_t)s->stm_width},
        {UART, TL_SIM_OSD_UART, 0},
        {CDM, 6, 0},
        {MAM, 3, 0},
    };
    assert_int_equal(tl_sim_osd_enumerate(&s->e, modules, 6), TL_OK);
    tl_buf_reset(&s->packets);
    s->enumerated = true;
}

static void play(struct stream *s, unsigned events, bool inbound)
{
    uint32_t time = 1000;
    unsigned mode = 0;
    say_ctm(s, time, mode);
    say_stm(s, time, 4, 'a');
    for (unsigned i = 0; i < events; i++, time += next() % 3 ? next() % 1000 : 0) {
        switch (next() % 14) {
        case 0:
            say_overflow(s, CTM, next() % 5 ? (uint16_t)(1 + next() % 100) : UINT16_MAX);
            break;
        case 1:
            say_overflow(s, STM, (uint16_t)(1 + next() % 100));
            break;
        case 2:
            say_word(s, UART, (uint16_t)(2 + next() % 200));
            break;
        case 3:
            say_word(s, CDM, next() % 2);
            break;
        case 4:
            if (inbound) {
                say_inbound(s);
                say_memory_reply(s);
            }
            if (s->enumerated)
                say_to_other_host(s);
            break;
        case 5:
            mode = next() % 4;
            say_ctm(s, time, mode);
            break;
        case 6:
        case 7:
        case 8:
            say_stm(s, time, (uint16_t)(next() % 8), 32 + next() % 90);
            break;
        default:
            say_ctm(s, time, mode);
        }
    }
    flush_missed(s, CTM);
    flush_missed(s, STM);
}

/* ---- the decoder's view ------------------------------------------------------------------ */

struct view {
    struct tl_buf packets;
    struct tl_buf text[STREAMS];
    struct steps_streams steps;
    bool list;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct view *const v = context;
    const unsigned module = (unsigned)strtoul(stream->name + 5, NULL, 10);
    assert_memory_equal(stream->name, "di.0.", 5);
    assert_true(module < STREAMS);
    steps_demand_of(&v->steps, stream->index, items, n);
    return tl_item_text(&v->text[module], items, n);
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    return tl_buf_printf(&((struct view *)context)->packets, "%s\n", line);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    fail_msg("loss at %llu: %s", (unsigned long long)loss->offset, loss->reason);
    return TL_OK;
}

static void decode(const struct stream *s, const struct tl_setup *setup, bool list, unsigned chunk,
                   struct view *v)
{
    *v = (struct view){0};
    const struct tl_decode_sink sink = {
        .context = v, .items = on_items, .packet = list ? on_packet : NULL, .loss = on_loss};
    struct tl_decode *d;
    assert_int_equal(tl_decode_new(&d, setup, NULL, &sink, NULL), TL_OK);
    for (size_t at = 0, n; at < s->e.out.n; at += n) {
        n = chunk ? 1 + next() % chunk : s->e.out.n;
        n = n < s->e.out.n - at ? n : s->e.out.n - at;
        assert_int_equal(tl_decode_push(d, s->e.out.p + at, n), TL_OK);
    }
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

static void assert_log(const struct stream *s, const struct tl_setup *setup, enum tl_osdsw_log log,
                       const struct tl_buf *expected)
{
    struct tl_osdsw w;
    assert_int_equal(tl_osdsw_init(&w, log, setup), TL_OK);
    const size_t chunk = 1 + next() % 50;
    for (size_t at = 0; at < s->e.out.n; at += chunk)
        assert_int_equal(
            tl_osdsw_push(&w, s->e.out.p + at, s->e.out.n - at < chunk ? s->e.out.n - at : chunk),
            TL_OK);
    assert_int_equal(tl_osdsw_finish(&w), TL_OK);
    assert_buf("log", expected, &w.out);
    tl_osdsw_fini(&w);
}

/* Check all results of a decode of the stream. */
static void check(const struct stream *s, const struct tl_setup *setup, size_t skip_lines_before)
{
    for (unsigned i = 0; i < 4; i++) {
        struct view v;
        const bool list = i % 2;
        decode(s, setup, list, i < 2 ? 0 : 1 + next() % 40, &v);
        for (unsigned m = 0; m < STREAMS; m++)
            assert_buf("text", &s->text[m], &v.text[m]);
        if (list) {
            const char *const mark = "@";
            char head[32];
            snprintf(head, sizeof head, "%s%zu ", mark, skip_lines_before);
            struct tl_buf tail = {0};
            const uint8_t *p = v.packets.p;
            const uint8_t *const end = p + v.packets.n;
            while (p < end && strncmp((const char *)p, head, strlen(head)) != 0)
                p = (const uint8_t *)memchr(p, '\n', (size_t)(end - p)) + 1;
            assert_int_equal(tl_buf_add(&tail, p, (size_t)(end - p)), TL_OK);
            assert_buf("listing", &s->packets, &tail);
            tl_buf_fini(&tail);
        }
        tl_buf_fini(&v.packets);
        for (unsigned m = 0; m < STREAMS; m++)
            tl_buf_fini(&v.text[m]);
    }
    assert_log(s, setup, TL_OSDSW_CTM, &s->ctm_log);
    assert_log(s, setup, TL_OSDSW_STM, &s->stm_log);
    assert_log(s, setup, TL_OSDSW_PRINT, &s->print_log);
}

static const uint16_t limits[] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 64, 256};

static void setup_of(struct tl_setup *setup, const char *ini)
{
    struct tl_fail fail = {.text = ""};
    tl_setup_init(setup);
    if (tl_setup_parse(setup, ini, strlen(ini), &fail) != TL_OK)
        fail_msg("%s", fail.text);
}

/* The stream contains the host's enumeration. */
static void test_enumerated(void **state)
{
    for (unsigned i = 0; i < 9 * sizeof limits / sizeof limits[0]; i++) {
        struct stream s;
        struct tl_setup setup;
        setup_of(&setup, "[trace]\nformat=di\n");
        stream_init(&s, 16u << i % 3, 16u << i / 3 % 3, limits[i / 9], next() % 2);
        enumerate(&s);
        const size_t begin = s.e.out.n;
        play(&s, 60, true);
        check(&s, &setup, begin);
        stream_fini(&s);
        tl_setup_fini(&setup);
    }
}

/* The modules are declared in a setup. */
static void test_configured(void **state)
{
    for (unsigned i = 0; i < 9 * sizeof limits / sizeof limits[0]; i++) {
        struct stream s;
        struct tl_setup setup;
        char ini[500];
        const unsigned ctm = 16u << i % 3, stm = 16u << i / 3 % 3, limit = limits[i / 9];
        snprintf(ini, sizeof ini,
                 "[trace]\nformat=di\n[source di.0.0]\nMOD_TYPE=1\nMAX_PKT_LEN=%u\n"
                 "[source di.0.1]\nprotocol=osd-ctm\nADDR_WIDTH=%u\n"
                 "[source di.0.2]\nprotocol=osd-stm\nVALWIDTH=%u\n"
                 "[source di.0.3]\nprotocol=osd-uart\n[source di.0.4]\nMOD_TYPE=6\n"
                 "[source di.0.5]\nMOD_TYPE=3\n",
                 limit, ctm, stm);
        setup_of(&setup, ini);
        stream_init(&s, ctm, stm, limit, next() % 2);
        play(&s, 60, true);
        check(&s, &setup, 0);
        stream_fini(&s);
        tl_setup_fini(&setup);
    }
}

/* The modules are inferred from the lengths and contents of events. */
static void test_inferred(void **state)
{
    for (unsigned i = 0; i < 9 * sizeof limits / sizeof limits[0]; i++) {
        struct stream s;
        struct tl_setup setup;
        setup_of(&setup, "[trace]\nformat=di\n");
        stream_init(&s, 16u << i % 3, 16u << i / 3 % 3, limits[i / 9], next() % 2);
        /* Packets before the first event that identifies a module cannot be interpreted. */
        say_word(&s, UART, 'x');
        say_word(&s, CDM, 1);
        /* Overflows before it are reported then. */
        for (unsigned n = next() % 17; n > 0; n--)
            say_overflow(&s, CTM, (uint16_t)(1 + next() % 100));
        for (unsigned n = next() % 4; n > 0; n--)
            say_overflow(&s, STM, n == 3 ? UINT16_MAX : (uint16_t)(1 + next() % 100));
        say_ctm(&s, 1000, 0);
        say_stm(&s, 1000, 4, 'a');
        play(&s, 60, false);
        say_word(&s, UART, 'y'); /* modules are accepted from their second event on */
        say_word(&s, CDM, 0);
        check(&s, &setup, 0);
        stream_fini(&s);
        tl_setup_fini(&setup);
    }
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enumerated),
        cmocka_unit_test(test_configured),
        cmocka_unit_test(test_inferred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
