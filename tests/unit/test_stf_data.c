/* SPDX-License-Identifier: MIT */
/* Real traces and crafted files compared with their listings; damage to each of them. */
#include "test_stf_util.h"

#include "stf/flow/flow_reader.h"

#include <dirent.h>
#include <zlib.h>

static void load_gzip(const char *name, struct tl_buf *out)
{
    char path[512];
    assert_non_null(data_path(name, path));
    gzFile f = gzopen(path, "rb");
    assert_non_null(f);
    uint8_t block[65536];
    int n;
    while ((n = gzread(f, block, sizeof block)) > 0)
        assert_int_equal(tl_buf_add(out, block, (size_t)n), TL_OK);
    gzclose(f);
}

static void assert_listing(const char *trace, const struct tl_buf *want, bool whole)
{
    struct tl_buf bytes = {0};
    struct listing l;
    assert_true(load(trace, &bytes));
    list_bytes(bytes_of(&bytes), &l);
    assert_int_equal(l.result, TL_EOF);
    assert_int_equal(l.faults & TL_STF_FAULTS_HARD, 0);
    if (whole)
        assert_int_equal(l.text.n, want->n);
    assert_true(l.text.n >= want->n);
    assert_memory_equal(l.text.p, want->p, want->n);
    tl_buf_fini(&l.text);
    tl_buf_fini(&bytes);
}

static void test_listings(void **state)
{
    (void)state;
    struct tl_buf want = {0};
    if (!load("bmi_pmp.bare.records.txt", &want)) {
        printf("no data folder: ");
        skip();
    }
    assert_listing("bmi_pmp.bare.stf", &want, true);
    assert_true(load("dhry_riscv.records.first2000.txt", &want));
    assert_listing("dhry_riscv.zstf", &want, false);
    tl_buf_reset(&want);
    load_gzip("dhrystone_opt1.records.txt.gz", &want);
    assert_listing("dhrystone_opt1.zstf", &want, true);
    tl_buf_fini(&want);
}

/* The counts of the verdicts exclude the records of the listing's header. */
struct seen {
    int result;
    uint64_t records, insns;
    unsigned faults;
    bool warning;
};

static struct seen look(const char *path)
{
    struct seen seen = {0};
    struct tl_stf_file *file;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    seen.result = tl_stf_file_open(&file, path, NULL);
    if (seen.result < 0)
        return seen;
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_reader_open(&reader, &source), TL_OK);
    bool header = true;
    while ((seen.result = tl_stf_reader_next(reader, &record, NULL)) == TL_OK) {
        seen.records += !header;
        seen.insns += record.type == TL_STF_INST_32 || record.type == TL_STF_INST_16;
        header &= !tl_stf_reader_header(reader)->complete;
    }
    seen.faults = tl_stf_reader_header(reader)->faults & TL_STF_FAULTS_HARD;
    seen.warning = tl_stf_file_warning(file) != NULL;
    tl_stf_reader_free(reader);
    tl_stf_file_close(file);
    return seen;
}

/* Files on which we differ from stf_lib's record reader, and how. docs/stf.md gives the reasons. */
static const struct {
    const char *name;
    int result; /* ours */
    bool clean; /* no header fault, no warning */
} differ[] = {
    /* stf_lib reads these and invents what was cut off */
    {"trunc_desc.stf", TL_BAD, true},
    {"trunc_ma.stf", TL_BAD, true},
    {"trunc_payload.stf", TL_BAD, true},
    /* stf_lib loses the records after the chunk's markers */
    {"z_long2nd.zstf", TL_EOF, true},
    /* stf_lib refuses these */
    {"v13_reserve_end255.stf", TL_EOF, true},
    {"vec_novlen.stf", TL_EOF, true},
    {"vec_vlen64.stf", TL_EOF, true},
    {"w_vlen64.stf", TL_EOF, true},
    {"z_short2nd.zstf", TL_EOF, true},
    {"txn.stf", TL_EOF, true},
    {"z_gap.zstf", TL_EOF, false},
    {"z_noend.zstf", TL_EOF, false},
    {"z_skipafter.zstf", TL_EOF, false},
    {"z_skippable.zstf", TL_EOF, false},
    {"z_twoframes.zstf", TL_EOF, false},
    {"z_usbig.zstf", TL_EOF, false},
    {"z_ussmall.zstf", TL_EOF, false},
    {"ev_in_header.stf", TL_EOF, false},
    {"no_endheader.stf", TL_EOF, false},
    {"no_feat.stf", TL_EOF, false},
    {"no_forcepc.stf", TL_EOF, false},
    {"no_iem.stf", TL_EOF, false},
    {"no_isa.stf", TL_EOF, false},
    {"no_tinfo.stf", TL_EOF, false},
    {"reg_in_header.stf", TL_EOF, false},
    {"two_feat.stf", TL_EOF, false},
    {"two_forcepc.stf", TL_EOF, false},
    {"two_pid.stf", TL_EOF, false},
    {"two_tinfo.stf", TL_EOF, true},
    {"ver_not_second.stf", TL_EOF, false},
};

