/* SPDX-License-Identifier: MIT */
/* The walker with one bit per condition, compared with a model: a small interpreter runs random
 * programs and produces the bits and addresses that a trace unit would send. */
#include "flow/walker_routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BASE        0x10000ULL
#define PROGRAM     128u  /* instructions */
#define STEPS       3000u /* instructions executed */
#define ROUNDS      200u
#define NOP         0xd503201fu
#define ISB         0xd5033fdfu
#define RET         0xd65f03c0u
#define BR          0xd61f0020u
#define B(n)        (0x14000000u | ((uint32_t)(n)&0x3ffffff))
#define BL(n)       (0x94000000u | ((uint32_t)(n)&0x3ffffff))
#define B_EQ(n)     (0x54000000u | ((uint32_t)(n)&0x7ffff) << 5)
#define SMALL_STACK 4u

/* The ways in which bits are followed. */
enum how { BLOCK_BY_BLOCK, PATHS, ROUTES };

struct world {
    enum how how;
    uint32_t code[PROGRAM];
    uint64_t seen[STEPS + 1];
    size_t n_seen;
    unsigned kinds;  /* of items, as a bit mask */
    unsigned gap;    /* kind of the last one */
    uint64_t gap_pc; /* its address, if it has one */
    unsigned taken;  /* number of BLOCK items with this flag */
    uint64_t mode;   /* the last one */
    struct tl_image *image;
    struct tl_item_batch batch;
    struct tl_walker walker;
};

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33) % n;
}

static void see(struct world *w, const struct tl_block *block, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_true(w->n_seen < sizeof w->seen / sizeof *w->seen);
        w->seen[w->n_seen++] = block->pc + 4 * i;
    }
}

static int take(void *context, const struct tl_item *items, size_t n)
{
    struct world *const w = context;
    for (size_t i = 0; i < n; i++) {
        w->kinds |= tl_item_kinds(&items[i]);
        if (items[i].kind == TL_ITEM_BLOCK)
            see(w, items[i].block, items[i].n);
        if (items[i].kind == TL_ITEM_PATH)
            for (uint32_t k = 0; k < items[i].n; k++)
                see(w, tl_path_block(items[i].path[k]), tl_path_block(items[i].path[k])->n);
        if (items[i].kind == TL_ITEM_BLOCK)
            w->taken += items[i].flags & TL_ITEM_TAKEN;
        if (items[i].kind == TL_ITEM_MODE)
            w->mode = items[i].value;
        if (items[i].kind == TL_ITEM_GAP)
            w->gap = items[i].sub;
        if (items[i].kind == TL_ITEM_GAP)
            w->gap_pc = items[i].flags & TL_ITEM_HAS_PC ? items[i].pc : 0;
    }
    return TL_OK;
}

/* A walker at BASE, in AArch64 state. */
static struct world *begin(const uint32_t *code, size_t n, unsigned returns, enum how how)
{
    struct world *const w = calloc(1, sizeof *w);
    uint8_t bytes[4 * PROGRAM];
    assert_non_null(w);
    for (size_t i = 0; i < n; i++)
        tl_put_le32(bytes + 4 * i, code[i]);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, BASE, (struct tl_bytes){bytes, 4 * n},
                                        TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
    const struct tl_walker_config config = {.image = w->image,
                                            .bits = TL_WALKER_CONDITIONS,
                                            .predicts_returns = returns > 0,
                                            .returns = (uint8_t)returns};
    tl_item_batch_init(&w->batch, take, w);
    w->how = how;
    w->batch.paths = how != BLOCK_BY_BLOCK;
    assert_int_equal(tl_walker_init(&w->walker, &config, &w->batch), TL_OK);
    tl_walker_mode(&w->walker, tl_mode(TL_ARCH_ARM, 1, TL_SEC_NS, TL_ISA_A64), 0);
    tl_walker_jump(&w->walker, BASE, TL_ISA_A64, 0);
    return w;
}

static void end(struct world *w)
{
    tl_walker_fini(&w->walker);
    tl_image_free(w->image);
    free(w);
}

/* ---- the model --------------------------------------------------------------------------- */

/* The processor and its trace unit, with a toy format of taken bits and addresses. */
struct model {
    uint64_t pc;
    uint64_t ran[STEPS];
    size_t n_ran;
    uint64_t stack[STEPS];
    size_t depth;
    uint64_t bits;
    unsigned n_bits;
};

