/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data.h"
#include "image/elf_places.h"
#include "import/bundle.h"
#include "setup/ini_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 2304 MHz; the counter started some time before the clock. */
static void clock_of_the_system(void **state)
{
    static const char text[] = "[trace]\nformat=perf,threads=yes\n"
                               "time_conv=31,932067556,0xffffffffffff0000\n";
    struct tl_setup s, again;
    struct tl_fail fail;
    struct tl_buf out = {0};
    (void)state;
    tl_setup_init(&s);
    assert_int_equal(tl_setup_parse(&s, text, sizeof text - 1, &fail), TL_OK);
    assert_true(s.threads && s.clock.known);
    assert_int_equal(tl_clock_rate(&s.clock), 2303999998);
    assert_int_equal(tl_clock_ns(&s.clock, 0), 0);
    assert_int_equal(tl_clock_ns(&s.clock, 2304000000), 1000000000 - 0x10000);
    for (uint64_t ns = 0; ns < 1000; ns++) {
        const uint64_t ticks = tl_clock_ticks(&s.clock, ns);
        assert_true(tl_clock_ns(&s.clock, ticks) >= ns);
        assert_true(ns == 0 || tl_clock_ns(&s.clock, ticks - 1) < ns);
    }
    assert_true(tl_clock_ns(&s.clock, UINT64_MAX) > UINT64_MAX / 3);
    assert_int_equal(tl_setup_write(&s, &out), TL_OK);
    tl_setup_init(&again);
    assert_int_equal(tl_setup_parse(&again, (const char *)out.p, out.n, &fail), TL_OK);
    assert_true(again.threads);
    assert_memory_equal(&again.clock, &s.clock, sizeof s.clock);
    tl_setup_fini(&again);
    tl_setup_fini(&s);
    tl_buf_fini(&out);
    static const char *const bad[] = {"33,1,0", "1,0,0", "1,1", "1,1,1,1", "1,x,0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[80];
        snprintf(line, sizeof line, "[trace]\nformat=perf\ntime_conv=%s\n", bad[i]);
        tl_setup_init(&s);
        assert_int_equal(tl_setup_parse(&s, line, strlen(line), &fail), TL_BAD);
        tl_setup_fini(&s);
    }
}

static void formats_and_options(void **state)
{
    struct tl_setup s;
    struct tl_fail fail;
    tl_setup_init(&s);
    assert_int_equal(tl_setup_format(&s, "tpiu,sync=fsync,clock=1000", &fail), TL_OK);
    assert_int_equal(s.container, TL_CONTAINER_TPIU);
    assert_int_equal(s.sync, TL_SYNC_FSYNC);
    assert_int_equal(s.clock_hz, 1000);
    tl_setup_fini(&s);
    assert_int_equal(tl_setup_format(&s, "etm4,id=0x22", &fail), TL_OK);
    assert_int_equal(s.container, TL_CONTAINER_SINGLE);
    assert_string_equal(s.sources[0].name, "cs.22");
    assert_int_equal(s.sources[0].protocol, TL_PROTO_ETM4);
    tl_setup_fini(&s);
    assert_int_equal(tl_setup_format(&s, "vhs", &fail), TL_USAGE);
    assert_non_null(strstr(fail.text, "tpiu"));
    assert_int_equal(tl_setup_format(&s, "tpiu,sync=maybe", &fail), TL_USAGE);
    assert_int_equal(tl_setup_format(&s, "etm4,colour=red", &fail), TL_USAGE);
    tl_setup_fini(&s);
}

static const char config[] = "; a board\n"
                             "[trace]\n"
                             "format=tpiu\n"
                             "clock=50000000\n"
                             "[source cs.10]\n"
                             "protocol=etm4\n"
                             "type=ETM4.2\n"
                             "core=Cortex-A53\n"
                             "TRCCONFIGR=0x1\r\n"
                             "  TRCIDR0(0x078) = 671092641\n"
                             "[source cs.20]\n"
                             "protocol=stm\n"
                             "[image boot]\n"
                             "file=boot.bin\n"
                             "address=0x8000\n"
                             "offset=16\n"
                             "length=0x100\n"
                             "space=EL1N\n"
                             "[image elf]\n"
                             "file=/app.elf\n";

static void assert_config(const struct tl_setup *s)
{
    assert_int_equal(s->container, TL_CONTAINER_TPIU);
    assert_int_equal(s->clock_hz, 50000000);
    assert_int_equal(s->n_sources, 2);
    const struct tl_source *const etm = tl_setup_source(s, 0x10);
    assert_non_null(etm);
    assert_string_equal(etm->core, "Cortex-A53");
    assert_int_equal(tl_source_reg(etm, "TRCCONFIGR", 7), 1);
    assert_int_equal(tl_source_reg(etm, "TRCIDR0", 7), 671092641);
    assert_int_equal(tl_source_reg(etm, "TRCIDR8", 7), 7);
    assert_int_equal(tl_setup_source(s, 0x20)->protocol, TL_PROTO_STM);
    assert_null(tl_setup_source(s, 0x30));
    assert_int_equal(s->n_images, 2);
    assert_int_equal(s->images[0].address, 0x8000);
    assert_int_equal(s->images[0].offset, 16);
    assert_int_equal(s->images[0].length, 0x100);
    assert_true(s->images[1].length == UINT64_MAX);
    assert_string_equal(s->images[1].file, "/app.elf");
}

