/* SPDX-License-Identifier: MIT */
/* Each allocation of setups, images and decodes fails once: nothing is lost except the requested
 * operation. */
#include "base/crew.h"
#include "decode/decode.h"
#include "import/bundle.h"
#include "import/maps.h"
#include "sim/osd_encoder.h"
#include "sim/pt_encoder.h"
#include "unit/nomem.h"
#include "unit/sim_streams.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- setups and images --------------------------------------------------------------------- */

static const char ini[] = "[trace]\nformat=tpiu,sync=none\nclock=1000\n"
                          "[source cs.10]\nprotocol=etm4\ntype=ETM4.2\ncore=Cortex-A53\n"
                          "TRCCONFIGR=1\nTRCIDR0=2\nTRCIDR2=3\n"
                          "[source cs.11]\nprotocol=itm\n[source cs.12]\nprotocol=stm\n"
                          "[image a]\nfile=a.bin\naddress=0x1000\nspace=EL1N\n"
                          "[image b]\nfile=b.bin\naddress=0x1004\nlength=4\noffset=2\n"
                          "[image c]\nfile=a.bin\naddress=0x2000\ncontext=7\nvmid=9\n"
                          "[image d]\nfile=program.elf\n";

static struct tl_buf program;
static char folder[] = "/tmp/test_nomem.XXXXXX";

static int resolve(void *context, const char *file, struct tl_bytes *bytes, struct tl_fail *fail)
{
    *bytes = strstr(file, "elf") ? (struct tl_bytes){program.p, program.n}
                                 : (struct tl_bytes){(const uint8_t *)"0123456789", 10};
    return TL_OK;
}

static int report_image(const struct tl_image *image, struct tl_buf *out)
{
    size_t n;
    const struct tl_symbol *const symbols = tl_image_symbols(image, &n);
    int rc = tl_buf_printf(out, "%zu symbols, machine %u\n", n, tl_image_machine(image));
    for (size_t i = 0; rc == TL_OK && i < n; i++)
        rc = tl_buf_printf(out, "%s\n", symbols[i].name);
    return rc;
}

static int setup_and_images(void *context, struct tl_buf *out)
{
    struct tl_setup setup;
    struct tl_image *image = NULL;
    tl_setup_init(&setup);
    int rc = tl_setup_parse(&setup, ini, sizeof ini - 1, NULL);
    if (rc == TL_OK)
        rc = tl_setup_add_image(&setup, "e.bin@0x9000,space=EL2,length=4", NULL);
    if (rc == TL_OK)
        rc = tl_setup_add_image_at(&setup, "f.bin", 0xa000, 1, 2, TL_SPACE_ANY);
    if (rc == TL_OK)
        rc = tl_setup_write(&setup, out);
    if (rc == TL_OK)
        rc = tl_image_new(&image);
    if (rc == TL_OK)
        rc = tl_setup_load_images(&setup, image, resolve, NULL, NULL);
    if (rc == TL_OK)
        rc = tl_image_freeze(image);
    if (rc == TL_OK)
        rc = report_image(image, out);
    tl_image_free(image);
    tl_setup_fini(&setup);
    return rc;
}

static void setups_and_images(void **state)
{
    assert_true(nomem_run(setup_and_images, NULL) > 20);
}

static int maps(void *context, struct tl_buf *out)
{
    struct tl_maps *m;
    struct tl_setup setup;
    tl_setup_init(&setup);
    int rc = tl_maps_new(&m);
    for (unsigned i = 0; rc == TL_OK && i < 40; i++) {
        const struct tl_map map = {.process = i % 3,
                                   .time = 10 * i,
                                   .address = 0x1000 * (i % 7),
                                   .length = 0x2000,
                                   .file = i % 2 ? "a.so" : "b.so"};
        rc = tl_maps_add(m, &map);
        if (rc == TL_OK && i % 10 == 5)
            rc = tl_maps_fork(m, 10 + i, i % 3, 10 * i + 1);
        if (rc == TL_OK && i % 10 == 7)
            rc = tl_maps_clear(m, i % 3, 10 * i + 2);
        if (rc == TL_OK && i % 10 == 8)
            rc = tl_maps_thread(m, i % 3, 100 + i, 10 * i + 3);
    }
    if (rc == TL_OK)
        rc = tl_maps_images(m, &setup);
    if (rc == TL_OK)
        rc = tl_setup_write(&setup, out);
    tl_setup_fini(&setup);
    tl_maps_free(m);
    return rc;
}