static uint64_t reversed(uint64_t bits, unsigned n)
{
    uint64_t out = 0;
    for (unsigned i = 0; i < n; i++)
        out |= (bits >> i & 1) << (n - 1 - i);
    return out;
}

/* Follow the bits, and the address after them, with the route cache; bits that are not consumed
 * remain. */
static bool send_route(struct model *m, struct world *w, bool arrives)
{
    uint64_t word = reversed(m->bits, m->n_bits) | UINT64_C(1) << m->n_bits;
    const bool done = tl_walker_routes(&w->walker, &word, arrives, m->pc, m->n_ran);
    m->n_bits = 63u - (unsigned)__builtin_clzll(word);
    m->bits = reversed(word ^ UINT64_C(1) << m->n_bits, m->n_bits);
    if (done)
        m->bits = m->n_bits = 0;
    return done;
}

static void send_bits(struct model *m, struct world *w)
{
    if (m->n_bits > 0 && (w->how != ROUTES || !send_route(m, w, false)))
        assert_int_equal(tl_walker_conditions(&w->walker, m->bits, m->n_bits, m->n_ran), m->n_bits);
    m->bits = 0;
    m->n_bits = 0;
}

static void add_bit(struct model *m, struct world *w, bool bit, uint64_t *seed)
{
    m->bits |= (uint64_t)bit << m->n_bits++;
    if (m->n_bits == TL_ROUTE_WORD || random_below(seed, 8) == 0)
        send_bits(m, w);
}

static void send_address(struct model *m, struct world *w)
{
    if (w->how == ROUTES && send_route(m, w, true))
        return;
    send_bits(m, w);
    assert_true(tl_walker_to_indirect(&w->walker, m->n_ran));
    tl_walker_jump(&w->walker, m->pc, TL_ISA_A64, m->n_ran);
}

/* Jumps and calls go forward, so that every loop needs a bit. */
static void make_program(uint32_t *code, uint64_t *seed)
{
    for (uint32_t i = 0; i < PROGRAM; i++) {
        const uint32_t ahead = 1 + random_below(seed, PROGRAM - i), kind = random_below(seed, 12);
        const uint32_t to = ahead < PROGRAM - i ? ahead : 1;
        code[i] = kind < 4 ? NOP : kind == 4 ? B(to) : kind < 7 ? BL(to) : kind < 8 ? RET : BR;
        if (kind >= 9)
            code[i] = B_EQ((int32_t)random_below(seed, PROGRAM) - (int32_t)i);
    }
    code[PROGRAM - 1] = BR;
}

static void step(struct model *m, struct world *w, const uint32_t *code, unsigned returns,
                 uint64_t *seed)
{
    const uint64_t pc = m->pc;
    const uint32_t insn = code[(pc - BASE) / 4], index = random_below(seed, PROGRAM);
    m->ran[m->n_ran++] = pc;
    m->pc = pc + 4;
    if (insn >> 24 == 0x54) {
        const bool taken = random_below(seed, 2);
        if (taken)
            m->pc = pc + (uint64_t)((int64_t)((uint64_t)(insn >> 5) << 45) >> 45) * 4;
        add_bit(m, w, taken, seed);
    } else if (insn >> 26 == 5 || insn >> 26 == 0x25) {
        if (insn >> 31)
            m->stack[m->depth++] = pc + 4;
        m->pc = pc + (insn & 0x3ffffff) * 4ULL;
    } else if (insn == RET && m->depth > 0 && random_below(seed, 8)) {
        m->pc = m->stack[--m->depth];
        if (returns > 0)
            add_bit(m, w, true, seed);
        else
            send_address(m, w);
    } else if (insn == RET || insn == BR) {
        m->pc = BASE + index * 4ULL;
        send_address(m, w);
    }
}

/* If its return stack is full, the trace unit drops the oldest entry. */
static void forget_oldest(struct model *m, unsigned returns)
{
    if (returns == 0 || m->depth <= returns)
        return;
    memmove(m->stack, m->stack + m->depth - returns, returns * sizeof *m->stack);
    m->depth = returns;
}

static unsigned count_routes(const struct tl_walker *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->n_routes; i++)
        n += w->routes[i].n > 0;
    return n;
}