static void check_verdict(const char *name, int rc, uint64_t records, uint64_t insns)
{
    char path[512], relative[128];
    snprintf(relative, sizeof relative, "crafted/%s", name);
    assert_non_null(data_path(relative, path));
    const struct seen seen = look(path);
    for (size_t i = 0; i < sizeof differ / sizeof *differ; i++) {
        if (strcmp(differ[i].name, name) != 0)
            continue;
        if (seen.result != differ[i].result ||
            (seen.faults == 0 && !seen.warning) != differ[i].clean)
            fail_msg("%s: result %d, faults %x, warning %d", name, seen.result, seen.faults,
                     seen.warning);
        return;
    }
    if (rc == 0 &&
        (seen.result != TL_EOF || seen.faults || seen.records != records || seen.insns != insns))
        fail_msg("%s: result %d, faults %x, %llu records, %llu instructions", name, seen.result,
                 seen.faults, (unsigned long long)seen.records, (unsigned long long)seen.insns);
    if (rc != 0 && seen.result == TL_EOF)
        fail_msg("%s: was read, and should not", name);
}

static void test_verdicts(void **state)
{
    (void)state;
    char path[512];
    if (!data_path("crafted/VERDICTS.txt", path)) {
        printf("no data folder: ");
        skip();
    }
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    char line[512];
    unsigned n = 0;
    while (fgets(line, sizeof line, f)) {
        char name[64];
        int rc;
        unsigned long long records = 0, insns = 0;
        if (sscanf(line, "%63s rec rc=%d rec: %llu records %llu", name, &rc, &records, &insns) < 2)
            continue;
        check_verdict(name, rc, records, insns);
        n++;
    }
    fclose(f);
    assert_true(n > 80);
}

/* ---- the identity ---------------------------------------------------------------------------- */

