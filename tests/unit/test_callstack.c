/* SPDX-License-Identifier: MIT */
/* Frames from artificial blocks, and from a simulated core's flow. */
#include "decode/ops.h"
#include "flow/callstack.h"
#include "sim/program_core.h"
#include "sim/program_rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct watch {
    struct tl_callstack *cs;
    struct tl_buf text;
    uint32_t depth;
    size_t pushes, pops;
    size_t leaves; /* of these, reported by on_leaf() */
};

/* Checks that changes nest, and records them: +function or -function. */
static int on_change(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                     uint32_t depth, uint64_t insn)
{
    struct watch *w = context;
    assert_true(frame->insn <= insn);
    if (change == TL_FRAME_PUSH) {
        assert_int_equal(depth, w->depth);
        assert_int_equal(frame->insn, insn);
        w->depth++;
        w->pushes++;
    } else {
        assert_int_equal(depth + 1, w->depth);
        w->depth--;
        w->pops++;
    }
    static const char kinds[] = {'r', 'c', 't', 'x'};
    return tl_buf_printf(&w->text, "%c%c%u@%u ", change == TL_FRAME_PUSH ? '+' : '-',
                         kinds[frame->kind], frame->function, (unsigned)insn);
}

/* An artificial block, given by its last instruction. */
static struct tl_block make(uint64_t pc, uint32_t function, enum tl_insn_kind kind, bool link,
                            bool is_return)
{
    const struct tl_insn last = {
        .kind = kind, .link = link, .is_return = is_return, .next_isa = TL_ISA_A64};
    struct tl_block block;
    tl_block_init(&block, pc, TL_ISA_A64);
    tl_block_set_last(&block, &last);
    block.n = 1;
    block.size = block.last_size = 4;
    block.function = function;
    return block;
}

#define STEPS 32

struct script {
    struct tl_block blocks[STEPS];
    struct tl_item items[STEPS];
    size_t n;
};

static void block(struct script *s, uint64_t pc, uint32_t function, enum tl_insn_kind kind,
                  bool link, bool is_return, bool taken)
{
    s->blocks[s->n] = make(pc, function, kind, link, is_return);
    s->items[s->n] = (struct tl_item){.kind = TL_ITEM_BLOCK,
                                      .n = 1,
                                      .flags = taken ? TL_ITEM_TAKEN : 0,
                                      .block = &s->blocks[s->n]};
    s->n++;
}

static void call(struct script *s, uint64_t pc, uint32_t function)
{
    block(s, pc, function, TL_INSN_BRANCH, true, false, true);
}

static void ret(struct script *s, uint64_t pc, uint32_t function)
{
    block(s, pc, function, TL_INSN_INDIRECT, false, true, true);
}

static void jump(struct script *s, uint64_t pc, uint32_t function)
{
    block(s, pc, function, TL_INSN_BRANCH, false, false, true);
}

static void plain(struct script *s, uint64_t pc, uint32_t function)
{
    block(s, pc, function, TL_INSN_BRANCH, false, false, false);
}

static void eret(struct script *s, uint64_t pc, uint32_t function)
{
    block(s, pc, function, TL_INSN_RETURN_EX, false, false, true);
}

static void other(struct script *s, enum tl_item_kind kind, uint64_t pc)
{
    s->items[s->n++] =
        (struct tl_item){.kind = (uint8_t)kind, .flags = TL_ITEM_HAS_PC, .sub = 7, .pc = pc};
}

static void expect(const struct script *s, const char *text)
{
    struct tl_callstack *cs = malloc(sizeof *cs);
    struct watch w = {.cs = cs};
    tl_callstack_init(cs, NULL, 0, on_change, &w);
    assert_int_equal(tl_callstack_push(cs, s->items, s->n), TL_OK);
    assert_int_equal(tl_callstack_depth(cs), w.depth);
    struct tl_callstack *const alone = malloc(sizeof *alone); /* without a listener */
    tl_callstack_init(alone, NULL, 0, NULL, NULL);
    assert_int_equal(tl_callstack_push(alone, s->items, s->n), TL_OK);
    assert_int_equal(alone->depth, cs->depth);
    for (uint32_t i = 0; i < cs->depth; i++) {
        const struct tl_frame *const a = &alone->frames[i], *const b = &cs->frames[i];
        assert_true(a->insn == b->insn && a->pc == b->pc && a->return_pc == b->return_pc);
        assert_true(a->function == b->function && a->exception == b->exception);
        assert_int_equal(a->kind, b->kind);
    }
    assert_int_equal(alone->function, cs->function);
    free(alone);
    assert_int_equal(tl_callstack_finish(cs), TL_OK);
    assert_int_equal(tl_buf_add(&w.text, "", 1), TL_OK);
    assert_string_equal((const char *)w.text.p, text);
    assert_int_equal(w.depth, 0);
    tl_buf_fini(&w.text);
    free(cs);
}