static void run_programs(unsigned returns, enum how how)
{
    static struct model m;
    unsigned routes = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t code[PROGRAM];
        uint64_t seed = round;
        make_program(code, &seed);
        struct world *const w = begin(code, PROGRAM, returns, how);
        m = (struct model){.pc = BASE};
        while (m.n_ran < STEPS) {
            step(&m, w, code, returns, &seed);
            forget_oldest(&m, returns);
            if (random_below(&seed, 50) == 0) { /* an unsolicited address */
                send_bits(&m, w);
                assert_true(tl_walker_to(&w->walker, m.pc, false, m.n_ran));
            }
        }
        send_bits(&m, w);
        assert_true(tl_walker_to(&w->walker, m.pc, false, m.n_ran));
        assert_int_equal(tl_item_batch_flush(&w->batch), TL_OK);
        assert_int_equal(w->kinds & 1u << TL_ITEM_GAP, 0);
        assert_int_equal(w->n_seen, m.n_ran);
        assert_memory_equal(w->seen, m.ran, m.n_ran * sizeof *m.ran);
        routes += how == ROUTES ? count_routes(&w->walker) : 0;
        end(w);
    }
    assert_true(how != ROUTES || routes > 10 * ROUNDS);
}

static void follows_programs(void **state)
{
    (void)state;
    run_programs(0, BLOCK_BY_BLOCK);
    run_programs(0, PATHS);
    run_programs(0, ROUTES);
}

static void follows_predicted_returns(void **state)
{
    (void)state;
    for (enum how how = PATHS; how <= ROUTES; how++) {
        run_programs(TL_WALKER_RETURNS, how);
        run_programs(SMALL_STACK, how);
    }
}

/* ---- paths that cannot be followed ---------------------------------------------------------- */

static void notices_a_loop_without_end(void **state)
{
    (void)state;
    const uint32_t code[] = {NOP, B(1), B(-1)};
    struct world *const w = begin(code, 3, 0, PATHS);
    assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, 7), 0);
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->gap, TL_GAP_NO_PATH);
    assert_true(w->walker.need_address);
    tl_walker_jump(&w->walker, BASE, TL_ISA_A64, 8);
    assert_false(tl_walker_to_indirect(&w->walker, 8));
    tl_walker_jump(&w->walker, BASE, TL_ISA_A64, 9);
    assert_false(tl_walker_to(&w->walker, BASE + 0x40, false, 9));
    end(w);
}

static void needs_bits_and_addresses(void **state)
{
    (void)state;
    const uint32_t code[] = {NOP, B_EQ(1), BR};
    struct world *const w = begin(code, 3, 0, PATHS);
    assert_int_equal(tl_walker_conditions(&w->walker, 2, 2, 1), 1); /* BR does not consume a bit */
    assert_false(w->walker.need_address);
    assert_true(tl_walker_to_indirect(&w->walker, 2));
    assert_true(w->walker.need_address);
    tl_walker_jump(&w->walker, BASE, TL_ISA_A64, 3);
    assert_false(tl_walker_to_indirect(&w->walker, 4)); /* B.EQ has no bit */
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->gap, TL_GAP_NO_PATH);
    assert_int_equal(w->n_seen, 3);
    end(w);
}

/* With an empty return stack, a bit does not stand for a return. */
static void returns_that_nobody_called(void **state)
{
    (void)state;
    const uint32_t code[] = {BL(2), NOP, RET};
    struct world *const w = begin(code, 3, 4, PATHS);
    assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, 1), 1); /* returns to after the call, */
    assert_int_equal(w->walker.pc, BASE + 4);
    assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, 2), 0); /* then reaches RET again */
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->n_seen, 2); /* the call and the first return */
    assert_int_equal(w->kinds >> TL_ITEM_GAP & 1, 0);
    assert_false(w->walker.need_address);
    assert_true(tl_walker_to_indirect(&w->walker, 3));
    end(w);
}

/* A source address does not make an instruction branch that is not a branch in the image. */
static void source_addresses(void **state)
{
    (void)state;
    const uint32_t code[] = {NOP, ISB, NOP, B(-3), NOP};
    struct world *const w = begin(code, 5, 0, BLOCK_BY_BLOCK);
    tl_walker_source(&w->walker, BASE + 4, TL_ISA_A64, 1);
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->n_seen, 2);
    assert_int_equal(w->taken, 0);
    assert_int_equal(w->walker.pc, BASE + 8);
    tl_walker_source(&w->walker, BASE + 8, TL_ISA_A64, 2);
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->taken, 0);
    assert_int_equal(w->walker.pc, BASE + 12);
    tl_walker_source(&w->walker, BASE + 12, TL_ISA_A64, 3);
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->taken, 1);
    assert_int_equal(w->walker.pc, BASE);
    end(w);
}