static void copy_records(struct tl_bytes file, const struct tl_stf_out_options *options,
                         struct tl_buf *out)
{
    const struct tl_stf_sink sink = {out, buf_write, buf_rewrite};
    struct tl_stf_file *f;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    struct tl_stf_out *o;
    assert_int_equal(tl_stf_file_bytes(&f, file, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    assert_int_equal(tl_stf_reader_open(&reader, &source), TL_OK);
    assert_int_equal(tl_stf_out_new(&o, options, &sink), TL_OK);
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        assert_int_equal(tl_stf_out_put(o, &record, NULL), TL_OK);
    assert_int_equal(tl_stf_out_finish(o, NULL), TL_OK);
    tl_stf_out_free(o);
    tl_stf_reader_free(reader);
    tl_stf_file_close(f);
}

/*
 * Reading and writing a plain file gives the same bytes; going through .zstf gives the same
 * records.
 */
static void test_identity(void **state)
{
    (void)state;
    static const char *const names[] = {
        "bmi_pmp.bare.stf",          "dhry_riscv.zstf",
        "dhrystone_opt1.zstf",       "crafted/by_stf_lib_v1.3.3.stf",
        "crafted/w_ev32.stf",        "crafted/w_ev64.stf",
        "crafted/txn.stf",           "crafted/vec_vlen128.stf",
        "crafted/bus.stf",           "crafted/isaext.stf",
        "crafted/reg_meta_high.stf", "crafted/w_exact.zstf"};
    const struct tl_stf_out_options plain = {.format = TL_STF_FILE_PLAIN, .unchecked = true};
    const struct tl_stf_out_options zstf = {
        .format = TL_STF_FILE_ZSTF, .markers = 10000, .unchecked = true};
    struct tl_buf file = {0};
    if (!load(names[0], &file)) {
        printf("no data folder: ");
        skip();
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tl_buf once = {0}, packed = {0}, twice = {0};
        assert_true(load(names[i], &file));
        copy_records(bytes_of(&file), &plain, &once);
        copy_records(bytes_of(&file), &zstf, &packed);
        copy_records(bytes_of(&packed), &plain, &twice);
        assert_int_equal(once.n, twice.n);
        assert_memory_equal(once.p, twice.p, once.n);
        if (file.p[0] == TL_STF_IDENTIFIER) {
            assert_int_equal(once.n, file.n);
            assert_memory_equal(once.p, file.p, file.n);
        }
        tl_buf_fini(&once);
        tl_buf_fini(&packed);
        tl_buf_fini(&twice);
    }
    tl_buf_fini(&file);
}

/* Real traces obey the order rules of the writer. */
static void test_real_traces_pass_the_checks(void **state)
{
    (void)state;
    static const char *const names[] = {"bmi_pmp.bare.stf", "dhrystone_opt1.zstf",
                                        "crafted/by_stf_lib_v1.3.3.stf"};
    const struct tl_stf_out_options checked = {.format = TL_STF_FILE_ZSTF};
    struct tl_buf file = {0}, out = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!load(names[i], &file)) {
            printf("no data folder: ");
            skip();
        }
        copy_records(bytes_of(&file), &checked, &out);
        tl_buf_fini(&out);
    }
    tl_buf_fini(&file);
}

/* ---- instructions ---------------------------------------------------------------------------- */

struct counted {
    uint64_t insns;
    uint64_t hash;
};

static void mix(struct counted *c, uint64_t pc, uint32_t opcode)
{
    c->insns++;
    c->hash = (c->hash ^ pc) * 0x100000001b3u;
    c->hash = (c->hash ^ opcode) * 0x100000001b3u;
}