static void calls_and_returns(void **state)
{
    struct script s = {.n = 0};
    call(&s, 0x100, 1);
    call(&s, 0x200, 2);
    plain(&s, 0x300, 3);
    ret(&s, 0x304, 3);
    ret(&s, 0x204, 2);
    plain(&s, 0x104, 1);
    expect(&s, "+r1@0 +c2@1 +c3@2 -c3@4 -c2@5 -r1@6 ");
}

static void tail_calls(void **state)
{
    struct script s = {.n = 0};
    call(&s, 0x100, 1);
    jump(&s, 0x200, 2);
    jump(&s, 0x300, 3); /* a loop: no change */
    jump(&s, 0x300, 3);
    ret(&s, 0x300, 3);
    plain(&s, 0x104, 1);
    expect(&s, "+r1@0 +c2@1 -c2@2 +t3@2 -t3@5 -r1@6 ");
}

static void recursion(void **state)
{
    struct script s = {.n = 0};
    call(&s, 0x100, 1);
    call(&s, 0x100, 1);
    call(&s, 0x100, 1);
    ret(&s, 0x100, 1);
    ret(&s, 0x104, 1);
    ret(&s, 0x104, 1);
    plain(&s, 0x104, 1);
    expect(&s, "+r1@0 +c1@1 +c1@2 +c1@3 -c1@4 -c1@5 -c1@6 -r1@7 ");
}

/* A jump to the return address of the innermost frame counts as a return if it is indirect, and not
 * if it is direct. */
static void jumps_after_a_call(void **state)
{
    for (unsigned indirect = 0; indirect < 2; indirect++) {
        struct script s = {.n = 0};
        call(&s, 0x100, 1);
        block(&s, 0x200, 2, indirect ? TL_INSN_INDIRECT : TL_INSN_BRANCH, false, false, true);
        plain(&s, 0x104, 1);
        expect(&s, indirect ? "+r1@0 +c2@1 -c2@2 -r1@3 " : "+r1@0 +c2@1 -c2@2 +t1@2 -t1@3 -r1@3 ");
    }
}

static void exceptions(void **state)
{
    struct script s = {.n = 0};
    call(&s, 0x100, 1);
    plain(&s, 0x200, 2);
    other(&s, TL_ITEM_EXCEPTION, 0x204);
    call(&s, 0x900, 9);
    ret(&s, 0xa00, 10);
    eret(&s, 0x904, 9);
    ret(&s, 0x204, 2);
    plain(&s, 0x104, 1);
    expect(&s, "+r1@0 +c2@1 +x9@2 +c10@3 -c10@4 -x9@5 -c2@6 -r1@7 ");
}

static void exception_at_a_call(void **state)
{
    struct script s = {.n = 0}; /* nothing of the callee is executed before the handler */
    call(&s, 0x100, 1);
    other(&s, TL_ITEM_EXCEPTION, 0x200);
    eret(&s, 0x900, 9);
    ret(&s, 0x200, 2);
    plain(&s, 0x104, 1);
    expect(&s, "+r1@0 +c4294967295@1 +x9@1 -x9@2 -c4294967295@2 +t2@2 -t2@3 -r1@4 ");
}