static void text_there_and_back(void **state)
{
    struct tl_setup s;
    struct tl_fail fail = {0};
    tl_setup_init(&s);
    assert_int_equal(tl_setup_parse(&s, config, strlen(config), &fail), TL_OK);
    assert_config(&s);
    struct tl_buf text = {0};
    assert_int_equal(tl_setup_write(&s, &text), TL_OK);
    struct tl_setup again;
    tl_setup_init(&again);
    assert_int_equal(tl_setup_parse(&again, (char *)text.p, text.n, &fail), TL_OK);
    assert_config(&again);
    struct tl_buf second = {0};
    assert_int_equal(tl_setup_write(&again, &second), TL_OK);
    assert_int_equal(text.n, second.n);
    assert_memory_equal(text.p, second.p, text.n);
    tl_buf_fini(&text);
    tl_buf_fini(&second);
    tl_setup_fini(&s);
    tl_setup_fini(&again);
}

/* Names of files and processes in a capture can be anything; each stays a single value in the
 * setup's text. */
static void names_of_a_capture(void **state)
{
    static const char nasty[] = "/opt/a\n[trace];b = c";
    char longest[400];
    struct tl_setup s, again;
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    (void)state;
    memset(longest, 'x', sizeof longest);
    memcpy(longest + sizeof longest - 5, "/end", 5);
    tl_setup_init(&s);
    tl_setup_init(&again);
    assert_int_equal(tl_setup_format(&s, "perf", &fail), TL_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tl_setup_add_image_at(&s, "build-id:0c9a", 0x1000, 0, 64, TL_SPACE_ANY),
                         TL_OK);
        assert_int_equal(tl_setup_image_path(&s.images[i], i ? longest : nasty), TL_OK);
    }
    assert_int_equal(tl_setup_add_context(&s, false, 7, "kworker/0:1\n;x"), TL_OK);
    assert_int_equal(tl_setup_add_context(&s, true, 7, "guest"), TL_OK);
    assert_int_equal(tl_setup_write(&s, &text), TL_OK);
    assert_int_equal(tl_setup_parse(&again, (char *)text.p, text.n, &fail), TL_OK);
    assert_int_equal(again.n_images, 2);
    assert_string_equal(again.images[0].path, "/opt/a?[trace]?b = c");
    assert_int_equal(strlen(again.images[1].path), 160);
    assert_non_null(strstr(again.images[1].path, "/end"));
    assert_string_equal(tl_setup_context_name(&again, false, 7), "kworker/0:1??x");
    assert_string_equal(tl_setup_context_name(&again, true, 7), "guest");
    assert_null(tl_setup_context_name(&again, false, 8));
    /* A missing file is omitted, without an error. */
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&again, image, NULL, NULL, &fail), TL_OK);
    tl_image_free(image);
    tl_setup_fini(&s);
    tl_setup_fini(&again);
    tl_buf_fini(&text);
    static const char *const bad[] = {"[context x]\nname=a\n", "[vmid 1]\npath=a\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tl_setup_init(&s);
        assert_int_equal(tl_setup_parse(&s, bad[i], strlen(bad[i]), &fail), TL_BAD);
        tl_setup_fini(&s);
    }
}