static void memory_maps(void **state)
{
    assert_true(nomem_run(maps, NULL) > 3);
}

/* Code of two processes that is loaded and unloaded at the same addresses. */
static int fill_over_time(struct tl_image *image)
{
    static const uint8_t code[64];
    int rc = TL_OK;
    for (unsigned i = 0; rc == TL_OK && i < 60; i++) {
        const struct tl_image_context process = {.has_context_id = true, .context_id = i % 2};
        const struct tl_image_span span = {10 * (uint64_t)i, 10 * (uint64_t)i + 25};
        rc = tl_image_bind(image, &process);
        tl_image_set_period(image, span);
        if (rc == TL_OK)
            rc =
                tl_image_add_bytes(image, 0x1000 + 16 * (i % 9),
                                   (struct tl_bytes){code, 4 + i % 60}, TL_SPACE_ANY, "code", NULL);
    }
    return rc == TL_OK ? tl_image_freeze(image) : rc;
}

static int image_over_time(void *context, struct tl_buf *out)
{
    const struct tl_image_context process = {.has_context_id = true, .context_id = 1};
    struct tl_image *image;
    int rc = tl_image_new(&image);
    if (rc < 0)
        return rc;
    rc = fill_over_time(image);
    for (uint64_t time = 0, until; rc == TL_OK && time < 600; time = until) {
        const uint64_t view = tl_image_view(image, &process, time, &until);
        rc = tl_buf_printf(out, "%llu: %llu\n", (unsigned long long)time, (unsigned long long)view);
    }
    tl_image_free(image);
    return rc;
}

static void images_over_time(void **state)
{
    assert_true(nomem_run(image_over_time, NULL) > 5);
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs(text, f) < 0, 0);
    assert_int_equal(fclose(f), 0);
}

static void make_snapshot(void)
{
    put("snapshot.ini", "[snapshot]\nversion=1.0\n[device_list]\ndevice0=cpu_0.ini\n"
                        "device1=etm_1.ini\ndevice2=itm.ini\n[trace]\nmetadata=trace.ini\n");
    put("cpu_0.ini", "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A53\n[regs]\nPC=0x80\n"
                     "[dump]\nfile=a.bin\naddress=0x1000\nlength=4\n[dump1]\nfile=b.bin\n"
                     "address=0x2000\nspace=EL1N\n");
    put("etm_1.ini", "[device]\nname=etm_1\nclass=trace_source\ntype=ETM4.4\n[regs]\n"
                     "TRCCONFIGR=1\nTRCTRACEIDR=0x10\nTRCIDR0=1\n");
    put("itm.ini",
        "[device]\nname=itm\nclass=trace_source\ntype=ITM\n[regs]\nITMCTRL=0x00130000\n");
    put("a.bin", "first ");
    put("b.bin", "second");
    put("trace.ini", "[trace_buffers]\nbuffers=one,two\n[one]\nname=ETB_1\nfile=a.bin,b.bin\n"
                     "format=coresight\n[two]\nname=ETB_2\nfile=b.bin\nformat=source_data\n"
                     "[source_buffers]\netm_1=ETB_1\nitm=ETB_1,ETB_2\n"
                     "[core_trace_sources]\ncpu_0=etm_1\n");
}