static void returns_to_the_unknown(void **state)
{
    struct script s = {.n = 0};
    ret(&s, 0x300, 3);
    ret(&s, 0x204, 2); /* its caller's caller, from before the trace */
    plain(&s, 0x104, 1);
    expect(&s, "+r3@0 -r3@1 +r2@1 -r2@2 +r1@2 -r1@3 ");

    struct script handler = {.n = 0}; /* … but not out of an exception handler */
    plain(&handler, 0x100, 1);
    other(&handler, TL_ITEM_EXCEPTION, 0x104);
    ret(&handler, 0x900, 9);
    plain(&handler, 0xa00, 10);
    expect(&handler, "+r1@0 +x9@1 -x9@2 +x10@2 -x10@3 -r1@3 ");
}

static void skipped_frames(void **state)
{
    struct script s = {.n = 0}; /* longjmp: over frames that never return */
    call(&s, 0x100, 1);
    call(&s, 0x200, 2);
    call(&s, 0x300, 3);
    ret(&s, 0x400, 4);
    ret(&s, 0x304, 3);
    plain(&s, 0x104, 1); /* not to 0x204 */
    expect(&s, "+r1@0 +c2@1 +c3@2 +c4@3 -c4@4 -c3@5 -c2@5 -r1@6 ");
}

static void gaps(void **state)
{
    struct script s = {.n = 0};
    call(&s, 0x100, 1);
    call(&s, 0x200, 2);
    plain(&s, 0x300, 3);
    other(&s, TL_ITEM_GAP, 0);
    plain(&s, 0x208, 2); /* the same function as before */
    other(&s, TL_ITEM_GAP, 0);
    plain(&s, 0x104, 1); /* return address of the second innermost frame */
    other(&s, TL_ITEM_TRACE_ON, 0);
    plain(&s, 0x500, 5); /* unknown */
    expect(&s, "+r1@0 +c2@1 +c3@2 -c3@3 -c2@4 -r1@5 +r5@5 -r5@6 ");
}

/* The depth after a gap in the innermost frame's function, at an address to which frame `to`
 * returns (0: no frame does). */
static uint32_t depth_after_gap(uint32_t depth, uint32_t to)
{
    const struct tl_item gap = {.kind = TL_ITEM_GAP};
    struct tl_callstack *const cs = malloc(sizeof *cs);
    tl_callstack_init(cs, NULL, 0, NULL, NULL);
    for (uint32_t i = 0; i <= depth; i++) {
        const bool last = i == depth;
        const uint64_t pc = !last ? 0x1000 * (uint64_t)(i + 1) : to > 0 ? 0x1000 * to + 4 : 0x8;
        const struct tl_block b = make(pc, last ? depth - 1 : i, TL_INSN_BRANCH, !last, false);
        const struct tl_item item = {
            .kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &b};
        if (last)
            assert_int_equal(tl_callstack_push(cs, &gap, 1), TL_OK);
        assert_int_equal(tl_callstack_push(cs, &item, 1), TL_OK);
        assert_int_equal(cs->function, b.function);
    }
    const uint32_t reached = tl_callstack_depth(cs);
    free(cs);
    return reached;
}

static void lost_in_the_same_function(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth < 140; depth++) {
        assert_int_equal(depth_after_gap(depth, 0), depth);
        for (uint32_t to = 1; to < depth; to++)
            assert_int_equal(depth_after_gap(depth, to), depth - to <= 64 ? to : depth);
    }
}

static void task_switch(void **state)
{
    struct script s = {.n = 0};
    call(&s, 0x100, 1);
    plain(&s, 0x200, 2);
    other(&s, TL_ITEM_EXCEPTION, 0x204);
    eret(&s, 0x900, 9);
    plain(&s, 0x700, 7); /* another task */
    expect(&s, "+r1@0 +c2@1 +x9@2 -x9@3 -c2@3 -r1@3 +r7@3 -r7@4 ");
}

static void branches_alone(void **state)
{
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_CALL, .value = 0x100},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_CALL, .value = 0x200},
        {.kind = TL_ITEM_BRANCH, .value = 0x208},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_RETURN, .value = 0x104},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_RETURN, .value = 0x4},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_RETURN, .value = 0x4},
    };
    struct script s = {.n = sizeof items / sizeof items[0]};
    memcpy(s.items, items, sizeof items);
    expect(&s, "+c4294967295@0 +c4294967295@0 -c4294967295@0 -c4294967295@0 ");
}

