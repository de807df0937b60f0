/* SPDX-License-Identifier: MIT */
/* Programs with random behaviour whose stacks are known, and items without any sense. */
#include "callstack_world.h"
#include "sim/program_rng.h"

/* ---- random programs ------------------------------------------------------------------------- */

#define THREADS 3
#define DEEPEST 40

struct activation {
    char function;
    uint64_t pc; /* of its next instruction */
    bool signal;
};

struct program {
    struct world *w;
    struct tl_sim_rng rng;
    struct activation frames[THREADS][DEEPEST];
    uint32_t depth[THREADS];
    unsigned now;
    bool kernel; /* is traced */
    size_t signals, jumps, switches;
};

static struct activation *top(struct program *p)
{
    return &p->frames[p->now][p->depth[p->now] - 1];
}

static void check(struct program *p)
{
    char expected[DEEPEST + 1] = "";
    for (uint32_t i = 0; i < p->depth[p->now]; i++)
        expected[i] = p->frames[p->now][i].function;
    assert_string_equal(stack(p->w), expected);
}

static void execute(struct program *p, enum end end)
{
    struct activation *const t = top(p);
    step(p->w, t->pc, end);
    check(p);
    t->pc += 4;
}

static void enter(struct program *p, char function, bool signal)
{
    p->frames[p->now][p->depth[p->now]++] = (struct activation){function, AT(function, 0), signal};
}

/* The operating system runs, and perhaps continues elsewhere. */
static void leave_program(struct program *p)
{
    if (!p->kernel) {
        off(p->w);
        return;
    }
    exception(p->w, top(p)->pc);
    mode(p->w, false);
    step(p->w, AT('k', 0), CALL);
    step(p->w, AT('l', 0), RETURN);
    step(p->w, AT('k', 4), ERET);
}

static void come_back(struct program *p)
{
    if (p->kernel)
        mode(p->w, true);
}

static void run_signal(struct program *p)
{
    leave_program(p);
    come_back(p);
    enter(p, (char)('p' + tl_sim_below(&p->rng, 4)), true);
    execute(p, PLAIN);
    p->signals++;
}

static void end_signal(struct program *p)
{
    struct activation *const t = top(p);
    execute(p, RETURN);
    *t = (struct activation){'z', AT('z', 0), true};
    execute(p, PLAIN);
    leave_program(p);
    come_back(p);
    p->depth[p->now]--;
    execute(p, PLAIN);
}

static void run_thread(struct program *p)
{
    leave_program(p);
    p->now = (p->now + 1) % THREADS;
    thread(p->w, p->now);
    come_back(p);
    const bool begins = p->depth[p->now] == 0;
    if (begins) {
        enter(p, (char)('m' + p->now), false);
        top(p)->pc += 0x100;
    }
    execute(p, PLAIN);
    p->switches++;
}

/* To a function that is active below, in its innermost activation. */
static void run_longjmp(struct program *p)
{
    struct activation *const frames = p->frames[p->now];
    const uint32_t depth = p->depth[p->now], to = tl_sim_below(&p->rng, depth - 1);
    for (uint32_t i = to + 1; i < depth; i++)
        if (frames[i].function == frames[to].function)
            return;
    execute(p, JUMP);
    p->depth[p->now] = to + 1;
    frames[to].pc += 0x40;
    execute(p, PLAIN);
    p->jumps++;
}

static void run_something(struct program *p)
{
    const uint32_t depth = p->depth[p->now];
    const unsigned choice = tl_sim_below(&p->rng, 100);
    if (choice < 30) {
        execute(p, PLAIN);
    } else if (choice < 60 && depth < DEEPEST - 8) {
        execute(p, CALL);
        enter(p, (char)('a' + tl_sim_below(&p->rng, 10)), false);
        execute(p, PLAIN);
    } else if (choice < 80 && depth > 1 && !top(p)->signal) {
        execute(p, RETURN);
        p->depth[p->now]--;
        execute(p, PLAIN);
    } else if (choice < 88 && top(p)->signal) {
        end_signal(p);
    } else if (choice < 90 && depth > 2) {
        run_longjmp(p);
    } else if (choice < 93) {
        leave_program(p);
        come_back(p);
        execute(p, PLAIN);
    } else if (choice < 96 && depth < DEEPEST - 8) {
        run_signal(p);
    } else if (choice < 98) {
        run_thread(p);
    }
}

static void random_programs(void **state)
{
    struct world *const w = *state;
    size_t signals = 0, jumps = 0, switches = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct program p = {.w = w, .rng = {seed}, .kernel = seed % 2};
        begin(w);
        mode(w, true);
        thread(w, 0);
        enter(&p, 'm', false);
        for (unsigned i = 0; i < 2000; i++)
            run_something(&p);
        signals += p.signals;
        jumps += p.jumps;
        switches += p.switches;
    }
    print_message("%zu signals, %zu jumps over frames, %zu switches\n", signals, jumps, switches);
    assert_true(signals > 1000 && jumps > 500 && switches > 1000);
}

/* ---- any items ------------------------------------------------------------------------------- */

/* Whatever comes, changes nest, and stacks stay within their bounds. */
static void any_items(void **state)
{
    struct world *const w = *state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct tl_sim_rng rng = {seed};
        begin(w);
        mode(w, seed % 2);
        for (unsigned i = 0; i < 2000; i++) {
            const uint64_t pc =
                AT((char)('a' + tl_sim_below(&rng, FUNCTIONS)), tl_sim_below(&rng, 3) * 4);
            switch (tl_sim_below(&rng, 12)) {
            case 0:
                off(w);
                break;
            case 1:
                exception(w, tl_sim_below(&rng, 2) ? pc : 0);
                break;
            case 2:
                note(w, TL_ITEM_ERET, 0);
                break;
            case 3:
                thread(w, tl_sim_below(&rng, 30));
                break;
            case 4:
                note(w, TL_ITEM_GAP, (uint16_t)tl_sim_below(&rng, TL_GAP_KINDS * 8));
                break;
            default:
                step(w, pc, (enum end)tl_sim_below(&rng, 5));
                assert_true(w->depth > 0);
            }
            assert_true(w->calls.n_parked <= TL_CALLSTACK_PARKED);
            assert_true(w->calls.n_aside <= TL_CALLSTACK_ASIDE);
        }
    }
}

int main(void)
{
    static struct world world;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(random_programs, &world),
        cmocka_unit_test_prestate(any_items, &world),
    };
    world.image = image_of_functions();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tl_image_free(world.image);
    return failed;
}
