/* SPDX-License-Identifier: MIT */
/* Images for processors that no source of a setup traces are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "setup/machines.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[4000];

static void collect(void *context, const char *text)
{
    assert_null(context);
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

/* A file that begins like an ELF file for this machine; `path` ends in XXXXXX. */
static void make(char *path, uint16_t machine, bool big, size_t size)
{
    Elf64_Ehdr head = {.e_machine = big ? __builtin_bswap16(machine) : machine,
                       .e_version = big ? __builtin_bswap32(EV_CURRENT) : EV_CURRENT};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_ident[EI_DATA] = big ? ELFDATA2MSB : ELFDATA2LSB;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &head, size), (ssize_t)size);
    close(fd);
}

static void expect(const char *sources, const char *path, const char *report)
{
    char text[600], expected[600] = "";
    struct tl_setup setup;
    struct tl_fail fail;
    snprintf(text, sizeof text, "%s[image a]\nfile=%s\n[image b]\nfile=%s\naddress=0x1000\n",
             sources, path, path);
    if (report)
        snprintf(expected, sizeof expected, "%s is for %s, which no source of this trace is\n",
                 path, report);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, text, strlen(text), &fail), TL_OK);
    said[0] = '\0';
    tl_setup_check_machines(&setup, collect, NULL);
    assert_string_equal(said, expected);
    tl_setup_fini(&setup);
}

static void machines_and_sources(void **state)
{
    static const char arm[] = "[source cs.10]\nprotocol=etm4\n";
    static const char intel[] = "[source pt.0]\nprotocol=pt\n";
    static const char risc_v[] = "[trace]\nformat=ntrace\n";
    static const char any[] = "[source di.0.1]\nprotocol=osd-ctm\n[source pt.0]\nprotocol=pt\n";
    static const struct {
        const char *sources;
        uint16_t machine;
        bool big;
        const char *report;
    } cases[] = {
        {arm, EM_AARCH64, false, NULL},
        {arm, EM_ARM, false, NULL},
        {arm, EM_RISCV, false, "RISC-V"},
        {arm, EM_OPENRISC, true, "processors of ELF number 92"},
        {intel, EM_X86_64, false, NULL},
        {intel, EM_386, false, NULL},
        {intel, EM_AARCH64, false, "AArch64"},
        {risc_v, EM_RISCV, false, NULL},
        {risc_v, EM_X86_64, false, "x86-64"},
        {"[trace]\nformat=ntrace\n[source nt.1]\n", EM_ARM, false, "Arm"},
        {any, EM_OPENRISC, true, NULL},
        {"", EM_RISCV, false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/test_setup_machines.XXXXXX";
        make(path, cases[i].machine, cases[i].big, sizeof(Elf64_Ehdr));
        expect(cases[i].sources, path, cases[i].report);
        unlink(path);
    }
    (void)state;
}

static void files_that_say_nothing(void **state)
{
    char path[] = "/tmp/test_setup_machines.XXXXXX";
    make(path, EM_RISCV, false, offsetof(Elf64_Ehdr, e_machine) + 1);
    expect("[source pt.0]\nprotocol=pt\n", path, NULL);
    unlink(path);
    expect("[source pt.0]\nprotocol=pt\n", path, NULL); /* not there */
    expect("[source pt.0]\nprotocol=pt\n", "/dev/null", NULL);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_and_sources),
        cmocka_unit_test(files_that_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
