/* SPDX-License-Identifier: MIT */
/*
 * One line after the other. What trapped is told as if it had been executed, and then taken back;
 * a log with both kinds of lines tells everything twice.
 */
#include "import/spike.h"

#include "import/executed.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPEATS (UINT64_C(1) << 17) /* of instructions that a count stands for, in a log */

struct log {
    struct tl_executed to;
    struct tl_model_input *in;
    bool commits;             /* there were commits */
    uint64_t repeats, untold; /* executions that only counts tell: taken, left out */
};

/* ---- lines ----------------------------------------------------------------------------------- */

static bool skip(const char **p, const char *text)
{
    const size_t n = strlen(text);
    const bool there = strncmp(*p, text, n) == 0;
    *p += there ? n : 0;
    return there;
}

/* "0x…": the number, and how many digits it has; 0: it is none. */
static unsigned hex(const char **p, uint64_t *out)
{
    *p += strspn(*p, " ");
    if (!skip(p, "0x"))
        return 0;
    const size_t digits = strspn(*p, "0123456789abcdefABCDEF");
    *out = strtoull(*p, NULL, 16);
    *p += digits;
    return (unsigned)digits;
}

/* Skip "core   0: ". Old logs have no such beginning: 0, as for what programs print. */
enum whose { ANYBODY, OURS, ANOTHER };

static enum whose skip_core(const char **p, uint64_t core)
{
    char *end;
    const char *at = *p;
    if (!skip(&at, "core"))
        return ANYBODY;
    const uint64_t number = strtoull(at, &end, 10);
    if (end == at || *end != ':')
        return ANOTHER;
    *p = end + 1 + strspn(end + 1, " ");
    return number == core ? OURS : ANOTHER;
}

/* "exception trap_illegal_instruction, epc 0x…", "exception interrupt #7, epc 0x…" */
static void take_exception(struct log *l, const char *name)
{
    static const char *const names[] = {"trap_instruction_address_misaligned",
                                        "trap_instruction_access_fault",
                                        "trap_illegal_instruction",
                                        "trap_breakpoint",
                                        "trap_load_address_misaligned",
                                        "trap_load_access_fault",
                                        "trap_store_address_misaligned",
                                        "trap_store_access_fault",
                                        "trap_user_ecall",
                                        "trap_supervisor_ecall",
                                        "trap_virtual_supervisor_ecall",
                                        "trap_machine_ecall",
                                        "trap_instruction_page_fault",
                                        "trap_load_page_fault",
                                        "",
                                        "trap_store_page_fault"};
    const size_t n = strcspn(name, ",\r\n");
    const char *const epc = strstr(name, "epc ");
    const char *at = epc ? epc + 4 : "";
    uint64_t pc;
    uint64_t cause = 24; /* of custom use, for those without a number here */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncmp(name, names[i], n) == 0)
            cause = i;
    if (strncmp(name, "interrupt #", 11) == 0)
        cause = TL_STF_EVENT_INTERRUPT | strtoull(name + 11, NULL, 10);
    /* What trapped did not happen. */
    if (hex(&at, &pc) && !l->to.last.is_commit && l->to.last.pc == pc)
        l->to.last.size = 0;
    struct tl_executed_insn *const i = l->to.last.size ? &l->to.last : &l->to.before;
    i->traps = true;
    i->cause = cause;
}

/* What a commit wrote: "x5  0x…", "f5 0x…", "c768_mstatus 0x…", "mem 0xADDRESS 0xDATA". */
static void take_effects(struct tl_executed_insn *i, const char *p)
{
    while (*(p += strspn(p, " \r\n"))) {
        const char *const word = p;
        uint64_t value, data;
        p += strcspn(p, " \r\n");
        if (p == word + 1 && strchr("xf", *word)) /* old logs: "x 5 0x…" */
            p += strspn(p, " ") + strspn(p + strspn(p, " "), "0123456789");
        const char *after = p;
        const unsigned digits = hex(&after, &value);
        if (!digits)
            continue;
        p = after;
        const uint64_t number = strtoull(word + 1, NULL, 10);
        if (strncmp(word, "mem ", 4) == 0) {
            const unsigned size = hex(&after, &data) / 2;
            i->stores = size && size <= 8;
            i->store_address = value;
            i->store_value = data;
            i->store_size = size;
            p = size ? after : p;
        } else if (digits <= 16 && (isdigit((unsigned char)word[1]) || word[1] == ' ')) {
            const unsigned type = *word == 'x'   ? TL_STF_REG_INT
                                  : *word == 'f' ? TL_STF_REG_FP
                                  : *word == 'c' ? TL_STF_REG_CSR
                                                 : 0;
            if (type)
                tl_executed_write(i, type, number, value);
        }
    }
}