/* Branches with a known source: which ones count as returns, and which ones are not calls. */
static void branches_with_their_source(void **state)
{
    const unsigned call = TL_ITEM_CALL | TL_ITEM_HAS_PC, back = TL_ITEM_RETURN | TL_ITEM_HAS_PC;
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BRANCH, .flags = (uint8_t)back, .pc = 0x120, .value = 0x900},
        {.kind = TL_ITEM_BRANCH, .flags = (uint8_t)call, .pc = 0x910, .value = 0x200},
        {.kind = TL_ITEM_BRANCH, .flags = (uint8_t)back, .pc = 0x220, .value = 0xa00},
    };
    struct script s = {.n = 1}; /* in the outermost frame: a jump */
    memcpy(s.items, items, sizeof items);
    expect(&s, "+r4294967295@0 -r4294967295@0 ");
    s.n = 3; /* in a call: another call */
    expect(&s, "+r4294967295@0 +c4294967295@0 +c4294967295@0 "
               "-c4294967295@0 -c4294967295@0 -r4294967295@0 ");
}

/* Frames deeper than the stack can hold are counted, and correct again afterwards. */
static void very_deep(void **state)
{
    enum { DEEP = TL_CALLSTACK_MAX + 500 };
    struct tl_callstack *cs = malloc(sizeof *cs);
    struct watch w = {.cs = cs};
    struct tl_block caller = make(0x100, 1, TL_INSN_BRANCH, true, false);
    struct tl_block back = make(0x104, 1, TL_INSN_INDIRECT, false, true);
    const struct tl_item down = {
        .kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &caller};
    const struct tl_item up = {
        .kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &back};
    tl_callstack_init(cs, NULL, 0, on_change, &w);
    for (int i = 0; i < DEEP; i++)
        assert_int_equal(tl_callstack_push(cs, &down, 1), TL_OK);
    assert_int_equal(tl_callstack_depth(cs), DEEP);
    assert_int_equal(w.depth, TL_CALLSTACK_MAX);
    for (int i = 0; i < DEEP; i++)
        assert_int_equal(tl_callstack_push(cs, &up, 1), TL_OK);
    assert_int_equal(tl_callstack_depth(cs), 2); /* the last call's frame is still active */
    assert_int_equal(tl_callstack_finish(cs), TL_OK);
    assert_int_equal(w.pushes, w.pops);
    tl_buf_fini(&w.text);
    free(cs);
}

/* ---- steps of paths ------------------------------------------------------------------------ */

#define BLOCKS 24

/* The changes of a call that returned, as the stack itself would report them. */
static void on_leaf(void *context, uint32_t function, uint32_t depth, uint64_t begin, uint64_t end)
{
    const struct tl_frame frame = {.insn = begin, .function = function, .kind = TL_FRAME_CALL};
    ((struct watch *)context)->leaves++;
    assert_int_equal(on_change(context, TL_FRAME_PUSH, &frame, depth, begin), 0);
    assert_int_equal(on_change(context, TL_FRAME_POP, &frame, depth, end), 0);
}

/* The steps at which frames may change: see tl_callstack_steps(). */
static uint64_t turns_of(const struct tl_callstack *cs, const uintptr_t *steps, uint32_t n)
{
    uint32_t function = cs->depth > 0 ? cs->function : ~cs->function;
    unsigned how = cs->how;
    uint64_t turns = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct tl_block *const b = tl_path_block(steps[i]);
        turns |= (uint64_t)(how > TL_LEAVE_JUMP || b->function != function) << i;
        function = b->function;
        how = tl_path_taken(steps[i]) ? b->leave : TL_LEAVE_STRAIGHT;
    }
    return turns;
}

/* A block that execution may continue at after the last one: often at the return address of a
 * pending call, otherwise anywhere. */
static const struct tl_block *next_block(const struct tl_block *blocks, struct tl_sim_rng *rng,
                                         uint64_t *callers, uint32_t *depth, uintptr_t last)
{
    const bool taken = last && tl_path_taken(last);
    const unsigned how = last ? tl_path_block(last)->leave : TL_LEAVE_JUMP;
    if (taken && how == TL_LEAVE_CALL && *depth < 64)
        callers[(*depth)++] = tl_path_block(last)->pc + 4;
    if (taken && how == TL_LEAVE_RETURN && *depth > 0 && tl_sim_below(rng, 16) > 0) {
        const uint64_t pc = callers[--*depth];
        for (size_t i = 0; i < BLOCKS; i++)
            if (blocks[i].pc == pc)
                return &blocks[i];
    }
    return &blocks[tl_sim_below(rng, BLOCKS)];
}