/* Captures described by files, with their bytes. */
static int bundle(void *context, struct tl_buf *out)
{
    const struct tl_bundle_request *const request = context;
    struct tl_bundle bundle;
    struct tl_fail fail = {0};
    const char *where;
    int rc = tl_bundle_read(&bundle, request, &where, &fail);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == TL_OK && i < bundle.n_captures; i++) {
        rc = tl_setup_write(&bundle.captures[i].setup, out);
        if (rc == TL_OK)
            rc = tl_bundle_bytes(&bundle.captures[i], out, &fail);
    }
    tl_bundle_fini(&bundle);
    return rc;
}

static void snapshots(void **state)
{
    struct tl_bundle_request request = {.snapshot = folder};
    assert_true(nomem_run(bundle, &request) > 10);
}

static void one_file(void **state)
{
    char input[256], config[256];
    const char *const images[] = {"e.bin@0x9000,space=EL2,length=4", "f.bin"};
    snprintf(input, sizeof input, "%s/a.bin", folder);
    snprintf(config, sizeof config, "%s/config.ini", folder);
    put("config.ini", ini);
    struct tl_bundle_request request = {.input = input,
                                        .format = "tpiu,sync=none",
                                        .config = config,
                                        .images = images,
                                        .n_images = 2};
    assert_true(nomem_run(bundle, &request) > 5);
}

static void put_bytes(const char *path, struct tl_bytes bytes)
{
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes.p, 1, bytes.n, f), bytes.n);
    assert_int_equal(fclose(f), 0);
}

/* A perf.data file whose code is not found; the code that it contains is read while it is opened.
 * Then as a folder, with records in a second file. */
