/* SPDX-License-Identifier: MIT */
/*
 * Each allocation in code that follows a program fails once: Intel PT, perf.data and its importer,
 * regions of an execution, debug information, images placed by an ELF file itself.
 */
#include "decode/ops.h"
#include "dwarf/dwarf.h"
#include "import/perf.h"
#include "regions/simpoints.h"
#include "sim/program_dwarf.h"
#include "sim/pt_flow_encoder.h"
#include "unit/nomem.h"

/* ---- Intel PT ------------------------------------------------------------------------------ */

struct execution {
    struct tl_source source;
    struct tl_image *image;
    struct tl_bytes in;
    bool saves;
};

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return tl_buf_printf(context, "%s %llu\n", reason, (unsigned long long)bytes);
}

static int make_decoder(const struct execution *e, struct tl_stream_decoder **d, struct tl_buf *out)
{
    const struct tl_stream_sink sink = {.context = out, .items = on_items, .loss = on_loss};
    struct tl_fail fail = {0};
    *d = NULL;
    return tl_pt_ops.create(d, &e->source, e->image, &sink, &fail);
}

static int hand_on(const struct execution *e, struct tl_stream_decoder **d, struct tl_buf *out)
{
    struct tl_buf kept = {0};
    struct tl_state save = {.out = &kept};
    int rc = tl_pt_ops.flush(*d);
    if (rc == TL_OK) {
        tl_pt_ops.state(*d, &save);
        rc = save.rc;
    }
    if (rc == TL_OK) {
        tl_pt_ops.destroy(*d);
        rc = make_decoder(e, d, out);
    }
    if (rc == TL_OK) {
        struct tl_state load = {.in = {kept.p, kept.n}};
        tl_pt_ops.state(*d, &load);
        rc = load.rc;
    }
    tl_buf_fini(&kept);
    return rc;
}

static int follow_pt(void *context, struct tl_buf *out)
{
    const struct execution *const e = context;
    const size_t piece = e->in.n / 5 + 1;
    struct tl_stream_decoder *d;
    int rc = make_decoder(e, &d, out);
    for (size_t at = 0; rc == TL_OK && at < e->in.n; at += piece) {
        const size_t left = e->in.n - at;
        const struct tl_run run = {e->in.p + at, piece < left ? piece : left, at, NULL};
        rc = tl_pt_ops.push(d, &run);
        if (rc == TL_OK && e->saves)
            rc = hand_on(e, &d, out);
    }
    if (rc == TL_OK)
        rc = tl_pt_ops.finish(d, TL_LOSS_CUT_OFF);
    if (d)
        tl_pt_ops.destroy(d);
    return rc;
}

static void intel_pt(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        const struct tl_sim_pt_flow_options options = {
            .no_ret_compression = i % 2, .deferred_tips = i > 1, .timing = i == 1, .toggles = true};
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        struct execution e = {.source = {.protocol = TL_PROTO_PT}, .saves = i == 3};
        tl_sim_x86_program_init(&program, 3 + i, 20);
        tl_sim_pt_flow_init(&flow, &program, &options, i);
        tl_sim_pt_flow_run(&flow, 800);
        assert_int_equal(tl_image_new(&e.image), TL_OK);
        for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++)
            assert_int_equal(tl_image_add_bytes(e.image, program.parts[zone].base,
                                                (struct tl_bytes){program.parts[zone].code.p,
                                                                  program.parts[zone].code.n},
                                                TL_SPACE_ANY, NULL, NULL),
                             TL_OK);
        assert_int_equal(tl_image_freeze(e.image), TL_OK);
        e.in = (struct tl_bytes){flow.pt.out.p, flow.pt.out.n};
        assert_true(nomem_run(follow_pt, &e) > 5);
        tl_image_free(e.image);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
}

/* ---- perf.data ----------------------------------------------------------------------------- */

struct recording {
    struct tl_bytes in;
    const char *format;
    bool saves;
};