/* The address of a section or symbol is taken from the ELF file, here of this program. */
static void anchored_images(void **state)
{
    enum { N = 64 };
    static const char text[] = "[image 0]\nfile=/proc/self/exe\naddress=0x10000\nanchor=.text\n"
                               "offset=16\nlength=64\n"
                               "[image 1]\nfile=/proc/self/exe\naddress=0x40000000\nanchor=main\n";
    struct tl_setup s;
    struct tl_image *image;
    struct tl_buf exe = {0};
    struct tl_fail fail = {0};
    uint64_t offset, size;
    (void)state;
    assert_int_equal(tl_buf_read_file(&exe, "/proc/self/exe", SIZE_MAX, &fail), TL_OK);
    const struct tl_bytes file = {exe.p, exe.n};
    assert_true(tl_elf_bytes_section(file, ".text", &offset, &size));
    assert_true(size > N + 16);
    assert_false(tl_elf_bytes_section(file, ".nothing", &offset, &size));
    assert_false(tl_elf_bytes_symbol((struct tl_bytes){exe.p, 20}, "main", &size));
    tl_setup_init(&s);
    assert_int_equal(tl_setup_parse(&s, text, sizeof text - 1, &fail), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&s, image, NULL, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    const struct tl_bytes part = tl_image_at(image, TL_SPACE_ANY, 0x10000);
    assert_int_equal(part.n, N);
    assert_memory_equal(part.p, exe.p + offset + 16, N);
    const struct tl_symbol *const at = tl_image_symbol_at(image, 0x40000000);
    assert_non_null(at);
    assert_string_equal(at->name, "main");
    tl_image_free(image);
    tl_setup_fini(&s);
    tl_buf_fini(&exe);
}

static void bad_text_names_its_line(void **state)
{
    static const struct {
        const char *text;
        const char *expect;
    } cases[] = {
        {"[trace]\nformat=vhs\n", "line 2"},   {"[trace]\nformat=tpiu\n\nnonsense\n", "line 4"},
        {"[colour]\nred=1\n", "colour"},       {"[source cs.10]\nTRCIDR0=many\n", "line 2"},
        {"[image a]\naddress=0x1\n", "file="}, {"[image a]\nfile=x\nspace=outer\n", "line 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tl_setup s;
        struct tl_fail fail = {0};
        tl_setup_init(&s);
        assert_int_equal(tl_setup_parse(&s, cases[i].text, strlen(cases[i].text), &fail) < 0, 1);
        if (!strstr(fail.text, cases[i].expect))
            fail_msg("'%s' does not say '%s'", fail.text, cases[i].expect);
        tl_setup_fini(&s);
    }
}

/* Each is compared with all before it: the time grows with the square of their number. */
static void sources_have_a_limit(void **state)
{
    static const char text[] = "[source nt.1]\ncore=rv32\n[source nt.2]\ncore=rv32\n";
    struct tl_setup s;
    struct tl_fail fail = {0};
    (void)state;
    tl_setup_init(&s);
    for (unsigned i = 1; i < 16384; i++)
        assert_non_null(tl_setup_add_source(&s));
    assert_int_equal(tl_setup_parse(&s, text, sizeof text - 1, &fail), TL_BAD);
    assert_non_null(strstr(fail.text, "line 4: there are more than 16384 sources"));
    tl_setup_fini(&s);
}

/* Long paths are common where builds have folders of their own. */
static void long_lines(void **state)
{
    char text[3000], file[1200];
    struct tl_setup s, again;
    struct tl_fail fail = {0};
    struct tl_buf out = {0};
    (void)state;
    tl_setup_init(&s);
    tl_setup_init(&again);
    snprintf(file, sizeof file, "/%01000d/app.elf", 1);
    const int n = snprintf(text, sizeof text,
                           "; %0500d\n[trace]\ndescription=%0400d\nformat=di\n[image x]\nfile=%s\n",
                           1, 2, file);
    assert_int_equal(tl_setup_parse(&s, text, (size_t)n, &fail), TL_OK);
    assert_int_equal(s.container, TL_CONTAINER_DI);
    assert_string_equal(s.images[0].file, file);
    assert_int_equal(tl_setup_write(&s, &out), TL_OK);
    assert_int_equal(tl_setup_parse(&again, (const char *)out.p, out.n, &fail), TL_OK);
    assert_string_equal(again.images[0].file, file);
    tl_setup_fini(&again);
    tl_setup_fini(&s);
    tl_buf_fini(&out);
}

static int note_entry(void *context, const char *section, bool begins, const char *key,
                      const char *value, struct tl_fail *fail)
{
    (void)fail;
    return tl_buf_printf(context, "%s|%s|%s|%s\n", section, begins ? "first" : "next", key, value);
}

static void ini_text(void **state)
{
    static const char text[] = "\xef\xbb\xbf; begins with a mark\r\n a : b=c \r\n  [ one two ] \n"
                               "\tk = a;b ; told\nPC(size:64)=1 # not a comment\n[one two]\n#k=1\n"
                               "empty=\n=x\nsoc:etm=ETB=1\nurl: http";
    static const char expected[] = "|next|a : b|c\none two|first|k|a;b\n"
                                   "one two|next|PC(size:64)|1 # not a comment\n"
                                   "one two|first|empty|\none two|next||x\n"
                                   "one two|next|soc:etm|ETB=1\none two|next|url|http\n";
    struct tl_buf out = {0};
    struct tl_fail fail = {0};
    (void)state;
    assert_int_equal(
        tl_ini_parse(text, sizeof text - 1, TL_INI_STRICT, note_entry, &out, NULL, &fail), TL_OK);
    assert_int_equal(out.n, sizeof expected - 1);
    assert_memory_equal(out.p, expected, out.n);
    static const char *const bad[] = {"a=1\n[section\n", "a=1\nnothing\nb=2", "a=1\n] [",
                                      "a=1\n[section] more"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(
            tl_ini_parse(bad[i], strlen(bad[i]), TL_INI_STRICT, note_entry, &out, NULL, &fail),
            TL_BAD);
        assert_non_null(strstr(fail.text, "line 2"));
    }
    unsigned line = 0;
    tl_buf_reset(&out);
    assert_int_equal(tl_ini_parse("# 1\na=1\n", 8, TL_INI_FLAT, note_entry, &out, &line, &fail),
                     TL_OK);
    assert_memory_equal(out.p, "|next|a|1\n", 10);
    assert_int_equal(line, 3);
    assert_int_equal(tl_ini_parse("a=1\n[x]", 7, TL_INI_FLAT, note_entry, &out, &line, &fail),
                     TL_BAD);
    assert_string_equal(fail.text, "line 2: there are no sections, \"[x]\" is none");
    tl_buf_fini(&out);
}

static void the_implied_source_takes_on_the_file(void **state)
{
    struct tl_setup s;
    struct tl_fail fail = {0};
    static const char text[] = "[source cs.02]\nTRCTRACEIDR=2\ncore=ARM-AA64\n";
    tl_setup_init(&s);
    assert_int_equal(tl_setup_format(&s, "ete", &fail), TL_OK);
    assert_int_equal(tl_setup_parse(&s, text, strlen(text), &fail), TL_OK);
    assert_int_equal(s.n_sources, 1);
    assert_string_equal(s.sources[0].name, "cs.02");
    assert_int_equal(s.sources[0].protocol, TL_PROTO_ETE);
    tl_setup_fini(&s);
}

/* ---- generated snapshots ------------------------------------------------------------------ */

static char made[] = "/tmp/test_setup.XXXXXX";

static void put(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", made, name);
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
    return mkdtemp(made) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", made);
    return system(command);
}

static void collect(void *context, const char *text)
{
    char(*const all)[4000] = context;
    const size_t n = strlen(*all);
    snprintf(*all + n, sizeof *all - n, "%s\n", text);
}

/* Check the bytes, read in pieces and from any offset. */
static void expect_bytes(const struct tl_bundle_capture *capture, const char *text)
{
    struct tl_buf all = {0};
    struct tl_fail fail = {0};
    const size_t n = strlen(text);
    assert_int_equal(tl_bundle_bytes(capture, &all, &fail), TL_OK);
    assert_int_equal(all.n, n);
    assert_memory_equal(all.p, text, n);
    tl_buf_fini(&all);
    for (size_t skip = 0; skip <= n + 1; skip++) {
        struct tl_bundle_input in;
        uint8_t got[64];
        assert_int_equal(tl_bundle_open(&in, capture), TL_OK);
        assert_int_equal(tl_bundle_skip(&in, skip), skip < n ? skip : n);
        size_t at = skip;
        for (ssize_t more; (more = tl_bundle_next(&in, got, 1 + at % 4)) > 0; at += (size_t)more)
            assert_memory_equal(got, text + at, (size_t)more);
        assert_int_equal(at, skip < n ? n : skip);
        assert_int_equal(tl_bundle_next(&in, got, 1), 0);
        tl_bundle_close(&in);
    }
}

/* Two sessions of one core, a buffer with several files, CR LF, comments, quotes, repeated
 * sections, missing or unsupported devices, unreadable entries that are omitted and reported. */
static void a_snapshot_with_everything(void **state)
{
    put("snapshot.ini", "; made\r\n[snapshot]\r\nversion=1.0\r\n\r\n[device_list]\r\n"
                        "device0=cpu_0.ini\r\ndevice1=etm_1.ini#the first session\r\n"
                        "device2=etm_2.ini\r\ndevice3=gone.ini\r\n device4 = ptm.ini\r\n"
                        "device5=stm.ini\r\ndevice6=mem.ini\r\n[clusters]\r\nbig=cpu_0\r\n"
                        "[trace]\r\nmetadata=\"trace.ini\"\r\n");
    put("cpu_0.ini", "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A53\n[regs]\n"
                     "PC(size:64)=0x80\n"
                     "[dump]\nfile=code.bin\naddress=0x1000;here\nlength=0x4\noffset=2\n"
                     "[dump]\nspace=EL1N\naddress=0x1000\nfile='code.bin'\ncontext=0x12\n"
                     "[dump2]\naddress=0x1002\nfile=code.bin\nspace=mars\nvmid=7\nlength=9999\n"
                     "[dump3]\naddress=0x5000\n[dump4]\nfile=none.bin\naddress=1\n"
                     "[dump5]\nfile=code.bin\naddress=0x6000\noffset=100\ncolour=red\n");
    put("code.bin", "0123456789");
    put("etm_1.ini",
        "[device]\nname=etm_1\nclass=trace_source\ntype=ETM4.4\n[regs]\n"
        "TRCCONFIGR(id:0x004,size:32)=\"0x1\"\nTRCTRACEIDR(0x10)=0x10\nTRCIDR0=what\n");
    put("etm_2.ini", "[device]\nname=etm_2\nclass=trace_source\ntype=ETE\nthis is no line\n"
                     "[regs]\nTRCTRACEIDR=0x10\n");
    put("ptm.ini", "[device]\nname=PTM_7\nclass=trace_source\ntype=XTM1.1\n[regs]\n"
                   "ETMTRACEIDR=0x13\n");
    put("stm.ini", "[device]\nname=stm\nclass=trace_source\ntype=STM\n[regs]\n"
                   "STMTCSR=0x00a00005\n");
    put("mem.ini", "[device]\nname=ram\nclass=memory_space\ntype=x\n"
                   "[dump]\nfile=code.bin\naddress=0x1000\n");
    put("a.bin", "first ");
    put("b.bin", "second");
    put("trace.ini", "[trace_buffers]\nbuffers=one,two, three ,four,\n"
                     "[one]\nname=ETB_1\nfile=a.bin, b.bin\nformat=coresight\n"
                     "[two]\nname=ETB_2\nfile=b.bin\nformat=source_data\n"
                     "[three]\nname=ETB_3\nfile=b.bin\nformat=punched_tape\n"
                     "[four]\nname=ETB_4\nformat=coresight\n"
                     "[source_buffers]\netm_1=ETB_1\nPTM_7=ETB_1\nghost=ETB_1\n"
                     "[core_trace_sources]\ncpu_0=etm_1\ncpu_0=etm_2\n"
                     "[source_buffers]\netm_2=two\nstm=ETB_1,ETB_2\n");
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    char reported[4000] = "";
    assert_int_equal(tl_snapshot_read(&snap, made, collect, &reported, &fail), TL_OK);
    static const char *const expected[] = {
        "gone.ini",         "none.bin",     "line 5 is neither",
        "register TRCIDR0", "'mars'",       "'colour'",
        "lacks file=",      "no byte 0x64", "source PTM_7: type 'XTM1.1' is not supported",
        "source ghost",     "punched_tape", "ETB_4 has no file=",
        "2 feed it; etm_2",
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        if (!strstr(reported, expected[i]))
            fail_msg("nothing said of %s", expected[i]);

    assert_int_equal(snap.n_captures, 3);
    const struct tl_bundle_capture *b = &snap.captures[2];
    assert_string_equal(b->name, "ETB_3");
    assert_string_equal(b->setup.format, "tpiu");
    expect_bytes(b, "second");
    b = &snap.captures[0];
    assert_string_equal(b->name, "ETB_1");
    expect_bytes(b, "first second");
    expect_bytes(b, "first second"); /* any number of times */
    assert_int_equal(b->setup.n_sources, 3);
    assert_string_equal(b->setup.sources[0].device, "PTM_7");
    assert_int_equal(b->setup.sources[0].protocol, TL_PROTO_NONE);
    assert_int_equal(b->setup.sources[0].id, 0x13);
    assert_string_equal(b->setup.sources[1].core, "Cortex-A53");
    assert_int_equal(tl_source_reg(&b->setup.sources[1], "TRCCONFIGR", 9), 1);
    assert_int_equal(b->setup.sources[2].id, 0x20);
    b = &snap.captures[1];
    expect_bytes(b, "second");
    assert_int_equal(b->setup.n_sources, 1);
    assert_int_equal(b->setup.sources[0].protocol, TL_PROTO_ETE);
    assert_string_equal(b->setup.sources[0].core, "Cortex-A53");

    /* the region listed first takes precedence, the core's over the board's */
    struct tl_image *image;
    static const struct tl_image_context process = {.context_id = 0x12, .has_context_id = true};
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&b->setup, image, NULL, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    struct tl_bytes at = tl_image_at(image, TL_SPACE_EL1N, 0x1000);
    assert_int_equal(at.n, 10);
    assert_memory_equal(at.p, "2345456789", 10);
    at = tl_image_view_at(image, tl_image_view(image, &process, 0, NULL), TL_SPACE_EL1N, 0x1000);
    assert_int_equal(at.n, 10);
    assert_memory_equal(at.p, "0123456789", 10);
    tl_image_free(image);
    tl_bundle_fini(&snap);
}

/* Pieces can be any parts of files, for example of a ring buffer. */
static void pieces_of_files(void **state)
{
    struct tl_bundle_capture capture = {0};
    char path[256];
    (void)state;
    put("pieces.bin", "0123456789");
    snprintf(path, sizeof path, "%s/pieces.bin", made);
    assert_int_equal(tl_bundle_add(&capture, path, 7, 2), TL_OK);
    assert_int_equal(tl_bundle_add(&capture, path, 4, 0), TL_OK);
    assert_int_equal(tl_bundle_add(&capture, path, 0, 3), TL_OK);
    assert_int_equal(tl_bundle_add(&capture, path, 10, UINT64_MAX), TL_OK);
    assert_int_equal(tl_bundle_add(&capture, path, 8, UINT64_MAX), TL_OK);
    expect_bytes(&capture, "7801289");
    assert_int_equal(tl_bundle_add(&capture, "/nonexistent", 0, UINT64_MAX), TL_OK);
    struct tl_bundle_input in;
    struct tl_fail fail = {0};
    struct tl_buf all = {0};
    assert_int_equal(tl_bundle_open(&in, &capture), TL_OK);
    assert_int_equal(tl_bundle_skip(&in, 100), 7);
    assert_string_equal(tl_bundle_path(&in), "/nonexistent");
    tl_bundle_close(&in);
    assert_int_equal(tl_bundle_bytes(&capture, &all, &fail), TL_IO);
    assert_non_null(strstr(fail.text, "/nonexistent"));
    tl_buf_fini(&all);
    tl_bundle_capture_fini(&capture);
}

/* A single file, and options given with it. */
static void one_file_is_a_bundle(void **state)
{
    static const char *const images[] = {"a.elf", "b.bin@0x100"};
    struct tl_bundle_request request = {.input = "-", .format = "etm4", .images = images};
    struct tl_bundle bundle;
    struct tl_fail fail = {0};
    const char *where = "";
    char path[256];
    (void)state;
    put("source.ini", "[source cs.12]\nTRCTRACEIDR=0x12\n");
    snprintf(path, sizeof path, "%s/source.ini", made);
    request.n_images = 2;
    request.config = path;
    assert_int_equal(tl_bundle_read(&bundle, &request, &where, &fail), TL_OK);
    assert_int_equal(bundle.n_captures, 1);
    assert_string_equal(bundle.captures[0].name, "");
    assert_string_equal(bundle.captures[0].setup.sources[0].name, "cs.12");
    assert_int_equal(bundle.captures[0].setup.n_images, 2);
    assert_int_equal(bundle.captures[0].n_pieces, 1);
    assert_string_equal(bundle.captures[0].pieces[0].path, "-");
    tl_bundle_fini(&bundle);
    request.format = "tape";
    assert_int_equal(tl_bundle_read(&bundle, &request, &where, &fail), TL_USAGE);
    assert_null(where);
    request.format = "etm4";
    put("source.ini", "[source cs.12]\nTRCTRACEIDR=what\n");
    assert_int_equal(tl_bundle_read(&bundle, &request, &where, &fail), TL_BAD);
    assert_string_equal(where, path);
}

/* Unusual forms that the reference accepts: text around a section's brackets, octal numbers, colons
 * in names, lines of any length, and device files in folders with long names. */
static void a_snapshot_of_unusual_form(void **state)
{
    char folder[160], name[200], path[512], text[1200];
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    (void)state;
    snprintf(folder, sizeof folder, "%0150d", 1);
    snprintf(path, sizeof path, "%s/%s", made, folder);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/%s/%0150d", made, folder, 2);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(
        text, sizeof text,
        " [ device_list ]  of the board\na=%s/%0150d/etm.ini\nthe [trace]\nmetadata=trace.ini\n"
        "[notes]\ntext=%0400d\n",
        folder, 2, 3);
    put("snapshot.ini", text);
    snprintf(name, sizeof name, "%s/code.bin", folder);
    put(name, "code");
    snprintf(path, sizeof path, "%s/%0150d/etm.ini", folder, 2);
    snprintf(text, sizeof text,
             "[device]\nname=soc:etm[0]\nclass=trace_source\ntype=ETM4\n"
             "[ regs ]\nTRCTRACEIDR(id:0x004)=022\nTRCIDR0=8\n"
             "[dump1]\nfile=%s/%0150d/../code.bin\naddress=010000\nlength=04\n",
             folder, 2);
    put(path, text);
    put("trace.ini", "[trace_buffers]\nbuffers=one\n[one]\nfile=code.bin\nformat=source_data\n"
                     "[source_buffers]\nsoc:etm[0]=one\n");
    char reported[4000] = "";
    if (tl_snapshot_read(&snap, made, collect, &reported, &fail) < 0 || *reported)
        fail_msg("%s%s", fail.text, reported);
    const struct tl_setup *const s = &snap.captures[0].setup;
    assert_int_equal(s->n_sources, 1);
    assert_int_equal(s->sources[0].id, 022);
    assert_int_equal(tl_source_reg(&s->sources[0], "TRCIDR0", 9), 8);
    assert_int_equal(s->n_images, 1);
    assert_int_equal(s->images[0].address, 010000);
    assert_int_equal(s->images[0].length, 4);
    tl_bundle_fini(&snap);
}

static void a_snapshot_with_next_to_nothing(void **state)
{
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    put("snapshot.ini", "[device_list]\na=etm.ini\n[trace]\nmetadata=trace.ini\n");
    put("etm.ini", "[device]\nname=e\nclass=trace_source\ntype=ITM\n");
    put("trace.ini", "[trace_buffers]\nbuffers=one\n[one]\nfile=a.bin\nformat=source_data\n");
    assert_int_equal(tl_snapshot_read(&snap, made, NULL, NULL, &fail), TL_OK);
    assert_string_equal(snap.captures[0].name, "one");
    assert_int_equal(snap.captures[0].setup.sources[0].protocol, TL_PROTO_ITM);
    tl_bundle_fini(&snap);
    put("trace.ini", "[trace_buffers]\nbuffers=one\n");
    assert_int_equal(tl_snapshot_read(&snap, made, NULL, NULL, &fail), TL_BAD);
    assert_non_null(strstr(fail.text, "trace.ini"));
    put("trace.ini", "");
    assert_int_equal(tl_snapshot_read(&snap, made, NULL, NULL, &fail), TL_BAD);
    put("snapshot.ini", "[device_list]\n");
    assert_int_equal(tl_snapshot_read(&snap, made, NULL, NULL, &fail), TL_BAD);
}

/* An MTB: its registers, and of its core where that stopped and where the vectors are. */
static void a_snapshot_of_branches(void **state)
{
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    (void)state;
    put("snapshot.ini", "[device_list]\na=mtb.ini\nb=cpu.ini\n[trace]\nmetadata=trace.ini\n");
    put("mtb.ini", "[device]\nname=m\nclass=trace_source\ntype=MTB\n"
                   "[regs]\nPOSITION(0x000)=0x5c\nMTB_MASTER=0x80000009\nBASE=0x20000000\n");
    put("cpu.ini", "[device]\nname=c\nclass=core\ntype=Cortex-M0+\n"
                   "[regs]\nR0=1\nR15(size:32)=0x1234\nVTOR=0x100\n");
    put("trace.ini", "[trace_buffers]\nbuffers=one\n[one]\nfile=a.bin\nformat=source_data\n"
                     "[source_buffers]\nm=one\n[core_trace_sources]\nc=m\n");
    assert_int_equal(tl_snapshot_read(&snap, made, NULL, NULL, &fail), TL_OK);
    const struct tl_setup *const setup = &snap.captures[0].setup;
    const struct tl_source *const s = &setup->sources[0];
    assert_int_equal(setup->container, TL_CONTAINER_SINGLE);
    assert_int_equal(s->protocol, TL_PROTO_MTB);
    assert_string_equal(s->name, "mtb.0");
    assert_string_equal(s->core, "Cortex-M0+");
    assert_int_equal(tl_source_reg(s, "POSITION", 0), 0x5c);
    assert_int_equal(tl_source_reg(s, "MTB_MASTER", 0), 0x80000009);
    assert_int_equal(tl_source_reg(s, "BASE", 0), 0x20000000);
    assert_int_equal(tl_source_reg(s, "PC", 0), 0x1234);
    assert_int_equal(tl_source_reg(s, "VTOR", 0), 0x100);
    assert_int_equal(s->n_regs, 5);
    tl_bundle_fini(&snap);
}

/* Properties that a snapshot does not contain: FSYNC packets between its frames are detected, and
 * can be reported. */
static void beside_a_snapshot(void **state)
{
    static const char *const images[] = {"more.bin@0x4000"};
    static const char frame[] = "\x21 one source's 15", fsync[] = "\xff\xff\xff\x7f";
    struct tl_bundle_request request = {.snapshot = made};
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    const char *where;
    char bytes[64];
    put("snapshot.ini", "[device_list]\na=.\\windows\\etm.ini\n[trace]\nmetadata=.\\trace.ini\n");
    char folder[256];
    snprintf(folder, sizeof folder, "%s/windows", made);
    assert_int_equal(mkdir(folder, 0777), 0);
    put("windows/etm.ini", "[device]\nname=e\nclass=trace_source\ntype=ETM4\n"
                           "[dump1]\nfile=windows\\code.bin\naddress=0x1000\n");
    put("windows/code.bin", "code");
    put("trace.ini", "[trace_buffers]\nbuffers=one,two\n"
                     "[one]\nfile=windows\\a.bin\nformat=coresight\n"
                     "[two]\nfile=windows\\code.bin\nformat=source_data\n"
                     "[source_buffers]\ne=one,two\n");
    snprintf(bytes, sizeof bytes, "%s%.16s", fsync, frame);
    put("windows/a.bin", bytes);
    assert_int_equal(tl_bundle_read(&snap, &request, &where, &fail), TL_OK);
    assert_int_equal(snap.n_captures, 2);
    expect_bytes(&snap.captures[0], bytes);
    assert_int_equal(snap.captures[0].setup.sync, TL_SYNC_FSYNC);
    assert_string_equal(snap.captures[0].setup.format, "tpiu,sync=fsync");
    assert_int_equal(snap.captures[0].setup.n_images, 1);
    assert_int_equal(snap.captures[1].setup.container, TL_CONTAINER_SINGLE);
    tl_bundle_fini(&snap);

    request.format = "tpiu,sync=none";
    request.images = images;
    request.n_images = 1;
    assert_int_equal(tl_bundle_read(&snap, &request, &where, &fail), TL_OK);
    assert_int_equal(snap.captures[0].setup.sync, TL_SYNC_NONE);
    assert_int_equal(snap.captures[0].setup.n_images, 2);
    assert_int_equal(snap.captures[1].setup.n_images, 2);
    tl_bundle_fini(&snap);
    request.format = "itm";
    assert_int_equal(tl_bundle_read(&snap, &request, &where, &fail), TL_USAGE);
    request.format = "tpiu,sync=what";
    assert_int_equal(tl_bundle_read(&snap, &request, &where, &fail), TL_USAGE);

    put("windows/a.bin", frame);
    request.format = NULL;
    assert_int_equal(tl_bundle_read(&snap, &request, &where, &fail), TL_OK);
    assert_string_equal(snap.captures[0].setup.format, "tpiu");
    tl_bundle_fini(&snap);
}

static void image_arguments(void **state)
{
    struct tl_setup s;
    struct tl_fail fail = {0};
    tl_setup_init(&s);
    assert_int_equal(tl_setup_add_image(&s, "a,b=c.bin@0x80,space=el1s,context=0x12,vmid=3", &fail),
                     TL_OK);
    assert_string_equal(s.images[0].file, "a,b=c.bin");
    assert_int_equal(s.images[0].address, 0x80);
    assert_int_equal(s.images[0].space, TL_SPACE_EL1S);
    assert_true(s.images[0].context.has_context_id && s.images[0].context.has_vmid);
    assert_int_equal(s.images[0].context.context_id, 0x12);
    assert_int_equal(s.images[0].context.vmid, 3);
    assert_int_equal(tl_setup_add_image(&s, "app.elf,offset=4,length=8", &fail), TL_OK);
    assert_int_equal(s.images[1].offset, 4);
    assert_int_equal(s.images[1].length, 8);
    assert_false(s.images[1].context.has_context_id);
    assert_int_equal(tl_setup_add_image(&s, "app.elf,from=500,until=0x400", &fail), TL_OK);
    assert_int_equal(s.images[2].span.from, 500);
    assert_int_equal(s.images[2].span.until, 0x400);
    assert_int_equal(s.images[1].span.from + s.images[1].span.until, 0);
    assert_int_equal(tl_setup_add_image(&s, "app.elf,until=dawn", &fail), TL_USAGE);
    assert_int_equal(tl_setup_add_image(&s, "app.elf,space=mars", &fail), TL_USAGE);
    assert_int_equal(tl_setup_add_image(&s, "app.elf,context=0x10000000000000000", &fail),
                     TL_USAGE);
    assert_int_equal(tl_setup_add_image(&s, "app.elf@there", &fail), TL_USAGE);
    assert_int_equal(s.n_images, 3);
    snprintf(s.format, sizeof s.format, "tpiu");
    struct tl_buf text = {0};
    struct tl_setup again;
    tl_setup_init(&again);
    assert_int_equal(tl_setup_write(&s, &text), TL_OK);
    assert_int_equal(tl_setup_parse(&again, (char *)text.p, text.n, &fail), TL_OK);
    assert_int_equal(again.n_images, 3);
    assert_memory_equal(&again.images[2].span, &s.images[2].span, sizeof s.images[2].span);
    assert_memory_equal(&again.images[0].context, &s.images[0].context, sizeof s.images[0].context);
    tl_buf_fini(&text);
    tl_setup_fini(&again);
    tl_setup_fini(&s);
}

static void real_snapshots(void **state)
{
    char dir[512];
    if (!test_data(dir, sizeof dir, "coresight/snapshots/juno_r1_1")) {
        print_message("skipped: no captures here\n");
        skip();
    }
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    assert_int_equal(tl_snapshot_read(&snap, dir, NULL, NULL, &fail), TL_OK);
    assert_int_equal(snap.n_captures, 2);
    assert_string_equal(snap.captures[0].name, "ETB_0");
    assert_int_equal(snap.captures[0].setup.n_sources, 6);
    assert_int_equal(snap.captures[0].setup.n_images, 1);
    const struct tl_source *const s = tl_setup_source(&snap.captures[0].setup, 0x10);
    assert_string_equal(s->core, "Cortex-A53");
    assert_int_equal(tl_source_reg(s, "TRCIDR0", 0), 0x28000EA1);
    assert_int_equal(snap.captures[1].setup.sources[0].protocol, TL_PROTO_STM);
    assert_int_equal(snap.captures[1].setup.sources[0].id, 0x20);
    tl_bundle_fini(&snap);
    assert_int_equal(tl_snapshot_read(&snap, "/nonexistent", NULL, NULL, &fail), TL_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_and_options),
        cmocka_unit_test(clock_of_the_system),
        cmocka_unit_test(sources_have_a_limit),
        cmocka_unit_test(text_there_and_back),
        cmocka_unit_test(names_of_a_capture),
        cmocka_unit_test(anchored_images),
        cmocka_unit_test(bad_text_names_its_line),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(ini_text),
        cmocka_unit_test(the_implied_source_takes_on_the_file),
        cmocka_unit_test(image_arguments),
        cmocka_unit_test(a_snapshot_with_everything),
        cmocka_unit_test(pieces_of_files),
        cmocka_unit_test(one_file_is_a_bundle),
        cmocka_unit_test(a_snapshot_of_unusual_form),
        cmocka_unit_test(a_snapshot_with_next_to_nothing),
        cmocka_unit_test(a_snapshot_of_branches),
        cmocka_unit_test(beside_a_snapshot),
        cmocka_unit_test(real_snapshots),
    };
    return cmocka_run_group_tests_name("setup", tests, make_folder, remove_folder);
}