static void a_recording(void **state)
{
    static const uint8_t round[] = {68, 0, 0, 0, 0, 0, 8, 0}; /* FINISHED_ROUND */
    struct tl_buf file = {0};
    char path[512], data[540];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/perf/remap.file", TL_SOURCE_DIR);
    assert_int_equal(tl_buf_read_file(&file, path, 1 << 20, NULL), TL_OK);
    const struct tl_bytes whole = {file.p + 1, file.n - 1}; /* without the target's byte */
    snprintf(path, sizeof path, "%s/perf.data", folder);
    put_bytes(path, whole);
    struct tl_bundle_request request = {
        .input = path, .places = {.symfs = "/dev/null", .buildid_dir = "/dev/null"}};
    assert_true(nomem_run(bundle, &request) > 10);
    snprintf(path, sizeof path, "%s/recording", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(data, sizeof data, "%s/data", path);
    put_bytes(data, whole);
    snprintf(data, sizeof data, "%s/data.0", path);
    put_bytes(data, (struct tl_bytes){round, sizeof round});
    assert_true(nomem_run(bundle, &request) > 10);
    tl_buf_fini(&file);
}

/* Streams of Intel PT whose bytes are in separate files, one of them a ring buffer. */
static void files_of_sources(void **state)
{
    char config[256];
    snprintf(config, sizeof config, "%s/two.ini", folder);
    put("two.ini", "[source pt.0]\nprotocol=pt\nfile=a.bin\nMTC_FREQ=3\n"
                   "[source pt.1]\nprotocol=pt\nfile=b.bin\nhead=2\nfile=a.bin\nhead=3\n");
    struct tl_bundle_request request = {.config = config};
    assert_true(nomem_run(bundle, &request) > 5);
}

/* ---- decodes ------------------------------------------------------------------------------- */

struct capture {
    const struct tl_setup *setup;
    const struct tl_image *image;
    struct tl_bytes in;
    unsigned threads; /* 0: no crew */
    bool paths, packets, saves;
    bool coded; /* blocks have their text cached */
};

struct sink {
    struct tl_buf *out;
    bool coded;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct sink *const s = context;
    return s->coded ? tl_item_text_coded(s->out, items, n) : tl_item_text(s->out, items, n);
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    return tl_buf_printf(((struct sink *)context)->out, "%s\n", line);
}

static int begin(const struct capture *c, struct tl_decode **d, struct sink *s,
                 struct tl_crew *crew)
{
    const struct tl_decode_sink sink = {
        .context = s, .items = on_items, .packet = c->packets ? on_packet : NULL};
    struct tl_fail fail = {0};
    const int rc = tl_decode_new(d, c->setup, c->image, &sink, &fail);
    if (rc < 0)
        return rc;
    if (c->paths)
        tl_decode_allow_paths(*d);
    if (c->coded)
        tl_decode_set_code(*d, tl_item_text_insn);
    return crew ? tl_decode_set_crew(*d, crew) : TL_OK;
}

/* Save the decode, and continue with another one. */
static int hand_on(const struct capture *c, struct tl_decode **d, struct sink *s)
{
    struct tl_buf saved = {0};
    int rc = tl_decode_save(*d, &saved);
    if (rc == TL_OK) {
        tl_decode_free(*d);
        *d = NULL;
        rc = begin(c, d, s, NULL);
        if (rc == TL_OK)
            rc = tl_decode_load(*d, (struct tl_bytes){saved.p, saved.n});
    }
    tl_buf_fini(&saved);
    return rc == TL_AGAIN ? TL_OK : rc;
}

static int decode(void *context, struct tl_buf *out)
{
    const struct capture *const c = context;
    struct tl_decode *d = NULL;
    struct tl_crew *crew = NULL;
    struct sink sink = {.out = out, .coded = c->coded};
    int rc = c->threads ? tl_crew_new(&crew, c->threads) : TL_OK;
    if (rc == TL_OK)
        rc = begin(c, &d, &sink, crew);
    const size_t piece = c->threads ? c->in.n : c->in.n / 5 + 1;
    for (size_t at = 0; rc == TL_OK && at < c->in.n; at += piece) {
        rc = tl_decode_push(d, c->in.p + at, piece < c->in.n - at ? piece : c->in.n - at);
        if (rc == TL_OK && c->saves)
            rc = hand_on(c, &d, &sink);
    }
    if (rc == TL_OK)
        rc = tl_decode_finish(d);
    tl_decode_free(d);
    tl_crew_free(crew);
    return rc;
}

/* Simulated trace units of many configurations: with and without frames, intact and damaged. */
static void etm4(void **state)
{
    struct tl_sim_rng rng = {3};
    for (unsigned round = 0; round < 6; round++) {
        struct world w;
        streamed_world(&w, round, 6000, 2, &rng);
        struct capture c = {.setup = &w.setup,
                            .image = w.image,
                            .in = {w.trace.p, w.trace.n},
                            .packets = round == 4,
                            .saves = round % 2,
                            .coded = round == 2};
        assert_true(nomem_run(decode, &c) > 5);
        world_fini(&w);
    }
}

static void etm4_by_threads(void **state)
{
    struct world w;
    const struct tl_sim_program_options shape = {.seed = 5, .extra = 10};
    const struct tl_sim_core_options options = {
        .seed = 5, .etm = {.minor = 2, .trace_id = 0x10, .sync_every = 1024}};
    world_init(&w, &shape, &options, 120000, 10);
    struct capture c = {.setup = &w.setup,
                        .image = w.image,
                        .in = {w.trace.p, w.trace.n},
                        .threads = 3,
                        .paths = false};
    assert_true(nomem_run(decode, &c) > 5);
    world_fini(&w);
}

static void software_trace(void **state)
{
    static const char *const formats[] = {"itm,id=1", "stm,id=2", "tpiu"};
    struct tl_sim_rng rng = {9};
    uint8_t bytes[3000];
    for (unsigned i = 0; i < 3; i++) {
        struct tl_setup setup;
        tl_setup_init(&setup);
        assert_int_equal(tl_setup_format(&setup, formats[i], NULL), TL_OK);
        if (i == 2)
            assert_int_equal(tl_setup_parse(&setup, ini, strlen(ini), NULL), TL_OK);
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)tl_sim_below(&rng, 256);
        memset(bytes + 100, 0, 5);
        bytes[105] = 0x80;
        memset(bytes + 200, 0xff, 11);
        bytes[211] = 0x0f;
        struct capture c = {.setup = &setup, .in = {bytes, sizeof bytes}, .saves = true};
        assert_true(nomem_run(decode, &c) > 1);
        c.packets = true;
        c.saves = false;
        assert_true(nomem_run(decode, &c) > 1);
        tl_setup_fini(&setup);
    }
}

