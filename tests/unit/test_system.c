/* SPDX-License-Identifier: MIT */
/* Setups from what a system says of itself: sysfs as a folder and as a listing, and device trees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "import/system.h"
#include "setup/midr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char said[4000];

static void collect(void *context, const char *text)
{
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

/* A file of these bytes, valid until the process ends. */
static const char *file_of(const void *bytes, size_t n)
{
    static char path[64];
    const int fd = memfd_create("system", 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static struct tl_fail fail;

static int read_listing(struct tl_setup *setup, const char *text)
{
    said[0] = 0;
    fail = (struct tl_fail){0};
    tl_setup_init(setup);
    return tl_sysfs_read(setup, file_of(text, strlen(text)), collect, NULL, &fail);
}

/* What of sysfs a listing of one unit has, without its processor and IDs. */
#define IDRS(etm)                                                                                  \
    etm "/trcidr/trcidr0:0x28000ea1\n" etm "/trcidr/trcidr1:0x4100f403\n" etm                      \
        "/trcidr/trcidr2:0x488\n" etm "/trcidr/trcidr8:0x0\n"

static void a_unit_with_everything(void **state)
{
    struct tl_setup setup;
    assert_int_equal(
        read_listing(&setup, "/sys/bus/coresight/devices/etm1/cpu:2\n"
                             "/sys/bus/coresight/devices/etm1/mode:0x8c0\n"
                             "/sys/bus/coresight/devices/etm1/mgmt/trcconfig:0x8c1\n"
                             "/sys/bus/coresight/devices/etm1/mgmt/trctraceid:0x14\n" IDRS(
                                 "/sys/bus/coresight/devices/etm1") "/sys/devices/system/cpu/cpu2/"
                                                                    "regs/identification/midr_el1:"
                                                                    "0x00000000410fd034\n"),
        TL_OK);
    assert_string_equal(said, "");
    assert_int_equal(setup.n_sources, 1);
    const struct tl_source *const s = setup.sources;
    assert_string_equal(s->name, "cs.14");
    assert_int_equal(s->id, 0x14);
    assert_int_equal(s->protocol, TL_PROTO_ETM4);
    assert_string_equal(s->core, "Cortex-A53");
    assert_string_equal(s->device, "etm1 of cpu 2");
    assert_int_equal(tl_source_reg(s, "TRCCONFIGR", 0), 0x8c1);
    assert_int_equal(tl_source_reg(s, "TRCTRACEIDR", 0), 0x14);
    assert_int_equal(tl_source_reg(s, "TRCIDR0", 0), 0x28000ea1);
    assert_int_equal(tl_source_reg(s, "TRCIDR2", 0), 0x488);
    assert_string_equal(setup.format, "tpiu");
    assert_int_equal(setup.container, TL_CONTAINER_TPIU);
    tl_setup_fini(&setup);
}

static void an_ete_by_its_devarch(void **state)
{
    struct tl_setup setup;
    assert_int_equal(read_listing(&setup, "./ete0/cpu:0\n./ete0/mgmt/trcconfig:0x801\n"
                                          "./ete0/trctraceid:0x10\n"
                                          "./ete0/mgmt/trcdevarch:0x47725a13\n" IDRS("./ete0")),
                     TL_OK);
    assert_int_equal(setup.sources[0].protocol, TL_PROTO_ETE);
    assert_string_equal(setup.sources[0].type, "ETE1.2");
    assert_int_equal(tl_source_reg(setup.sources, "TRCDEVARCH", 0), 0x47725a13);
    tl_setup_fini(&setup);
}

/* A unit that was off, or whose reads failed: the driver's own word, and Linux's rule for IDs. */
static void what_is_missing_is_said(void **state)
{
    struct tl_setup setup;
    assert_int_equal(
        read_listing(&setup, "./etm0/cpu:3\n./etm0/mode:0x1870\n./etm0/mgmt/trcconfig:0x0\n" IDRS(
                                 "./etm0") "processor\t: 3\n"),
        TL_OK);
    const struct tl_source *const s = setup.sources;
    assert_int_equal(s->id, 0x16);
    /* Of mode: branch broadcast, cycles, context IDs, timestamps, return stack. */
    assert_int_equal(tl_source_reg(s, "TRCCONFIGR", 0), 0x1858);
    assert_non_null(strstr(said, "TRCCONFIGR is what the driver makes of mode 0x1870"));
    assert_non_null(strstr(said, "taken as 0x16, which Linux prefers for cpu 3"));
    assert_non_null(strstr(said, "the core of cpu 3 is not known"));
    tl_setup_fini(&setup);
    /* A unit without cycles, timestamps and the rest has none on. */
    assert_int_equal(read_listing(&setup, "./etm0/cpu:0\n./etm0/mode:0x1fff\n"
                                          "./etm0/trcidr/trcidr0:0x0\n"
                                          "./etm0/trcidr/trcidr2:0x488\n"),
                     TL_OK);
    assert_int_equal(tl_source_reg(setup.sources, "TRCCONFIGR", 0), 0xc8);
    tl_setup_fini(&setup);
}

static void older_units_and_software_trace(void **state)
{
    struct tl_setup setup;
    assert_int_equal(
        read_listing(
            &setup, "./20030000.etm/cpu:1\n./20030000.etm/mgmt/etmcr:0x10001000\n"
                    "./20030000.etm/mgmt/etmtraceidr:0x12\n./20030000.etm/mgmt/etmccer:0x344008f2\n"
                    "./20030000.etm/mgmt/etmidr:0x411cf312\n./stm0/traceid:0x20\n"
                    "/proc/cpuinfo:processor\t: 1\n/proc/cpuinfo:CPU implementer\t: 0x41\n"
                    "/proc/cpuinfo:CPU part\t: 0xc0f\n"),
        TL_OK);
    assert_int_equal(setup.n_sources, 2);
    assert_int_equal(setup.sources[0].protocol, TL_PROTO_PTM);
    assert_string_equal(setup.sources[0].type, "PTM1.1");
    assert_string_equal(setup.sources[0].core, "Cortex-A15");
    assert_int_equal(tl_source_reg(setup.sources, "ETMCR", 0), 0x10001000);
    assert_int_equal(setup.sources[1].protocol, TL_PROTO_STM);
    assert_int_equal(setup.sources[1].id, 0x20);
    tl_setup_fini(&setup);
}

/* Bytes of a sink without a formatter are those of its source. */
static void a_sink_without_formatter(void **state)
{
    struct tl_setup setup;
    assert_int_equal(
        read_listing(&setup, "./etm0/cpu:0\n./etm0/mgmt/trcconfig:0x1\n"
                             "./etm0/mgmt/trctraceid:0x10\n" IDRS(
                                 "./etm0") "./tmc_etb0/enable_sink:1\n./tmc_etb0/mgmt/ffcr:0x0\n"),
        TL_OK);
    assert_int_equal(setup.container, TL_CONTAINER_SINGLE);
    assert_string_equal(setup.format, "etm4,id=0x10");
    tl_setup_fini(&setup);
}

static void refused(void **state)
{
    struct tl_setup setup;
    assert_int_equal(read_listing(&setup, "./etm0/cpu:0\n./etm0/mgmt/trctraceid:0x10\n"
                                          "./etm1/cpu:1\n./etm1/mgmt/trctraceid:0x10\n"),
                     TL_BAD);
    assert_non_null(strstr(fail.text, "have the same trace ID 0x10"));
    tl_setup_fini(&setup);
    assert_int_equal(read_listing(&setup, "nothing of use\n./x:1\n:\n"), TL_BAD);
    assert_non_null(strstr(fail.text, "there is no CoreSight trace unit"));
    tl_setup_fini(&setup);
    tl_setup_init(&setup);
    assert_int_equal(tl_sysfs_read(&setup, "/nowhere", NULL, NULL, &fail), TL_IO);
    tl_setup_fini(&setup);
}

/* ---- folders --------------------------------------------------------------------------------- */

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *p = path + strlen(folder) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        (void)mkdir(path, 0700);
    }
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void a_copied_tree(void **state)
{
    char folder[] = "/tmp/test_system.XXXXXX", command[64];
    struct tl_setup setup;
    assert_non_null(mkdtemp(folder));
    put(folder, "sys/bus/coresight/devices/etm0/cpu", "1\n");
    put(folder, "sys/bus/coresight/devices/etm0/mgmt/trcconfig", "0x801\n");
    put(folder, "sys/bus/coresight/devices/etm0/mgmt/trctraceid", "0x12\n");
    put(folder, "sys/bus/coresight/devices/etm0/trcidr/trcidr0", "0x28000ea1\n");
    put(folder, "sys/bus/coresight/devices/etm0/trcidr/trcidr2", "0x488\n");
    put(folder, "sys/bus/coresight/devices/etm0/trcidr/trcidr1", ""); /* a read that failed */
    put(folder, "sys/bus/coresight/devices/tmc_etr0/enable_sink", "1\n");
    put(folder, "sys/devices/system/cpu/cpu1/regs/identification/midr_el1", "0x00000000410fd0c1\n");
    tl_setup_init(&setup);
    said[0] = 0;
    assert_int_equal(tl_sysfs_read(&setup, folder, collect, NULL, &fail), TL_OK);
    assert_int_equal(setup.n_sources, 1);
    assert_string_equal(setup.sources[0].name, "cs.12");
    assert_string_equal(setup.sources[0].core, "Neoverse N1");
    assert_int_equal(tl_source_reg(setup.sources, "TRCCONFIGR", 0), 0x801);
    assert_int_equal(tl_source_reg(setup.sources, "TRCIDR1", 7), 7);
    assert_string_equal(said, "");
    tl_setup_fini(&setup);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- device trees ---------------------------------------------------------------------------- */

static struct tl_buf tree, names;

static void cell(struct tl_buf *to, uint32_t v)
{
    const uint8_t bytes[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    assert_int_equal(tl_buf_add(to, bytes, 4), TL_OK);
}

static void padded(const void *p, size_t n)
{
    static const uint8_t zeros[4];
    assert_int_equal(tl_buf_add(&tree, p, n), TL_OK);
    assert_int_equal(tl_buf_add(&tree, zeros, (4 - n % 4) % 4), TL_OK);
}

static void begin(const char *name)
{
    cell(&tree, 1);
    padded(name, strlen(name) + 1);
}

static void end(void)
{
    cell(&tree, 2);
}

static void property(const char *name, const void *value, size_t n)
{
    cell(&tree, 3);
    cell(&tree, (uint32_t)n);
    cell(&tree, (uint32_t)names.n);
    assert_int_equal(tl_buf_add(&names, name, strlen(name) + 1), TL_OK);
    padded(value, n);
}

static void number(const char *name, uint32_t v)
{
    const uint8_t bytes[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    property(name, bytes, 4);
}

static void processor(const char *name, const char *compatible, uint32_t phandle)
{
    begin(name);
    property("compatible", compatible, strlen(compatible) + 1);
    number("phandle", phandle);
    end();
}

static void unit(const char *name, const char *compatible, size_t n, uint32_t cpu)
{
    begin(name);
    property("compatible", compatible, n);
    number("cpu", cpu);
    end();
}

static void make_tree(void)
{
    static const char etm4[] = "arm,coresight-etm4x\0arm,primecell";
    begin("");
    begin("cpus");
    processor("cpu@0", "arm,cortex-a53", 7);
    processor("cpu@1", "arm,cortex-a53", 8);
    processor("cpu@100", "arm,neoverse-n1", 9);
    end();
    begin("timer");
    property("compatible", "arm,armv8-timer", 16);
    number("clock-frequency", 50000000);
    end();
    unit("etm@23040000", etm4, sizeof etm4, 9);
    unit("etm@22040000", etm4, sizeof etm4, 8);
    unit("ete", "arm,embedded-trace-extension", 29, 7);
    unit("etm@1", etm4, sizeof etm4, 99);
    end();
    cell(&tree, 9);
}

/* The tree as a file, of which the last `less` bytes of the structure are missing. */
static void flatten(struct tl_buf *out, uint32_t less)
{
    const uint32_t header[] = {0xd00dfeed,
                               (uint32_t)(40 + tree.n + names.n),
                               40,
                               (uint32_t)(40 + tree.n),
                               40,
                               17,
                               16,
                               0,
                               (uint32_t)names.n,
                               (uint32_t)tree.n - less};
    for (size_t i = 0; i < 10; i++)
        cell(out, header[i]);
    assert_int_equal(tl_buf_add(out, tree.p, tree.n), TL_OK);
    assert_int_equal(tl_buf_add(out, names.p, names.n), TL_OK);
}

static int read_tree(struct tl_setup *setup, const struct tl_buf *bytes)
{
    said[0] = 0;
    fail = (struct tl_fail){0};
    tl_setup_init(setup);
    return tl_devicetree_read(setup, file_of(bytes->p, bytes->n), collect, NULL, &fail);
}

static void a_device_tree(void **state)
{
    struct tl_setup setup;
    struct tl_buf bytes = {0};
    make_tree();
    flatten(&bytes, 0);
    assert_int_equal(read_tree(&setup, &bytes), TL_OK);
    assert_int_equal(setup.n_sources, 3);
    assert_string_equal(setup.sources[0].name, "cs.14");
    assert_string_equal(setup.sources[0].core, "Neoverse N1");
    assert_string_equal(setup.sources[0].device, "etm@23040000 of cpu 2");
    assert_string_equal(setup.sources[1].name, "cs.12");
    assert_string_equal(setup.sources[1].core, "Cortex-A53");
    assert_int_equal(setup.sources[2].protocol, TL_PROTO_ETE);
    assert_int_equal(setup.sources[2].id, 0x10);
    assert_int_equal(setup.clock_hz, 50000000);
    assert_non_null(strstr(said, "etm@1: the tree does not say which processor it traces"));
    tl_setup_fini(&setup);
    /* Cut anywhere it is refused. */
    for (uint32_t less = 4; less < tree.n; less += 4) {
        tl_buf_reset(&bytes);
        flatten(&bytes, less);
        assert_int_equal(read_tree(&setup, &bytes), TL_BAD);
        tl_setup_fini(&setup);
    }
    tl_buf_fini(&bytes);
    tl_buf_fini(&tree);
    tl_buf_fini(&names);
}

static void cores_by_number(void **state)
{
    assert_string_equal(tl_midr_name(0x410fd034), "Cortex-A53");
    assert_string_equal(tl_midr_name(0x411fc0f0), "Cortex-A15");
    assert_string_equal(tl_midr_name(0xc00fac30), "Ampere-1");
    assert_null(tl_midr_name(0));
    assert_null(tl_midr_name(0x510f8000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_with_everything),
        cmocka_unit_test(an_ete_by_its_devarch),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(older_units_and_software_trace),
        cmocka_unit_test(a_sink_without_formatter),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_copied_tree),
        cmocka_unit_test(a_device_tree),
        cmocka_unit_test(cores_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