/* Random steps at once, with and without a sink for leaves, change what they change one by one. */
static void steps_of_paths(void **state)
{
    (void)state;
    static const struct {
        enum tl_insn_kind kind;
        bool link, is_return;
    } ends[] = {{TL_INSN_BRANCH, true, false},    {TL_INSN_BRANCH, true, false},
                {TL_INSN_INDIRECT, false, true},  {TL_INSN_INDIRECT, false, true},
                {TL_INSN_BRANCH, false, false},   {TL_INSN_INDIRECT, true, false},
                {TL_INSN_INDIRECT, false, false}, {TL_INSN_PLAIN, false, false}};
    struct tl_callstack *const cs = malloc(4 * sizeof *cs);
    struct watch watches[3] = {{.cs = cs}, {.cs = cs + 1}, {.cs = cs + 2}};
    assert_non_null(cs);
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct tl_sim_rng rng = {seed};
        struct tl_block blocks[BLOCKS];
        uint64_t callers[64], insns = 0;
        uint32_t pending = 0;
        uintptr_t last = 0;
        for (size_t i = 0; i < BLOCKS; i++) {
            const unsigned end = tl_sim_below(&rng, sizeof ends / sizeof *ends);
            blocks[i] = make(0x1000 + 4 * i, (uint32_t)(i / (1 + seed % 8)), ends[end].kind,
                             ends[end].link, ends[end].is_return);
        }
        for (size_t i = 0; i < 3; i++)
            tl_callstack_init(&cs[i], NULL, 0, on_change, &watches[i]);
        tl_callstack_init(&cs[3], NULL, 0, NULL, NULL);
        cs[2].leaf = on_leaf;
        for (size_t batch = 0; batch < 20; batch++) {
            const uint32_t n = 1 + tl_sim_below(&rng, TL_CALLSTACK_STEPS);
            uintptr_t steps[TL_CALLSTACK_STEPS];
            uint64_t begins[TL_CALLSTACK_STEPS];
            uint32_t low = UINT32_MAX, high = 0;
            for (uint32_t i = 0; i < n; i++) {
                const struct tl_block *const b = next_block(blocks, &rng, callers, &pending, last);
                const struct tl_item item = {.kind = TL_ITEM_BLOCK,
                                             .flags = tl_sim_below(&rng, 8) ? TL_ITEM_TAKEN : 0,
                                             .n = 1,
                                             .block = b};
                begins[i] = insns++;
                last = steps[i] = tl_path_step(b, item.flags);
                const uint32_t depth = tl_callstack_depth(&cs[0]), function = cs[0].function;
                const bool turns = cs[0].how > TL_LEAVE_JUMP || function != b->function || !depth;
                assert_int_equal(tl_callstack_push(&cs[0], &item, 1), TL_OK);
                const uint32_t now = tl_callstack_depth(&cs[0]);
                low = turns && now < low ? now : low;
                high = turns && now > high ? now : high;
            }
            for (size_t k = 1; k < 4; k++) {
                uint32_t lowest = UINT32_MAX, highest = 0;
                tl_callstack_steps(&cs[k], steps, n, turns_of(&cs[k], steps, n), begins, &lowest,
                                   &highest);
                cs[k].insns = insns;
                assert_int_equal(lowest, low);
                assert_int_equal(highest, high);
                assert_int_equal(tl_callstack_depth(&cs[k]), tl_callstack_depth(&cs[0]));
                assert_int_equal(cs[k].function, cs[0].function);
                assert_int_equal(cs[k].how, cs[0].how);
                assert_int_equal(cs[k].next_pc, cs[0].next_pc);
                assert_memory_equal(cs[k].frames, cs[0].frames,
                                    cs[0].depth * sizeof(struct tl_frame));
            }
        }
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(tl_callstack_finish(&cs[i]), TL_OK);
            assert_string_equal((char *)watches[i].text.p, (char *)watches[0].text.p);
            assert_int_equal(watches[i].depth, 0);
        }
        for (size_t i = 0; i < 3; i++)
            tl_buf_reset(&watches[i].text);
    }
    assert_true(watches[2].leaves > 1000);
    for (size_t i = 0; i < 3; i++)
        tl_buf_fini(&watches[i].text);
    free(cs);
}

