/* SPDX-License-Identifier: MIT */
/*
 * A connection that is lost at any byte of a capture: what is decoded is that of two captures with
 * a gap between them, but for time, which goes on. By itself, in frames and in orbuculum's; pushed
 * at once or in pieces; with a state that is saved at that byte. Of E-Trace, whose decoder goes on
 * with what support packets have said, that the place is told.
 */
#include "decode/decode.h"
#include "decode/ops.h"
#include "setup/setup.h"
#include "sim/itm_encoder.h"
#include "sim/orbflow.h"
#include "sim/tpiu_encoder.h"
#include "unit/etrace_world.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define RESTART "A " TL_NOTE_TIME_RESTART

static const char gap[] = "G transport\n";

struct said {
    struct tl_buf text;
    bool began;      /* there is a stream */
    unsigned joints; /* losses with this reason */
    uint64_t joint;  /* and where the last one was */
};

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    ((struct said *)context)->began = true;
    return TL_OK;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct said *const s = context;
    assert_string_equal(stream->name, "cs.01");
    return tl_item_text(&s->text, items, n);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct said *const s = context;
    if (strcmp(loss->reason, TL_LOSS_CONNECTION) == 0) {
        assert_true(loss->fault);
        assert_int_equal(loss->bytes, 0);
        s->joints++;
        s->joint = loss->offset;
    }
    return TL_OK;
}

static struct tl_decode *begin(const struct tl_setup *setup, struct said *out)
{
    const struct tl_decode_sink sink = {
        .context = out, .stream = on_stream, .items = on_items, .loss = on_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    assert_int_equal(tl_decode_new(&d, setup, NULL, &sink, &fail), TL_OK);
    return d;
}

static void push(struct tl_decode *d, const uint8_t *p, size_t n, size_t chunk)
{
    for (size_t at = 0; at < n; at += chunk)
        assert_int_equal(tl_decode_push(d, p + at, n - at < chunk ? n - at : chunk), TL_OK);
}

static void end(struct tl_decode *d)
{
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

static void terminate(struct said *said)
{
    assert_int_equal(tl_buf_add(&said->text, "", 1), TL_OK);
}

/* The decode of two captures, with a gap between them. */
static void decode_apart(const struct tl_setup *setup, const struct tl_buf *in, size_t at,
                         struct said *out)
{
    static const char note[] = "A connection-lost 1970-01-01T00:00:05.250Z 1.500 s\n";
    struct tl_decode *d = begin(setup, out);
    push(d, in->p, at, at);
    end(d);
    if (out->began) {
        assert_int_equal(tl_buf_add(&out->text, note, sizeof note - 1), TL_OK);
        assert_int_equal(tl_buf_add(&out->text, gap, sizeof gap - 1), TL_OK);
    }
    d = begin(setup, out);
    push(d, in->p + at, in->n - at, in->n);
    end(d);
    terminate(out);
}

/* The decode of one, with the mark. */
static void decode_joined(const struct tl_setup *setup, const struct tl_buf *in, size_t at,
                          size_t chunk, bool saves, struct said *out)
{
    const uint64_t last = 5250000000, back = 6750000000;
    struct tl_decode *d = begin(setup, out);
    tl_decode_set_arrival(d, last);
    push(d, in->p, at, chunk);
    if (saves) {
        struct tl_buf state = {0};
        assert_int_equal(tl_decode_flush(d), TL_OK);
        assert_int_equal(tl_decode_save(d, &state), TL_OK);
        tl_decode_free(d);
        d = begin(setup, out);
        assert_int_equal(tl_decode_load(d, (struct tl_bytes){state.p, state.n}), TL_OK);
        tl_buf_fini(&state);
    }
    assert_int_equal(tl_decode_reconnect(d, back), TL_OK);
    tl_decode_set_arrival(d, back);
    push(d, in->p + at, in->n - at, chunk);
    end(d);
    terminate(out);
}

/* Drop the lines that tell times, which never go back if it is `one` decode; and of gaps one behind
 * the other, which that does not tell, all but the first: the begin of a connection may be one. */
static void simplify(struct said *said, bool one)
{
    struct tl_buf rest = {0};
    unsigned long long last[2] = {0}, time;
    bool was_gap = false;
    for (const char *p = (const char *)said->text.p, *next; *p; p = next) {
        next = strchr(p, '\n') + 1;
        const bool is_global = p[0] == 'T';
        if (sscanf(p, is_global ? "T %llu" : "A time %llu", &time) == 1) {
            assert_true(!one || time >= last[is_global]);
            last[is_global] = time;
            continue;
        }
        if (strncmp(p, RESTART, sizeof RESTART - 1) == 0)
            continue; /* from local times to global ones */
        const bool is_gap = strncmp(p, gap, sizeof gap - 1) == 0;
        assert_false(one && is_gap && was_gap);
        if (!is_gap || !was_gap)
            assert_int_equal(tl_buf_add(&rest, p, (size_t)(next - p)), TL_OK);
        was_gap = is_gap;
    }
    tl_buf_fini(&said->text);
    said->text = rest;
    terminate(said);
}

static void lose_anywhere(const char *format, const struct tl_buf *in)
{
    struct tl_setup setup;
    struct tl_fail fail = {0};
    char text[160];
    const int n = snprintf(text, sizeof text,
                           "[trace]\nformat=%s\n[source cs.01]\nprotocol=itm\nid=1\n", format);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, text, (size_t)n, &fail), TL_OK);
    for (size_t at = 1; at < in->n; at++) {
        struct said joined = {0}, apart = {0};
        const size_t chunk = at % 3 == 0 ? 1 : at % 3 == 1 ? 7 : in->n;
        decode_joined(&setup, in, at, chunk, at % 2, &joined);
        decode_apart(&setup, in, at, &apart);
        assert_int_equal(joined.joints, 1);
        assert_int_equal(joined.joint, at);
        simplify(&joined, true);
        simplify(&apart, false);
        if (strcmp((char *)joined.text.p, (char *)apart.text.p) != 0)
            fail_msg("%s at %zu:\n%s\nbut apart:\n%s", format, at, (char *)joined.text.p,
                     (char *)apart.text.p);
        tl_buf_fini(&joined.text);
        tl_buf_fini(&apart.text);
    }
    tl_setup_fini(&setup);
}

