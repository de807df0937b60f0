/* SPDX-License-Identifier: MIT */
/*
 * usage: record_steps OUT PROGRAM [ARGUMENT…]
 *
 * Executes a program of this x86-64 machine instruction by instruction, writes Intel PT of its user
 * code to OUT, and prints the number of executed instructions. For programs with one thread and no
 * signals, linked statically at a fixed address. Exit status 77 if the system does not permit it.
 */
#include "isa/isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, CODE = 16, PSB_PERIOD = 4096 };

struct trace {
    FILE *file;
    uint8_t tnt; /* outcomes, the oldest first, after a 1 */
    size_t written, psb;
};

static void put(struct trace *t, const void *p, size_t n)
{
    t->written += fwrite(p, 1, n, t->file);
}

static void put_outcomes(struct trace *t)
{
    const uint8_t byte = (uint8_t)(t->tnt << 1);
    if (t->tnt > 1)
        put(t, &byte, 1);
    t->tnt = 1;
}

static void put_outcome(struct trace *t, bool taken)
{
    t->tnt = (uint8_t)(t->tnt << 1 | taken);
    if (t->tnt >> 6)
        put_outcomes(t);
}

/* A packet with all 8 bytes of an address. */
static void put_address(struct trace *t, uint8_t head, uint64_t ip)
{
    put_outcomes(t);
    put(t, &head, 1);
    put(t, &ip, sizeof ip);
}

/* PSB, MODE.Exec for 64 bits, optionally FUP, PSBEND. */
static void put_psb(struct trace *t, uint64_t ip)
{
    enum { FUP = 0xdd };
    put_outcomes(t);
    t->psb = t->written;
    for (int i = 0; i < 8; i++)
        put(t, "\x02\x82", 2);
    put(t, "\x99\x01", 2);
    if (ip)
        put_address(t, FUP, ip);
    put(t, "\x02\x23", 2);
}

/* Write packets for an instruction at `pc` after which execution continued at `next`. */
static void follow(struct trace *t, uint64_t pc, const uint8_t code[static CODE], uint64_t next)
{
    enum { TIP = 0xcd, TIP_PGE = 0xd1 };
    struct tl_insn insn;
    const int size = tl_insn_decode(TL_ISA_X64, &(struct tl_isa_options){0}, pc,
                                    (struct tl_bytes){code, CODE}, &insn);
    if (size < 0) {
        fprintf(stderr, "record_steps: an instruction at 0x%llx is not known\n",
                (unsigned long long)pc);
        exit(1);
    }
    if (insn.kind == TL_INSN_BRANCH && insn.conditional)
        put_outcome(t, next != pc + (uint64_t)size);
    else if (insn.kind == TL_INSN_INDIRECT)
        put_address(t, TIP, next);
    else if (insn.kind == TL_INSN_TRAP) {
        put_outcomes(t);
        put(t, "\x01", 1); /* TIP.PGD: entry to the kernel */
        put_address(t, TIP_PGE, next);
    }
    if (t->written - t->psb > PSB_PERIOD)
        put_psb(t, next);
}

static bool step(pid_t child, struct user_regs_struct *regs)
{
    int status;
    return ptrace(PTRACE_SINGLESTEP, child, 0, 0) == 0 && waitpid(child, &status, 0) == child &&
           WIFSTOPPED(status) && ptrace(PTRACE_GETREGS, child, 0, regs) == 0;
}

/* Read code; since it does not change, it is cached. */
static const uint8_t *read_code(pid_t child, uint64_t pc)
{
    static struct {
        uint64_t pc;
        uint8_t code[CODE];
    } known[4096];
    const size_t i = pc % (sizeof known / sizeof *known);
    for (unsigned at = 0; known[i].pc != pc && at < CODE; at += 8) {
        const long word = ptrace(PTRACE_PEEKTEXT, child, (void *)(uintptr_t)(pc + at), 0);
        memcpy(known[i].code + at, &word, 8);
    }
    known[i].pc = pc;
    return known[i].code;
}

static uint64_t record(struct trace *t, pid_t child)
{
    struct user_regs_struct regs;
    uint64_t n = 0;
    if (ptrace(PTRACE_GETREGS, child, 0, &regs) < 0)
        exit(SKIPPED);
    put_psb(t, 0);
    put_address(t, 0xd1, regs.rip);
    for (uint64_t pc = regs.rip;; pc = regs.rip, n++) {
        const uint8_t *const code = read_code(child, pc);
        if (!step(child, &regs))
            break;
        if (regs.rip != pc) /* otherwise it is repeated */
            follow(t, pc, code, regs.rip);
    }
    put_outcomes(t);
    put(t, "\x01", 1);
    return n;
}

int main(int argc, char **argv)
{
    struct trace t = {.tnt = 1};
    int status;
    if (argc < 3)
        return 2;
    t.file = fopen(argv[1], "wb");
    const pid_t child = fork();
    if (child == 0) {
        personality(ADDR_NO_RANDOMIZE);
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
            _exit(SKIPPED);
        execv(argv[2], argv + 2);
        _exit(SKIPPED);
    }
    if (!t.file || child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return SKIPPED;
    printf("%llu\n", (unsigned long long)record(&t, child));
    return fclose(t.file) == 0 ? 0 : 1;
}
