/* SPDX-License-Identifier: MIT */
/*
 * Core dumps of Espressif's chips: what was executed at last comes out, from buffers of any size
 * that were written round and round; as files, with a header, as text; and what is refused.
 */
#include "sim/esp_dump.h"
#include "steps.h"
#include "unit/etrace_world.h"

#include "decode/decode.h"
#include "import/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void write_file(const char *suffix, const void *head, size_t n, const struct tl_buf *dump)
{
    const char *const folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.30s/tl-esp-%d%s", folder ? folder : "/tmp", (int)getpid(),
             suffix);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, n, file), n);
    assert_int_equal(fwrite(dump->p, 1, dump->n, file), dump->n);
    assert_int_equal(fclose(file), 0);
}

static void note_warning(void *context, const char *text)
{
    assert_int_equal(tl_buf_printf(context, "%s\n", text), TL_OK);
}

/* Returns tl_bundle_read()'s result; `text` gets warnings and the error, as a string. */
static int read_bundle(struct tl_bundle *bundle, size_t n_images, struct tl_buf *text)
{
    static const char *const images[] = {"app.elf"};
    const struct tl_bundle_request request = {.input = path,
                                              .images = images,
                                              .n_images = n_images,
                                              .warn = note_warning,
                                              .context = text};
    struct tl_fail fail = {.text = ""};
    const char *where;
    const int rc = tl_bundle_read(bundle, &request, &where, &fail);
    if (rc < 0)
        assert_int_equal(tl_buf_printf(text, "%s\n", fail.text), TL_OK);
    assert_int_equal(tl_buf_add(text, "", 1), TL_OK);
    return rc;
}

/* ---- what was executed ---------------------------------------------------------------------- */

struct run {
    uint64_t *pc; /* owned */
    size_t n, cap;
};

static void ran(struct run *r, uint64_t pc)
{
    assert_int_equal(tl_grow(&r->pc, &r->cap, r->n + 1, sizeof *r->pc), TL_OK);
    r->pc[r->n++] = pc;
}

struct seen {
    struct run run;
    struct steps steps;
    unsigned gaps;
    uint64_t faults;
};

static int see(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
               size_t n)
{
    (void)stream;
    struct seen *const s = context;
    steps_demand(&s->steps, items, n);
    for (size_t i = 0; i < n; i++) {
        s->gaps += items[i].kind == TL_ITEM_GAP && items[i].sub != TL_GAP_OFF &&
                   items[i].sub != TL_GAP_SYNC;
        uint32_t at = 0;
        for (uint32_t k = 0; items[i].kind == TL_ITEM_BLOCK && k < items[i].n; k++) {
            struct tl_insn insn;
            tl_block_insn(items[i].block, at, &insn);
            ran(&s->run, items[i].block->pc + at);
            at += insn.size;
        }
    }
    return TL_OK;
}

static int see_loss(void *context, const struct tl_decode_loss *loss)
{
    ((struct seen *)context)->faults += loss->fault;
    return TL_OK;
}