/* Inlined or not: a change of instruction set is reported, the same one is not. */
static void jumps_tell_the_instruction_set(void **state)
{
    (void)state;
    const uint32_t code[] = {NOP, NOP, BR};
    for (unsigned inlined = 0; inlined < 2; inlined++) {
        struct world *const w = begin(code, 3, 0, PATHS);
        void (*const jump)(struct tl_walker *, uint64_t, enum tl_isa, uint64_t) =
            inlined ? tl_walker_jump_hot : tl_walker_jump;
        tl_item_batch_flush(&w->batch);
        const uint64_t mode = w->mode;
        /* with a known position, from which the program leads elsewhere, then while waiting for an
         * address */
        const unsigned gap = 1u << TL_ITEM_GAP;
        for (unsigned i = 0; i < 2; i++) {
            w->kinds = 0;
            jump(&w->walker, BASE + 4, TL_ISA_A64, 1);
            tl_item_batch_flush(&w->batch);
            assert_int_equal(w->kinds, i == 0 ? gap : 0);
            w->kinds = 0;
            jump(&w->walker, BASE + 4, TL_ISA_T32, 2);
            tl_item_batch_flush(&w->batch);
            assert_int_equal(w->kinds, 1u << TL_ITEM_MODE | gap);
            assert_int_equal(w->mode, (mode & ~0xffull) | TL_ISA_T32);
            assert_int_equal(w->walker.isa, TL_ISA_T32);
            jump(&w->walker, BASE + 4, TL_ISA_A64, 3);
            tl_item_batch_flush(&w->batch);
            assert_int_equal(w->mode, mode);
            tl_walker_await(&w->walker, true);
        }
        end(w);
    }
}

static void reports_unmapped_ranges(void **state)
{
    (void)state;
    const uint32_t code[] = {NOP};
    struct world *const w = begin(code, 1, 0, PATHS);
    assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, 1), 0);
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->n_seen, 1);
    assert_int_equal(w->gap, TL_GAP_NO_IMAGE);
    assert_int_equal(w->kinds & 1u << TL_ITEM_BRANCH, 0);
    tl_walker_jump(&w->walker, BASE + 0x1000, TL_ISA_A64, 2);
    assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, 2), 0);
    tl_item_batch_flush(&w->batch);
    assert_int_equal(w->kinds >> TL_ITEM_BRANCH & 1, 1);
    /* The walk reaches the end of the image, and no further. */
    tl_walker_jump(&w->walker, BASE, TL_ISA_A64, 3);
    assert_true(tl_walker_to(&w->walker, BASE + 4, false, 3));
    assert_false(tl_walker_to(&w->walker, BASE + 8, false, 3));
    end(w);
}

/* The address of a gap at the end of mapped code, of a branch to unmapped code, and of a jump
 * without an image. */
static void names_unmapped_addresses(void **state)
{
    (void)state;
    const uint32_t off[] = {NOP, NOP}, away[] = {NOP, B(0x100)};
    for (unsigned named = 0; named < 2; named++) {
        struct world *w = begin(off, 2, 0, PATHS);
        w->walker.names_unmapped = named;
        assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, 1), 0);
        tl_item_batch_flush(&w->batch);
        assert_int_equal(w->n_seen, 2);
        assert_int_equal(w->gap, TL_GAP_NO_IMAGE);
        assert_int_equal(w->gap_pc, named ? BASE + 8 : 0);
        end(w);
        w = begin(away, 2, 0, BLOCK_BY_BLOCK);
        w->walker.names_unmapped = named;
        assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, 1), 0);
        tl_item_batch_flush(&w->batch);
        assert_int_equal(w->gap, TL_GAP_NO_IMAGE);
        assert_int_equal(w->gap_pc, named ? BASE + 4 + 0x400 : 0);
        end(w);
        struct world none = {0};
        struct tl_walker walker;
        const struct tl_walker_config config = {.bits = TL_WALKER_CONDITIONS,
                                                .names_unmapped = named};
        tl_item_batch_init(&none.batch, take, &none);
        assert_int_equal(tl_walker_init(&walker, &config, &none.batch), TL_OK);
        tl_walker_mode(&walker, tl_mode(TL_ARCH_ARM, 1, TL_SEC_NS, TL_ISA_A64), 0);
        tl_walker_jump(&walker, BASE, TL_ISA_A64, 0);
        tl_item_batch_flush(&none.batch);
        assert_int_equal(none.kinds >> TL_ITEM_GAP & 1, named);
        assert_int_equal(none.kinds >> TL_ITEM_BRANCH & 1, 1);
        assert_int_equal(none.gap_pc, named ? BASE : 0);
        tl_walker_fini(&walker);
    }
}

