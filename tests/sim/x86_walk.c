/* SPDX-License-Identifier: MIT */
#include "sim/x86_walk.h"

#include "sim/pt_encoder.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RUNS   64u
#define RUN_BYTES  (8u * 7 + 2) /* at most; a two-byte branch skips one run */
#define PSB_PERIOD 4096u

/* Instructions up to and including a conditional branch, or up to the end of the function. */
struct run {
    uint64_t pc;
    uint8_t insns;
};

struct function {
    struct run runs[MAX_RUNS];
    unsigned n;
};

static void add(struct tl_buf *buf, const void *bytes, size_t n)
{
    if (tl_buf_add(buf, bytes, n) < 0)
        abort();
}

static void add_plain(struct tl_buf *code, struct tl_sim_rng *rng)
{
    static const struct {
        uint8_t n, p[7];
    } all[] = {
        {3, {0x48, 0x89, 0xc7}},                         /* mov %rax,%rdi */
        {4, {0x48, 0x8b, 0x45, 0xf8}},                   /* mov -8(%rbp),%rax */
        {3, {0x8b, 0x40, 0x18}},                         /* mov 0x18(%rax),%eax */
        {4, {0x48, 0x8d, 0x04, 0x90}},                   /* lea (%rax,%rdx,4),%rax */
        {4, {0x48, 0x83, 0xc0, 0x08}},                   /* add $8,%rax */
        {3, {0x83, 0xf8, 0x05}},                         /* cmp $5,%eax */
        {3, {0x48, 0x85, 0xdb}},                         /* test %rbx,%rbx */
        {2, {0x31, 0xd2}},                               /* xor %edx,%edx */
        {3, {0x0f, 0xb6, 0x10}},                         /* movzbl (%rax),%edx */
        {7, {0x48, 0x8b, 0x05, 0x10, 0x20, 0x00, 0x00}}, /* mov 0x2010(%rip),%rax */
        {5, {0xbe, 0x01, 0x00, 0x00, 0x00}},             /* mov $1,%esi */
        {1, {0x53}},                                     /* push %rbx */
        {2, {0x41, 0x5c}},                               /* pop %r12 */
        {4, {0x0f, 0x11, 0x04, 0x24}},                   /* movups %xmm0,(%rsp) */
        {5, {0xc5, 0xfa, 0x6f, 0x40, 0x10}},             /* vmovdqu 0x10(%rax),%xmm0 */
        {6, {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},       /* nop */
    };
    const unsigned i = tl_sim_below(rng, sizeof all / sizeof *all);
    add(code, all[i].p, all[i].n);
}

static uint64_t here(const struct tl_buf *code)
{
    return TL_SIM_WALK_BASE + code->n;
}

static void begin_run(struct function *f, const struct tl_buf *code)
{
    f->runs[f->n++] = (struct run){.pc = here(code)};
}

static void add_plains(struct function *f, struct tl_buf *code, struct tl_sim_rng *rng)
{
    struct run *const run = &f->runs[f->n - 1];
    for (uint32_t n = tl_sim_between(rng, 1, 8); n > 0; n--, run->insns++)
        add_plain(code, rng);
}

static void make_function(struct function *f, struct tl_buf *code, struct tl_sim_rng *rng)
{
    static const uint8_t jump[] = {0xff, 0xe0}; /* jmp *%rax */
    const size_t end = code->n + TL_SIM_WALK_FUNCTION;
    /* offset of the previous run's distance byte, which is set to this run's size */
    size_t branch = 0;
    f->n = 0;
    while (end - code->n > 2 * RUN_BYTES) {
        const uint8_t bytes[] = {(uint8_t)(0x70 + tl_sim_below(rng, 16)), 0};
        const size_t at = code->n;
        begin_run(f, code);
        add_plains(f, code, rng);
        add(code, bytes, sizeof bytes);
        f->runs[f->n - 1].insns++;
        if (branch)
            code->p[branch] = (uint8_t)(code->n - at);
        branch = code->n - 1;
    }
    /* The last branch skips to the jump. */
    const size_t at = code->n;
    begin_run(f, code);
    add_plains(f, code, rng);
    code->p[branch] = (uint8_t)(code->n - at);
    f->runs[f->n - 1].insns++;
    f->runs[f->n] = (struct run){.pc = here(code), .insns = 1};
    add(code, jump, sizeof jump);
    while (code->n < end)
        add(code, "\xcc", 1);
}

static void synchronise(struct tl_sim_pt *pt, uint64_t pc)
{
    const struct tl_pt_packet mode = {.kind = TL_PT_MODE_EXEC, .exec.csl = true};
    tl_sim_pt_flush(pt);
    tl_sim_pt_bare(pt, TL_PT_PSB);
    tl_sim_pt_packet(pt, &mode);
    tl_sim_pt_ip(pt, TL_PT_FUP, pc);
    tl_sim_pt_bare(pt, TL_PT_PSBEND);
}

void tl_sim_x86_walk_init(struct tl_sim_x86_walk *walk, uint64_t seed, unsigned functions,
                          unsigned visits)
{
    struct tl_sim_rng rng = {seed};
    struct tl_sim_pt pt = {0};
    struct function *const all = malloc(functions * sizeof *all);
    size_t synchronised = 0;
    if (!all)
        abort();
    *walk = (struct tl_sim_x86_walk){0};
    for (unsigned i = 0; i < functions; i++)
        make_function(&all[i], &walk->code, &rng);
    const struct function *f = all;
    synchronise(&pt, f->runs[0].pc);
    for (unsigned i = 0; i < visits; i++) {
        for (unsigned k = 0; k < f->n;) {
            const bool is_last = k + 1 == f->n, taken = !is_last && tl_sim_below(&rng, 2);
            walk->insns += f->runs[k].insns;
            if (!is_last)
                tl_sim_pt_branch(&pt, taken);
            if (is_last)
                break;
            k += taken ? 2 : 1;
            walk->insns += k == f->n; /* only the jump */
        }
        f = &all[tl_sim_below(&rng, functions)];
        tl_sim_pt_ip(&pt, TL_PT_TIP, f->runs[0].pc);
        if (pt.out.n - synchronised >= PSB_PERIOD) {
            synchronised = pt.out.n;
            synchronise(&pt, f->runs[0].pc);
        }
    }
    walk->trace = pt.out;
    free(all);
}

void tl_sim_x86_walk_fini(struct tl_sim_x86_walk *walk)
{
    tl_buf_fini(&walk->code);
    tl_buf_fini(&walk->trace);
}