static int on_stream_items(void *context, const struct tl_decode_stream *stream,
                           const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

/* Read bytes that were pushed before the state was saved. */
static int read_again(void *context, uint64_t offset, uint8_t *bytes, size_t n)
{
    const struct recording *const c = context;
    if (offset > c->in.n || n > c->in.n - offset)
        return TL_IO;
    memcpy(bytes, c->in.p + offset, n);
    return TL_OK;
}

static int begin_perf(struct recording *c, const struct tl_setup *setup, struct tl_decode **d,
                      struct tl_buf *out)
{
    const struct tl_decode_sink sink = {.context = out, .items = on_stream_items};
    struct tl_fail fail = {0};
    const int rc = tl_decode_new(d, setup, NULL, &sink, &fail);
    if (rc == TL_OK)
        tl_decode_set_reader(*d, read_again, c);
    return rc;
}

/* Save the decode, and continue with another one. */
static int hand_perf_on(struct recording *c, const struct tl_setup *setup, struct tl_decode **d,
                        struct tl_buf *out)
{
    struct tl_buf saved = {0};
    int rc = tl_decode_save(*d, &saved);
    if (rc == TL_OK) {
        tl_decode_free(*d);
        *d = NULL;
        rc = begin_perf(c, setup, d, out);
        if (rc == TL_OK)
            rc = tl_decode_load(*d, (struct tl_bytes){saved.p, saved.n});
    }
    tl_buf_fini(&saved);
    return rc == TL_AGAIN ? TL_OK : rc;
}

static int decode_perf(void *context, struct tl_buf *out)
{
    struct recording *const c = context;
    const size_t piece = c->in.n / 7 + 1;
    struct tl_setup setup;
    struct tl_decode *d = NULL;
    tl_setup_init(&setup);
    int rc = tl_setup_format(&setup, c->format, NULL);
    if (rc == TL_OK)
        rc = begin_perf(c, &setup, &d, out);
    for (size_t at = 0; rc == TL_OK && at < c->in.n; at += piece) {
        rc = tl_decode_push(d, c->in.p + at, piece < c->in.n - at ? piece : c->in.n - at);
        if (rc == TL_OK && c->saves)
            rc = hand_perf_on(c, &setup, &d, out);
    }
    if (rc == TL_OK)
        rc = tl_decode_finish(d);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    return rc;
}

static int import_perf(void *context, struct tl_buf *out)
{
    static const struct tl_code_places places = {.symfs = "/dev/null", .buildid_dir = "/dev/null"};
    const struct recording *const c = context;
    struct tl_perf_import *import = NULL;
    struct tl_setup setup;
    tl_setup_init(&setup);
    int rc = tl_perf_import_new(&import, &places, NULL, NULL);
    if (rc == TL_OK)
        rc = tl_perf_import_push(import, c->in);
    if (rc == TL_OK)
        rc = tl_perf_import_finish(import);
    if (rc == TL_OK)
        rc = tl_perf_import_setup(import, &setup);
    if (rc == TL_OK)
        rc = tl_setup_write(&setup, out);
    tl_perf_import_free(import);
    tl_setup_fini(&setup);
    return rc;
}

static void perf_data(void **state)
{
    static const char *const names[] = {"compressed.pipe", "coresight.pipe", "remap.file",
                                        "snapshot.pipe",   "threads.pipe",   "made-code"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tl_buf file = {0};
        char path[512];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/perf/%s", TL_SOURCE_DIR, names[i]);
        assert_int_equal(tl_buf_read_file(&file, path, 1 << 20, NULL), TL_OK);
        /* The first byte is the fuzz target's. */
        struct recording c = {.in = {file.p + 1, file.n - 1},
                              .format = i >= 4 ? "perf,threads=yes,events=yes" : "perf"};
        assert_true(nomem_run(decode_perf, &c) > 5);
        c.saves = true;
        assert_true(nomem_run(decode_perf, &c) > 5);
        assert_true(nomem_run(import_perf, &c) > 5);
        tl_buf_fini(&file);
    }
}

/* ---- regions ------------------------------------------------------------------------------- */

static int some_intervals(struct tl_simpoints *points, unsigned n)
{
    static const uint8_t addi[] = {0x13, 0x05, 0x15, 0x00}; /* addi a0, a0, 1 */
    struct tl_vectors *v = NULL;
    int rc = tl_vectors_new(&v, 20, tl_simpoints_add, points);
    for (unsigned i = 0; rc == TL_OK && i < 20 * n; i++) {
        rc = tl_vectors_insn(v, TL_ISA_RV64, 0x1000 * (1 + i / 100) + 4 * (i % 10),
                             (struct tl_bytes){addi, sizeof addi});
        if (rc == TL_OK)
            rc = tl_vectors_access(v, 0x1000 * (i % 7));
    }
    if (rc == TL_OK)
        rc = tl_vectors_finish(v);
    tl_vectors_free(v);
    return rc;
}

static int choose_regions(void *context, struct tl_buf *out)
{
    struct tl_simpoints points, more;
    struct tl_simpoint *chosen = NULL;
    size_t n = 0;
    tl_simpoints_init(&points);
    tl_simpoints_init(&more);
    int rc = some_intervals(&points, 20);
    if (rc == TL_OK)
        rc = some_intervals(&more, 10);
    if (rc == TL_OK)
        rc = tl_simpoints_join(&points, &more);
    if (rc == TL_OK)
        rc = tl_simpoints_choose(&points, 4, NULL, &chosen, &n);
    for (size_t i = 0; rc == TL_OK && i < n; i++)
        rc = tl_buf_printf(out, "%llu %f\n", (unsigned long long)chosen[i].first, chosen[i].weight);
    free(chosen);
    tl_simpoints_fini(&points);
    tl_simpoints_fini(&more);
    return rc;
}

static void regions(void **state)
{
    assert_true(nomem_run(choose_regions, NULL) > 5);
}

/* ---- debug information --------------------------------------------------------------------- */

struct debugged {
    struct tl_sim_program program;
    struct tl_buf elf;
};

static int find_lines(void *context, struct tl_buf *out)
{
    const struct debugged *const d = context;
    struct tl_dwarf *dwarf = NULL;
    struct tl_fail fail = {0};
    int rc = tl_dwarf_open(&dwarf, (struct tl_bytes){d->elf.p, d->elf.n}, &fail);
    for (uint32_t i = 0; rc == TL_OK && i < d->program.n_insns; i += 5) {
        struct tl_dwarf_place place;
        rc = tl_dwarf_at(dwarf, tl_sim_program_address(&d->program, i), &place);
        if (rc == TL_OK)
            rc = tl_buf_printf(out, "%s:%u %zu\n", place.file, (unsigned)place.line,
                               (size_t)place.n_inlined);
        rc = rc == TL_NOTFOUND ? TL_OK : rc;
    }
    tl_dwarf_close(dwarf);
    return rc;
}

static void debug_information(void **state)
{
    const struct tl_sim_program_options options = {.seed = 7, .extra = 10};
    struct debugged d = {.elf = {0}};
    assert_int_equal(tl_sim_program_init(&d.program, &options), TL_OK);
    assert_int_equal(tl_sim_program_elf(&d.program, &d.elf), TL_OK);
    assert_true(nomem_run(find_lines, &d) > 3);
    tl_sim_program_fini(&d.program);
    tl_buf_fini(&d.elf);
}

/* ---- images that a file places by itself ---------------------------------------------------- */

static int the_file(void *context, const char *file, struct tl_bytes *bytes, struct tl_fail *fail)
{
    const struct debugged *const d = context;
    *bytes = (struct tl_bytes){d->elf.p, d->elf.n};
    return TL_OK;
}

static int load_anchored(void *context, struct tl_buf *out)
{
    struct debugged *const d = context;
    const char *const anchors[] = {".text", d->program.functions[0].name};
    struct tl_setup setup;
    struct tl_image *image = NULL;
    struct tl_fail fail = {0};
    size_t n = 0;
    tl_setup_init(&setup);
    int rc = tl_image_new(&image);
    for (unsigned i = 0; rc == TL_OK && i < 2; i++) {
        rc = tl_setup_add_image_at(&setup, i ? "all" : "part", 0x100000000 << i, 0, UINT64_MAX,
                                   TL_SPACE_ANY);
        if (rc == TL_OK)
            rc = tl_setup_image_anchor(&setup.images[i], anchors[i]);
    }
    if (rc == TL_OK)
        rc = tl_setup_load_images(&setup, image, the_file, d, &fail);
    if (rc == TL_OK)
        rc = tl_image_freeze(image);
    const struct tl_symbol *const symbols = rc == TL_OK ? tl_image_symbols(image, &n) : NULL;
    for (size_t i = 0; rc == TL_OK && i < n; i++)
        rc = tl_buf_printf(out, "%llx %s\n", (unsigned long long)symbols[i].address,
                           symbols[i].name);
    tl_image_free(image);
    tl_setup_fini(&setup);
    return rc;
}

static void anchored_images(void **state)
{
    const struct tl_sim_program_options options = {.seed = 7, .extra = 10};
    struct debugged d = {.elf = {0}};
    assert_int_equal(tl_sim_program_init(&d.program, &options), TL_OK);
    assert_int_equal(tl_sim_program_elf(&d.program, &d.elf), TL_OK);
    assert_true(nomem_run(load_anchored, &d) > 5);
    tl_sim_program_fini(&d.program);
    tl_buf_fini(&d.elf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intel_pt),        cmocka_unit_test(perf_data),
        cmocka_unit_test(regions),         cmocka_unit_test(debug_information),
        cmocka_unit_test(anchored_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