static void simulate(struct tl_sim_itm *itm, bool global)
{
    const struct tl_sim_itm_options options = {
        .seed = test_seed(), .prescale = 1, .timed = true, .syncs = true, .global = global};
    *itm = (struct tl_sim_itm){.page = 0};
    tl_sim_itm_init(itm, &options);
    assert_int_equal(tl_sim_itm_sync(itm), TL_OK);
    assert_int_equal(tl_sim_itm_run(itm, 60), TL_OK);
    assert_int_equal(tl_sim_itm_end(itm), TL_OK);
}

static void itm_alone(void **state)
{
    (void)state;
    for (int global = 0; global < 2; global++) {
        struct tl_sim_itm itm;
        simulate(&itm, global);
        lose_anywhere("itm,id=1", &itm.trace);
        tl_sim_itm_fini(&itm);
    }
}

static void itm_in_frames(void **state)
{
    struct tl_sim_itm itm;
    (void)state;
    simulate(&itm, false);
    for (int sync = 0; sync < 2; sync++) {
        struct tl_tpiu_encoder e;
        tl_tpiu_encoder_init(&e, sync ? TL_TPIU_FSYNC : TL_TPIU_ALIGNED, test_seed());
        e.fsync_every = sync ? 4 : 0;
        assert_int_equal(tl_tpiu_encoder_add(&e, 1, itm.trace.p, itm.trace.n), TL_OK);
        assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
        lose_anywhere(sync ? "tpiu,sync=fsync" : "tpiu,sync=none", &e.out);
        tl_tpiu_encoder_fini(&e);
    }
    tl_sim_itm_fini(&itm);
}

static void itm_in_orbflow(void **state)
{
    enum { FRAME = 23 };
    struct tl_sim_itm itm;
    struct tl_buf in = {0};
    (void)state;
    simulate(&itm, false);
    for (size_t at = 0; at < itm.trace.n; at += FRAME) {
        const size_t left = itm.trace.n - at;
        assert_int_equal(tl_sim_orbflow_add(&in, 1, itm.trace.p + at, left < FRAME ? left : FRAME),
                         TL_OK);
    }
    lose_anywhere("orbflow", &in);
    tl_buf_fini(&in);
    tl_sim_itm_fini(&itm);
}

static int add_text(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    (void)stream;
    return tl_item_text(&((struct said *)context)->text, items, n);
}

/* The place is told once, with its gap, whatever was being followed there. */
static void lose_etrace(const struct etrace_world *w, size_t at, size_t chunk)
{
    static const char note[] = "A " TL_NOTE_CONNECTION_LOST;
    struct said said = {0};
    const struct tl_decode_sink sink = {
        .context = &said, .stream = on_stream, .items = add_text, .loss = on_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    assert_int_equal(tl_decode_new(&d, &w->setup, w->image, &sink, &fail), TL_OK);
    push(d, w->trace.bytes.p, at, chunk);
    const bool began = said.began;
    assert_int_equal(tl_decode_reconnect(d, 1), TL_OK);
    push(d, w->trace.bytes.p + at, w->trace.bytes.n - at, chunk);
    end(d);
    terminate(&said);
    const char *const told = strstr((char *)said.text.p, note);
    assert_true(told || !began); /* else held-back bytes may be enough for a stream */
    if (told) {
        assert_null(strstr(told + 1, note));
        assert_memory_equal(strchr(told, '\n') + 1, gap, sizeof gap - 1);
    }
    assert_int_equal(said.joints, 1);
    assert_int_equal(said.joint, at);
    tl_buf_fini(&said.text);
}

static void etrace_tells_it(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        struct etrace_world w;
        etrace_world_init(&w, round, 300);
        const size_t n = w.trace.bytes.n;
        for (size_t at = 1 + round; at < n; at += 1 + n / 20)
            lose_etrace(&w, at, at % 2 ? 7 : n);
        etrace_world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(itm_alone),
        cmocka_unit_test(itm_in_frames),
        cmocka_unit_test(itm_in_orbflow),
        cmocka_unit_test(etrace_tells_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