/* "Executed 5 times": the last instruction, which goes to itself. Old versions write the number in
 * hexadecimal, which only its letters tell. */
static int take_repeats(struct log *l, const char *p)
{
    const bool is_hex = strcspn(p, "abcdef") < strcspn(p, " ");
    const uint64_t all = strtoull(p, NULL, is_hex ? 16 : 10);
    const struct tl_executed_insn again = l->to.last;
    if (l->commits || again.size == 0 || all < 2)
        return TL_OK;
    const uint64_t n = all - 1 < MAX_REPEATS - l->repeats ? all - 1 : MAX_REPEATS - l->repeats;
    int rc = TL_OK;
    for (uint64_t i = 0; rc == TL_OK && i < n; i++)
        rc = tl_executed_add(&l->to, &again, false, "");
    l->repeats += n;
    l->untold += all - 1 - n;
    return rc;
}

/* TL_NOTFOUND: this is no instruction. */
static int take_insn(struct log *l, const char *p, bool is_commit)
{
    struct tl_executed_insn i = {.is_commit = is_commit};
    uint64_t opcode;
    const unsigned digits = hex(&p, &i.pc);
    if (!digits || !skip(&p, " ("))
        return TL_NOTFOUND;
    const unsigned size = hex(&p, &opcode) / 2;
    /* The execution log pads opcodes of 16 bits in some versions. */
    i.size = (opcode & 3) == 3 ? 4 : 2;
    i.opcode = (uint32_t)opcode & (i.size == 4 ? UINT32_MAX : 0xffff);
    if (!skip(&p, ")") || size < i.size)
        return TL_NOTFOUND;
    if (l->commits && !is_commit)
        return TL_OK;
    if (is_commit)
        take_effects(&i, p);
    if (is_commit && !l->commits && !l->to.last.is_commit && l->to.last.pc == i.pc)
        l->to.last.size = 0; /* the same in the other form */
    l->commits |= is_commit;
    return tl_executed_add(&l->to, &i, digits > 8, "log of Spike, read by tracelake " TL_VERSION);
}

static int take_line(struct log *l, const char *p)
{
    const enum whose whose = skip_core(&p, l->in->number);
    if (whose == ANOTHER || skip(&p, ">>>>") || skip(&p, "tval"))
        return TL_OK;
    if (skip(&p, "Executed "))
        return take_repeats(l, p);
    if (skip(&p, "exception ")) {
        take_exception(l, p);
        return TL_OK;
    }
    const bool is_commit = isdigit((unsigned char)p[0]) && p[1] == ' ';
    const int rc = take_insn(l, is_commit ? p + 2 : p, is_commit);
    if (rc == TL_NOTFOUND && whose == OURS)
        tl_model_mark_strange(l->in);
    return rc == TL_NOTFOUND ? TL_OK : rc;
}

bool tl_spike_is(const char *first, size_t n)
{
    char line[64];
    snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), first);
    const char *p = line;
    return skip(&p, "core  ") && strspn(p, " 0123456789") > 0 && strchr(p, ':');
}

int tl_spike_read(struct tl_buf *out, struct tl_model_input *in, struct tl_fail *fail)
{
    struct log l = {.to.fail = fail, .in = in};
    const char *line;
    int rc = TL_OK;
    while (rc == TL_OK && (line = tl_model_next_line(in)))
        rc = take_line(&l, line);
    if (rc == TL_OK && (rc = tl_executed_finish(&l.to, out)) == TL_BAD)
        tl_fail_set(fail, TL_BAD, "this log has no instruction of core %llu",
                    (unsigned long long)in->number);
    if (l.untold > 0)
        tl_model_leave_out(in,
                           "%llu executions of instructions that go to themselves are left out: "
                           "%llu are taken that only counts tell",
                           (unsigned long long)l.untold, (unsigned long long)MAX_REPEATS);
    tl_model_end_lines(in);
    tl_executed_fini(&l.to);
    return rc;
}