/* ---- a simulated core ---------------------------------------------------------------------- */

struct sim {
    struct tl_callstack *cs;
    struct watch watch;
    uint64_t insns;
    uint32_t deepest;
};

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct sim *sim = context;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(tl_callstack_push(sim->cs, &items[i], 1), TL_OK);
        if (items[i].kind != TL_ITEM_BLOCK)
            continue;
        sim->insns += items[i].n;
        const uint32_t depth = tl_callstack_depth(sim->cs);
        assert_int_equal(sim->cs->frames[depth - 1].function, items[i].block->function);
        sim->deepest = depth > sim->deepest ? depth : sim->deepest;
        assert_true(depth < 64);
    }
    return TL_OK;
}

static int no_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

static void follows_a_core(void **state)
{
    const struct tl_sim_program_options program_options = {.seed = 11, .extra = 60};
    const struct tl_sim_core_options options = {
        .seed = 12, .irq_every = 5000, .overflow_every = 400000, .etm = {.trace_id = 0x10}};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_buf trace = {0}, elf = {0};
    struct tl_image *image;
    struct tl_source source = {.protocol = TL_PROTO_ETM4};
    struct tl_stream_decoder *decoder;
    struct tl_fail fail = {.text = ""};
    static struct tl_callstack cs;
    struct sim sim = {.cs = &cs, .watch = {.cs = &cs}};
    const struct tl_stream_sink sink = {.context = &sim, .items = on_items, .loss = no_loss};

    assert_int_equal(tl_sim_program_init(&program, &program_options), TL_OK);
    assert_int_equal(tl_sim_program_elf(&program, &elf), TL_OK);
    assert_int_equal(tl_sim_core_new(&core, &program, &options, &trace, NULL, NULL), TL_OK);
    assert_int_equal(tl_sim_core_step(core, 2000000), TL_OK);
    assert_int_equal(tl_sim_core_flush(core), TL_OK);
    tl_sim_core_free(core);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(
        tl_image_add_elf(image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", &fail),
        TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_sim_etm4_source(&options.etm, &source), TL_OK);
    tl_callstack_init(&cs, image, 0, on_change, &sim.watch);
    assert_int_equal(tl_etm4_ops.create(&decoder, &source, image, &sink, &fail), TL_OK);
    const struct tl_run run = {trace.p, trace.n, 0, NULL};
    assert_int_equal(decoder->ops->push(decoder, &run), TL_OK);
    assert_int_equal(decoder->ops->finish(decoder, TL_LOSS_CUT_OFF), TL_OK);
    decoder->ops->destroy(decoder);
    assert_int_equal(tl_callstack_finish(&cs), TL_OK);
    print_message("%u instructions, %zu frames, %u deep\n", (unsigned)sim.insns, sim.watch.pushes,
                  sim.deepest);
    assert_int_equal(sim.watch.pushes, sim.watch.pops);
    assert_true(sim.insns > 1000000 && sim.watch.pushes > 10000 && sim.deepest > 4);
    tl_image_free(image);
    tl_buf_fini(&sim.watch.text);
    tl_buf_fini(&trace);
    tl_buf_fini(&elf);
    tl_sim_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_returns),
        cmocka_unit_test(tail_calls),
        cmocka_unit_test(recursion),
        cmocka_unit_test(jumps_after_a_call),
        cmocka_unit_test(exceptions),
        cmocka_unit_test(exception_at_a_call),
        cmocka_unit_test(returns_to_the_unknown),
        cmocka_unit_test(skipped_frames),
        cmocka_unit_test(gaps),
        cmocka_unit_test(task_switch),
        cmocka_unit_test(branches_alone),
        cmocka_unit_test(branches_with_their_source),
        cmocka_unit_test(lost_in_the_same_function),
        cmocka_unit_test(very_deep),
        cmocka_unit_test(steps_of_paths),
        cmocka_unit_test(follows_a_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