static struct counted by_insns(struct tl_bytes bytes, uint64_t from)
{
    struct counted c = {0, 1};
    struct tl_stf_file *f;
    struct tl_stf_insns *s;
    struct tl_stf_insn batch[300];
    assert_int_equal(tl_stf_file_bytes(&f, bytes, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
    assert_int_equal(tl_stf_insns_seek(s, from, NULL), TL_OK);
    int n;
    while ((n = tl_stf_insns_read(s, batch, 300, NULL)) > 0) {
        for (int i = 0; i < n; i++)
            mix(&c, batch[i].pc, batch[i].opcode);
    }
    assert_int_equal(n, TL_EOF);
    tl_stf_insns_free(s);
    tl_stf_file_close(f);
    return c;
}

static struct counted by_records(struct tl_bytes bytes, uint64_t from)
{
    struct counted c = {0, 1};
    struct tl_stf_file *f;
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    struct tl_stf_pc pc = {0};
    uint64_t at = 0;
    assert_int_equal(tl_stf_file_bytes(&f, bytes, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    assert_int_equal(tl_stf_reader_open(&reader, &source), TL_OK);
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK) {
        const uint64_t address = tl_stf_pc_add(&pc, &r);
        if (tl_stf_is_marker(r.type) && at++ >= from)
            mix(&c, address, r.opcode);
    }
    tl_stf_reader_free(reader);
    tl_stf_file_close(f);
    return c;
}

static int count_items(void *context, const struct tl_item *items, size_t n)
{
    struct counted *const c = context;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == TL_ITEM_UNKNOWN)
            c->insns++;
        else if (items[i].kind == TL_ITEM_BLOCK)
            c->insns += items[i].n;
    }
    return TL_OK;
}

static void test_instructions(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t insns;
    } traces[] = {{"dhry_riscv.zstf", 2390026},
                  {"dhrystone_opt1.zstf", 287020},
                  {"bmi_pmp.bare.stf", 36},
                  {"crafted/by_stf_lib_v1.3.3.stf", 1100}};
    struct tl_buf file = {0};
    for (size_t i = 0; i < 4; i++) {
        if (!load(traces[i].name, &file)) {
            printf("no data folder: ");
            skip();
        }
        const struct counted a = by_insns(bytes_of(&file), 0);
        const struct counted b = by_records(bytes_of(&file), 0);
        assert_int_equal(a.insns, traces[i].insns);
        assert_int_equal(a.hash, b.hash);
        const uint64_t from = traces[i].insns * 7 / 9;
        assert_int_equal(by_insns(bytes_of(&file), from).hash,
                         by_records(bytes_of(&file), from).hash);
        struct tl_stf_file *f;
        struct counted items = {0};
        assert_int_equal(tl_stf_file_bytes(&f, bytes_of(&file), NULL), TL_OK);
        const struct tl_stf_source source = tl_stf_file_source(f);
        assert_int_equal(tl_stf_flow_read(&source, count_items, &items, NULL), TL_OK);
        assert_int_equal(items.insns, traces[i].insns);
        tl_stf_file_close(f);
    }
    tl_buf_fini(&file);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Run every reader on arbitrary bytes. */
static void read_everything(struct tl_bytes bytes)
{
    struct tl_stf_file *f;
    if (tl_stf_file_bytes(&f, bytes, NULL) < 0)
        return;
    const struct tl_stf_source source = tl_stf_file_source(f);
    struct tl_stf_insns *s;
    struct tl_stf_insn batch[64];
    uint64_t insns = 0;
    int n;
    assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
    while ((n = tl_stf_insns_read(s, batch, 64, NULL)) > 0) {
        for (int i = 0; i < n; i++) {
            uint8_t code[16];
            tl_stf_insn_next(s, &batch[i]);
            tl_stf_insn_bytes(s, &batch[i], code);
        }
        insns += (uint64_t)n;
    }
    const int seek = tl_stf_insns_seek(s, insns / 2, NULL);
    if (seek == TL_OK)
        n = tl_stf_insns_read(s, batch, 64, NULL);
    tl_stf_insns_free(s);
    tl_stf_file_close(f);

    struct counted items = {0};
    assert_int_equal(tl_stf_file_bytes(&f, bytes, NULL), TL_OK);
    const struct tl_stf_source again = tl_stf_file_source(f);
    const int result = tl_stf_flow_read(&again, count_items, &items, NULL);
    assert_true(result <= 0);
    tl_stf_file_close(f);
}

static void damage(const char *path, uint64_t *seed)
{
    char relative[300];
    struct tl_buf file = {0};
    snprintf(relative, sizeof relative, "%s", path);
    assert_true(load(relative, &file));
    const int rounds = file.n > 5000 ? 1 : 30;
    for (int round = 0; round < rounds; round++) {
        const size_t n = round % 3 == 0 ? rng_next(seed) % (file.n + 1) : file.n;
        uint8_t *const exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, file.p, n);
        for (uint64_t flips = rng_next(seed) % 4; flips && n; flips--)
            exact[rng_next(seed) % (round % 2 ? n
                                    : n < 200 ? n
                                              : 200)] ^= (uint8_t)(1 << rng_next(seed) % 8);
        read_everything((struct tl_bytes){exact, n});
        free(exact);
    }
    tl_buf_fini(&file);
}

static void test_damage(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("damage");
    char path[512];
    if (!data_path("crafted/VERDICTS.txt", path)) {
        printf("no data folder: ");
        skip();
    }
    *strrchr(path, '/') = 0;
    DIR *const dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char name[300];
        if (e->d_name[0] == '.' || !strstr(e->d_name, "stf"))
            continue;
        snprintf(name, sizeof name, "crafted/%s", e->d_name);
        damage(name, &seed);
    }
    closedir(dir);
    damage("bmi_pmp.bare.stf", &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listings),     cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_identity),     cmocka_unit_test(test_real_traces_pass_the_checks),
        cmocka_unit_test(test_instructions), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