static void datagrams(void **state)
{
    static const char declared[] = "[source di.0.1]\nprotocol=osd-ctm\nADDR_WIDTH=32\n"
                                   "[source di.0.2]\nprotocol=osd-stm\nVALWIDTH=32\n";
    struct tl_setup setup;
    struct tl_sim_osd e;
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "di", NULL), TL_OK);
    assert_int_equal(tl_setup_parse(&setup, declared, sizeof declared - 1, NULL), TL_OK);
    tl_sim_osd_init(&e);
    e.keep_truth = false;
    e.max_pkt_len = 12;
    for (uint32_t i = 0; i < 300; i++) {
        const struct tl_sim_osd_truth event = {.time = 10 * i, .pc = 4 * i, .npc = 8 * i};
        assert_int_equal(tl_sim_osd_ctm(&e, 1, 32, &event), TL_OK);
        assert_int_equal(tl_sim_osd_stm(&e, 2, 32, 10 * i, (uint16_t)(i % 5), i), TL_OK);
        assert_int_equal(tl_sim_osd_uart(&e, 3, (uint8_t)i), TL_OK);
    }
    struct capture c = {.setup = &setup, .in = {e.out.p, e.out.n}, .saves = true};
    assert_true(nomem_run(decode, &c) > 5);
    c.packets = true;
    c.saves = false;
    assert_true(nomem_run(decode, &c) > 5);
    tl_sim_osd_fini(&e);
    tl_setup_fini(&setup);
}

static void intel_pt(void **state)
{
    struct tl_setup setup;
    struct tl_sim_pt pt = {0};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "pt", NULL), TL_OK);
    tl_sim_pt_bare(&pt, TL_PT_PSB);
    tl_sim_pt_bare(&pt, TL_PT_PSBEND);
    for (unsigned i = 0; i < 500; i++) {
        tl_sim_pt_branch(&pt, i % 3);
        if (i % 7 == 0)
            tl_sim_pt_ip(&pt, TL_PT_TIP, 0x1000 + 64 * i);
    }
    struct capture c = {.setup = &setup, .in = {pt.out.p, pt.out.n}, .packets = true};
    assert_true(nomem_run(decode, &c) > 1);
    tl_sim_pt_fini(&pt);
    tl_setup_fini(&setup);
}

static int make(void **state)
{
    const struct tl_sim_program_options shape = {.seed = 1};
    struct tl_sim_program p;
    assert_int_equal(tl_sim_program_init(&p, &shape), TL_OK);
    assert_int_equal(tl_sim_program_elf(&p, &program), TL_OK);
    tl_sim_program_fini(&p);
    if (!mkdtemp(folder))
        return -1;
    make_snapshot();
    return 0;
}

static int unmake(void **state)
{
    char command[64];
    tl_buf_fini(&program);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setups_and_images), cmocka_unit_test(memory_maps),
        cmocka_unit_test(images_over_time),  cmocka_unit_test(snapshots),
        cmocka_unit_test(one_file),          cmocka_unit_test(a_recording),
        cmocka_unit_test(files_of_sources),  cmocka_unit_test(etm4),
        cmocka_unit_test(etm4_by_threads),   cmocka_unit_test(software_trace),
        cmocka_unit_test(datagrams),         cmocka_unit_test(intel_pt),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