/* ---- time -------------------------------------------------------------------------------- */

/* The saved state contains the time as far as it matters. */
static void save_and_load(struct tl_walker *from, struct tl_walker *to)
{
    struct tl_buf bytes = {0};
    struct tl_state out = {.out = &bytes};
    tl_walker_place_state(from, &out);
    tl_walker_rest_state(from, &out);
    assert_int_equal(out.rc, TL_OK);
    struct tl_state in = {.in = {bytes.p, bytes.n}};
    tl_walker_place_state(to, &in);
    tl_walker_rest_state(to, &in);
    tl_walker_restore_context(to, &from->context);
    assert_int_equal(in.rc, TL_OK);
    tl_buf_fini(&bytes);
}

/* Two programs, one after the other at the same address, follow the same bit in different ways. */
static void code_changes_at_its_time(void **state)
{
    static const uint32_t codes[2][4] = {{NOP, B_EQ(2), NOP, RET}, {B_EQ(3), NOP, NOP, RET}};
    static const struct tl_image_span spans[2] = {{0, 100}, {100, 0}};
    static const uint64_t times[] = {0, 50, 99, 100, 60, 5000};
    static const uint8_t second[] = {0, 0, 0, 1, 1, 1}; /* time does not go backwards */
    struct world w = {0};
    struct tl_walker other;
    (void)state;
    assert_int_equal(tl_image_new(&w.image), TL_OK);
    for (unsigned i = 0; i < 2; i++) {
        uint8_t bytes[16];
        for (unsigned k = 0; k < 4; k++)
            tl_put_le32(bytes + 4 * k, codes[i][k]);
        tl_image_set_period(w.image, spans[i]);
        assert_int_equal(tl_image_add_bytes(w.image, BASE, (struct tl_bytes){bytes, 16},
                                            TL_SPACE_ANY, NULL, NULL),
                         TL_OK);
    }
    assert_int_equal(tl_image_freeze(w.image), TL_OK);
    const struct tl_walker_config config = {.image = w.image, .bits = TL_WALKER_CONDITIONS};
    tl_item_batch_init(&w.batch, take, &w);
    assert_int_equal(tl_walker_init(&w.walker, &config, &w.batch), TL_OK);
    assert_int_equal(tl_walker_init(&other, &config, &w.batch), TL_OK);
    tl_walker_mode(&w.walker, tl_mode(TL_ARCH_ARM, 1, TL_SEC_NS, TL_ISA_A64), 0);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (times[i])
            tl_walker_time(&w.walker, times[i], 0);
        save_and_load(&w.walker, &other);
        for (unsigned k = 0; k < 2; k++) {
            struct tl_walker *const walker = k ? &other : &w.walker;
            w.n_seen = 0;
            tl_walker_jump(walker, BASE, TL_ISA_A64, 0);
            assert_int_equal(tl_walker_conditions(walker, 1, 1, 0), 1);
            assert_int_equal(tl_item_batch_flush(&w.batch), TL_OK);
            assert_int_equal(w.n_seen, second[i] ? 1 : 2);
            assert_true(walker->pc == BASE + 12);
        }
    }
    tl_walker_fini(&w.walker);
    tl_walker_fini(&other);
    tl_image_free(w.image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_programs),
        cmocka_unit_test(follows_predicted_returns),
        cmocka_unit_test(notices_a_loop_without_end),
        cmocka_unit_test(needs_bits_and_addresses),
        cmocka_unit_test(returns_that_nobody_called),
        cmocka_unit_test(source_addresses),
        cmocka_unit_test(jumps_tell_the_instruction_set),
        cmocka_unit_test(reports_unmapped_ranges),
        cmocka_unit_test(names_unmapped_addresses),
        cmocka_unit_test(code_changes_at_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