static void decode(const struct tl_bundle_capture *c, const struct tl_image *image,
                   struct seen *seen)
{
    const struct tl_decode_sink sink = {.context = seen, .items = see, .loss = see_loss};
    struct tl_decode *d;
    struct tl_buf bytes = {0};
    struct tl_fail fail = {.text = ""};
    assert_int_equal(tl_bundle_bytes(c, &bytes, &fail), TL_OK);
    assert_int_equal(tl_decode_new(&d, &c->setup, image, &sink, &fail), TL_OK);
    assert_int_equal(tl_decode_push(d, bytes.p, bytes.n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_buf_fini(&bytes);
}

static void executed(const struct etrace_world *w, struct run *out)
{
    for (uint32_t i = 0; i < w->run.n_events; i++)
        if (w->trace.traced[i] && !w->run.events[i].trap)
            ran(out, w->run.insns[w->run.events[i].at].pc);
}

/* The last instructions executed are those decoded, at least `least` of them. */
static void ends_with(const struct run *truth, const struct run *seen, size_t least)
{
    if (seen->n < least || seen->n > truth->n ||
        (seen->n > 0 &&
         memcmp(truth->pc + truth->n - seen->n, seen->pc, seen->n * sizeof *seen->pc) != 0))
        fail_msg("%zu instructions, at least %zu expected, of %zu", seen->n, least, truth->n);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static struct tl_sim_esp_core core_of(const struct etrace_world *w, uint32_t capacity, bool loops)
{
    const bool old = w->encoder.params.unit == TL_ETRACE_ESP32;
    return (struct tl_sim_esp_core){.packets = {w->trace.bytes.p, w->trace.bytes.n},
                                    .address = 0x40800000,
                                    .capacity = capacity,
                                    .loops = loops,
                                    .state = 3,
                                    .format = old ? 100 : 200,
                                    .threshold = 64};
}

static struct tl_sim_esp_dump dump_of(const struct etrace_world *w, const struct tl_sim_esp_core *c,
                                      unsigned n)
{
    return (struct tl_sim_esp_dump){.cores = c,
                                    .n_cores = n,
                                    .sequence = 2,
                                    .privilege_width = w->encoder.params.privilege_width,
                                    .ecause_width = w->encoder.params.ecause_width};
}

static void check_buffer(const struct etrace_world *w, const struct run *truth, uint32_t capacity,
                         unsigned *wrapped, unsigned *whole)
{
    const struct tl_sim_esp_core core = core_of(w, capacity, true);
    const struct tl_sim_esp_dump d = dump_of(w, &core, 1);
    const bool all = capacity > w->trace.bytes.n;
    struct tl_buf file = {0}, text = {0};
    struct tl_bundle bundle;
    struct seen seen = {.gaps = 0};
    assert_int_equal(tl_sim_esp_make(&d, &file), TL_OK);
    write_file(".elf", "", 0, &file);
    assert_int_equal(read_bundle(&bundle, 1, &text), TL_OK);
    assert_string_equal((char *)text.p, "");
    assert_int_equal(bundle.n_captures, 1);
    decode(&bundle.captures[0], w->image, &seen);
    ends_with(truth, &seen.run, all ? truth->n : 1);
    assert_int_equal(seen.faults + seen.gaps, 0);
    *whole += all;
    *wrapped += !all && seen.run.n > 100;
    tl_bundle_fini(&bundle);
    tl_buf_fini(&file);
    tl_buf_fini(&text);
    free(seen.run.pc);
    unlink(path);
}

/* Any capacity, both kinds of packets: what is in the buffer is decoded, across its seam. */
static void buffers(void **state)
{
    (void)state;
    unsigned wrapped = 0, whole = 0;
    for (unsigned round = 9; round < 300; round += 10) {
        struct etrace_world w;
        struct run truth = {0};
        etrace_world_init(&w, round, 3000);
        executed(&w, &truth);
        for (uint32_t n = 800; w.encoder.resync && n < 2 * w.trace.bytes.n; n += 331 + n / 2)
            check_buffer(&w, &truth, n, &wrapped, &whole);
        free(truth.pc);
        etrace_world_fini(&w);
    }
    print_message("%u buffers that went round, %u that did not\n", wrapped, whole);
    assert_true(wrapped > 20 && whole > 10);
}

/* As a serial port writes it: lines of base 64. */
static void code(struct tl_buf *out, const struct tl_buf *file)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert_int_equal(tl_buf_printf(out, "boot\n=== CORE DUMP START ===\r\n"), TL_OK);
    for (size_t at = 0; at < file->n; at += 48) {
        for (size_t k = at; k < file->n && k < at + 48; k += 3) {
            const uint8_t *const p = file->p + k;
            const size_t left = file->n - k;
            const uint32_t v =
                (uint32_t)p[0] << 16 | (left > 1 ? (uint32_t)p[1] << 8 : 0) | (left > 2 ? p[2] : 0);
            const char four[] = {digits[v >> 18], digits[v >> 12 & 63],
                                 left > 1 ? digits[v >> 6 & 63] : '=',
                                 left > 2 ? digits[v & 63] : '='};
            assert_int_equal(tl_buf_add(out, four, 4), TL_OK);
        }
        assert_int_equal(tl_buf_add(out, "\r\n", 2), TL_OK);
    }
    assert_int_equal(tl_buf_printf(out, "=== CORE DUMP END ===\r\n"), TL_OK);
}

/* The same dump in all its forms, with two cores, gives the same bytes and setups. */
static void forms(void **state)
{
    (void)state;
    struct etrace_world w;
    struct tl_buf file = {0}, coded = {0}, bytes[3][2] = {0};
    etrace_world_init(&w, 9, 2000);
    struct tl_sim_esp_core two[] = {core_of(&w, 1200, true), core_of(&w, 30000, false)};
    two[1].address = 0x40900000;
    const struct tl_sim_esp_dump d = dump_of(&w, two, 2);
    assert_int_equal(tl_sim_esp_make(&d, &file), TL_OK);
    code(&coded, &file);
    for (unsigned form = 0; form < 3; form++) {
        struct tl_bundle bundle;
        struct tl_buf text = {0};
        struct tl_fail fail;
        write_file(form == 2 ? ".log" : ".bin", "headerheaderheaderheader", form == 1 ? 24 : 0,
                   form == 2 ? &coded : &file);
        assert_int_equal(read_bundle(&bundle, 0, &text), TL_OK);
        assert_non_null(strstr((char *)text.p, "SHA-256 abababab"));
        assert_int_equal(bundle.n_captures, 2);
        for (unsigned i = 0; i < 2; i++) {
            const struct tl_bundle_capture *const c = &bundle.captures[i];
            assert_string_equal(c->name, i ? "core1" : "core0");
            assert_string_equal(c->setup.sources[0].name, i ? "et.1" : "et.0");
            assert_int_equal(tl_bundle_bytes(c, &bytes[form][i], &fail), TL_OK);
            assert_int_equal(bytes[form][i].n, bytes[0][i].n);
            assert_memory_equal(bytes[form][i].p, bytes[0][i].p, bytes[0][i].n);
        }
        tl_bundle_fini(&bundle);
        tl_buf_fini(&text);
        unlink(path);
    }
    assert_true(bytes[0][1].n > bytes[0][0].n && bytes[0][0].n > 600);
    for (unsigned i = 0; i < 6; i++)
        tl_buf_fini(&bytes[i / 2][i % 2]);
    tl_buf_fini(&file);
    tl_buf_fini(&coded);
    etrace_world_fini(&w);
}

static void refuses(const struct tl_sim_esp_dump *d, const char *suffix, const char *expected)
{
    struct tl_buf file = {0}, text = {0};
    struct tl_bundle bundle;
    assert_int_equal(d ? tl_sim_esp_make(d, &file) : tl_buf_add(&file, "RVTS1234", 8), TL_OK);
    write_file(suffix, "", 0, &file);
    assert_true(read_bundle(&bundle, 1, &text) < 0);
    assert_string_equal((char *)text.p, expected);
    tl_buf_fini(&file);
    tl_buf_fini(&text);
    unlink(path);
}

static void refused(void **state)
{
    (void)state;
    struct etrace_world w;
    etrace_world_init(&w, 9, 2000);
    const struct tl_sim_esp_core core = core_of(&w, 900, true);
    struct tl_sim_esp_core other = core;
    struct tl_sim_esp_dump d = dump_of(&w, &other, 1);
    d.sequence = 3;
    refuses(&d, "", "the core dump was made while its trace was written\n");
    d.sequence = 2;
    other.threshold = 0;
    refuses(&d, "",
            "core 0: its buffer went round without synchronisation: set a resync threshold\n"
            "no core's trace is in the dump\n");
    other = core;
    other.state = 2;
    refuses(&d, "", "core 0: its trace had not been stopped\nno core's trace is in the dump\n");
    other = core;
    other.missing = true;
    refuses(&d, "", "core 0: its trace is not in the dump\nno core's trace is in the dump\n");
    refuses(NULL, ".esptrace",
            "is no core dump; the layout of .esptrace files is not published: use a core dump, or "
            "the buffer's bytes with --format etrace-esp32\n");
    etrace_world_fini(&w);
}

/* Damaged dumps are read, or refused. */
static void damaged(void **state)
{
    (void)state;
    struct etrace_world w;
    struct tl_buf file = {0};
    struct tl_sim_rng rng = {3};
    etrace_world_init(&w, 9, 2000);
    const struct tl_sim_esp_core core = core_of(&w, 900, true);
    const struct tl_sim_esp_dump d = dump_of(&w, &core, 1);
    assert_int_equal(tl_sim_esp_make(&d, &file), TL_OK);
    for (unsigned round = 0; round < 600; round++) {
        struct tl_buf hurt = {0}, text = {0};
        struct tl_bundle bundle;
        assert_int_equal(tl_buf_add(&hurt, file.p, round % 2 ? file.n : file.n - round), TL_OK);
        for (unsigned i = 0; i < 3; i++)
            hurt.p[20 + tl_sim_below(&rng, 300)] = (uint8_t)tl_sim_below(&rng, 256);
        write_file("", "", 0, &hurt);
        if (read_bundle(&bundle, 1, &text) == TL_OK)
            tl_bundle_fini(&bundle);
        tl_buf_fini(&hurt);
        tl_buf_fini(&text);
        unlink(path);
    }
    tl_buf_fini(&file);
    etrace_world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(buffers), cmocka_unit_test(forms),
                                       cmocka_unit_test(refused), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
