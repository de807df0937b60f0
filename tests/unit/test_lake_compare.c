/* SPDX-License-Identifier: MIT */
/* Two runs compared: everything between the hunks is equal, instruction by instruction; the first
 * hunk begins at the first difference; changes far from each other are found separately. */
#include "lake_analysis.h"
#include "lake_help.h"

#include "sim/small_elf.h"
#include "stf/writer.h"

#define STREAM    "stf.0"
#define FUNCTIONS 30

enum { NOP = 0x00000013, CALL = 0x000000ef, RETURN = 0x00008067, JUMP = 0x0000006f };

/* A run: the addresses of its instructions, and its calls. */
struct run {
    uint64_t *pc;
    size_t n, cap;
    struct {
        uint64_t at;
        unsigned function, depth;
    } * calls;
    size_t n_calls, cap_calls;
    uint64_t base;
};

static struct tl_backend *backend;
static struct tl_lake *lake;
static uint64_t random_state;
static unsigned traces;

static uint64_t below(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % n;
}

static uint64_t entry(const struct run *run, unsigned function)
{
    return run->base + 0x1000 * (uint64_t)function;
}

static void add(struct run *run, uint64_t pc)
{
    assert_int_equal(tl_grow(&run->pc, &run->cap, run->n + 1, sizeof *run->pc), TL_OK);
    run->pc[run->n++] = pc;
}

/* Run a function's body: straight code, loops, possibly calls, and its return. */
static void body(struct run *run, unsigned function, unsigned depth, uint64_t seed)
{
    const uint64_t pc = entry(run, function);
    assert_int_equal(tl_grow(&run->calls, &run->cap_calls, run->n_calls + 1, sizeof *run->calls),
                     TL_OK);
    run->calls[run->n_calls].at = run->n;
    run->calls[run->n_calls].function = function;
    run->calls[run->n_calls++].depth = depth;
    uint64_t at = 0;
    const unsigned pieces = 2 + (unsigned)(seed % 5);
    for (unsigned i = 0; i < pieces; i++) {
        const unsigned length = 3 + (unsigned)(seed >> (4 * i + 3) & 15);
        for (unsigned k = 0; k < length; k++, at += 4)
            add(run, pc + at);
        if (depth < 6 && (seed >> (3 * i + 20) & 7) == 1) {
            add(run, pc + at);
            at += 4;
            body(run, (unsigned)(seed >> (5 * i + 9)) % (FUNCTIONS - 2) + 1, depth + 1,
                 seed * 0x9e3779b97f4a7c15u >> 3);
        } else {
            add(run, pc + at); /* a jump forward */
            at += 4 + 4 * (seed >> (2 * i + 30) & 7);
        }
    }
    add(run, pc + at);
}

/* Run the same calls from the main loop, except in rounds whose `change` is not 0: 1 omits the
 * call, 2 makes another one, 3 makes one more. */
static void make(struct run *run, uint64_t base, unsigned rounds, const uint8_t *change)
{
    *run = (struct run){.base = base};
    random_state = 77;
    for (unsigned i = 0; i < rounds; i++) {
        const unsigned function = 1 + (unsigned)below(FUNCTIONS - 2);
        const uint64_t seed = random_state;
        const uint8_t how = change ? change[i] : 0;
        const uint64_t loop = entry(run, 0);
        for (unsigned k = 0; k < 5; k++)
            add(run, loop + 4 * k);
        if (how == 3) {
            add(run, loop + 0x100);
            body(run, FUNCTIONS - 1, 1, 12345);
        }
        add(run, loop + 20 + 8 * (function % 7));
        if (how != 1)
            body(run, how == 2 ? FUNCTIONS - 1 : function, 1, seed);
        add(run, loop + 0x200);
    }
}

static bool is_call(const struct run *run, size_t i)
{
    return i + 1 < run->n && (run->pc[i + 1] - run->base) % 0x1000 == 0 &&
           run->pc[i + 1] != run->base && run->pc[i + 1] != run->pc[i] + 4;
}

static void write_stf(const struct run *run, struct tl_buf *out)
{
    const struct tl_stf_header_spec spec = {
        .isa = TL_STF_ISA_RISCV, .iem = TL_STF_IEM_64, .pc = run->pc[0]};
    const struct tl_stf_layout layout = {0};
    unsigned depth = 0;
    assert_int_equal(tl_stf_header_write(&spec, out, NULL), TL_OK);
    for (size_t i = 0; i < run->n; i++) {
        const uint64_t next = i + 1 < run->n ? run->pc[i + 1] : run->pc[i] + 4;
        uint32_t opcode = next == run->pc[i] + 4 ? NOP : JUMP;
        if (is_call(run, i)) {
            opcode = CALL;
            depth++;
        } else if (opcode == JUMP && depth > 0 && next / 0x1000 != run->pc[i] / 0x1000) {
            opcode = RETURN;
            depth--;
        }
        if (opcode != NOP)
            assert_int_equal(
                tl_stf_record_encode(
                    &layout, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = next},
                    out),
                TL_OK);
        assert_int_equal(
            tl_stf_record_encode(
                &layout, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = opcode}, out),
            TL_OK);
    }
}

static void put_image(uint64_t base, char hash[static 72])
{
    static char names[FUNCTIONS][16];
    struct tl_sim_elf_symbol symbols[FUNCTIONS];
    uint8_t *const code = calloc(FUNCTIONS, 0x1000);
    struct tl_buf elf = {0};
    struct tl_image_row row;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        snprintf(names[i], sizeof names[i], "function_%u", i);
        symbols[i] = (struct tl_sim_elf_symbol){names[i], base + 0x1000 * i, 0x1000};
    }
    const struct tl_sim_elf one = {.machine = EM_RISCV,
                                   .wide = true,
                                   .address = base,
                                   .code = {code, FUNCTIONS * 0x1000},
                                   .symbols = symbols,
                                   .n_symbols = FUNCTIONS};
    assert_int_equal(tl_sim_elf_make(&one, &elf), TL_OK);
    assert_int_equal(
        tl_lake_put_image(lake, "program", (struct tl_bytes){elf.p, elf.n}, &row, NULL), TL_OK);
    memcpy(hash, row.hash, 72);
    tl_buf_fini(&elf);
    free(code);
}

/* Store the run as a trace. */
static void push(const struct run *run, char id[static 16])
{
    struct capture c = {0};
    char hash[72];
    put_image(run->base, hash);
    write_stf(run, &c.bytes);
    snprintf(id, 16, "t%u", traces++);
    assert_int_equal(
        tl_buf_printf(&c.setup, "[trace]\nformat=stf\n[image program]\nfile=%s\n", hash), TL_OK);
    assert_int_equal(tl_buf_add(&c.setup, "", 1), TL_OK);
    push_sealed(lake, id, &c, 1 << 20);
    capture_free(&c);
}

static void free_run(struct run *run)
{
    free(run->pc);
    free(run->calls);
}

static int set_up(void **state)
{
    (void)state;
    lake = open_memory_lake(&backend, 20000, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backend, lake);
    return 0;
}

static void compare(struct tl_compare *out, const char *a, const char *b, bool calls)
{
    struct tl_fail fail = {0};
    const struct tl_compare_request request = {.a = {a, STREAM, 0, UINT64_MAX},
                                               .b = {b, STREAM, 0, UINT64_MAX},
                                               .calls = calls,
                                               .hunks = 10000};
    if (tl_lake_compare(lake, &request, out, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* Check that everything between hunks is equal and that each hunk begins with a difference. */
static void check_hunks(const struct tl_compare *c, const struct run *a, const struct run *b)
{
    uint64_t at = 0, bt = 0, only_a = 0, only_b = 0;
    assert_int_equal(c->n_hunks, c->total_hunks);
    for (size_t i = 0; i <= c->n_hunks; i++) {
        const struct tl_compare_hunk hunk =
            i < c->n_hunks ? c->hunks[i] : (struct tl_compare_hunk){a->n, a->n, b->n, b->n};
        assert_true(hunk.a_from >= at && hunk.b_from >= bt);
        assert_true(hunk.a_to >= hunk.a_from && hunk.b_to >= hunk.b_from);
        assert_int_equal(hunk.a_from - at, hunk.b_from - bt);
        for (; at < hunk.a_from; at++, bt++)
            if (a->pc[at] - a->base != b->pc[bt] - b->base)
                fail_msg("%llu and %llu are not alike", (unsigned long long)at,
                         (unsigned long long)bt);
        if (i < c->n_hunks && at < a->n && bt < b->n)
            assert_true(a->pc[at] - a->base != b->pc[bt] - b->base);
        only_a += hunk.a_to - hunk.a_from;
        only_b += hunk.b_to - hunk.b_from;
        at = hunk.a_to;
        bt = hunk.b_to;
    }
    assert_int_equal(at, a->n);
    assert_int_equal(bt, b->n);
    assert_int_equal(c->only_a, only_a);
    assert_int_equal(c->only_b, only_b);
}

static void the_same(void **state)
{
    struct run a, b;
    struct tl_compare c;
    char x[16], y[16];
    (void)state;
    make(&a, 0x10000, 2000, NULL);
    make(&b, 0x7000000, 2000, NULL); /* at another address */
    push(&a, x);
    push(&b, y);
    for (int calls = 0; calls < 2; calls++) {
        compare(&c, x, y, calls);
        assert_int_equal(c.total_hunks, 0);
        assert_int_equal(c.a_to, a.n);
        assert_int_equal(c.only_a + c.only_b, 0);
        for (size_t i = 0; i < c.n_functions; i++) {
            assert_int_equal(c.functions[i].self_a, c.functions[i].self_b);
            assert_int_equal(c.functions[i].calls_a, c.functions[i].calls_b);
        }
        assert_true(c.n_functions > 20);
        tl_compare_fini(&c);
    }
    free_run(&a);
    free_run(&b);
}

static void changes_are_found(void **state)
{
    enum { ROUNDS = 3000, EVERY = 100 };
    static uint8_t change[ROUNDS];
    struct run a, b;
    char x[16], y[16];
    size_t changes = 0;
    (void)state;
    for (unsigned i = EVERY / 2; i < ROUNDS; i += EVERY, changes++)
        change[i] = (uint8_t)(1 + changes % 3);
    make(&a, 0x10000, ROUNDS, NULL);
    make(&b, 0x40000, ROUNDS, change);
    push(&a, x);
    push(&b, y);
    struct tl_compare c;
    compare(&c, x, y, false);
    check_hunks(&c, &a, &b);
    assert_false(c.lost);
    assert_true(c.total_hunks >= changes && c.total_hunks <= 2 * changes);
    assert_true(c.only_a + c.only_b < (a.n + b.n) / 20);
    assert_true(c.n_stack_a > 0 && strcmp(c.stack_a[0], "function_0") == 0);
    /* The function that A never calls is in the list. */
    bool found = false;
    for (size_t i = 0; i < c.n_functions; i++)
        if (strcmp(c.functions[i].name, "function_29") == 0) {
            assert_int_equal(c.functions[i].calls_a, 0);
            assert_int_equal(c.functions[i].calls_b, 20);
            found = true;
        }
    assert_true(found);
    for (size_t i = 1; i < c.n_functions; i++)
        assert_true(llabs((long long)(c.functions[i - 1].self_a - c.functions[i - 1].self_b)) >=
                    llabs((long long)(c.functions[i].self_a - c.functions[i].self_b)));
    tl_compare_fini(&c);
    /* By calls: one hunk per change, the first at the first missing call. */
    compare(&c, x, y, true);
    assert_true(c.total_hunks >= changes && c.total_hunks <= 2 * changes);
    size_t k = 0;
    while (k < a.n_calls && a.calls[k].function == b.calls[k].function)
        k++;
    assert_int_equal(c.hunks[0].a_from, a.calls[k].at);
    assert_int_equal(c.hunks[0].b_from, b.calls[k].at);
    tl_compare_fini(&c);
    free_run(&a);
    free_run(&b);
}

/* The same holds for arbitrary changes, and for parts of the runs. */
static void any_changes(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        enum { ROUNDS = 600 };
        uint8_t change[ROUNDS];
        struct run a, b;
        char x[16], y[16];
        random_state = round + 1;
        for (unsigned i = 0; i < ROUNDS; i++)
            change[i] = below(3) == 0 ? (uint8_t)below(4) : 0;
        make(&a, 0x10000, ROUNDS, NULL);
        make(&b, 0x10000, round == 3 ? ROUNDS / 2 : ROUNDS, change);
        push(&a, x);
        push(&b, y);
        struct tl_compare c;
        compare(&c, x, y, false);
        check_hunks(&c, &a, &b);
        tl_compare_fini(&c);
        compare(&c, y, x, false);
        check_hunks(&c, &b, &a);
        tl_compare_fini(&c);
        const struct tl_compare_request same = {.a = {x, STREAM, 100, 5000},
                                                .b = {x, STREAM, 100, 5000}};
        assert_int_equal(tl_lake_compare(lake, &same, &c, NULL), TL_OK);
        assert_int_equal(c.total_hunks, 0);
        assert_int_equal(c.a_to, 5000);
        tl_compare_fini(&c);
        free_run(&a);
        free_run(&b);
    }
}

static void one_ends_early(void **state)
{
    struct run a, b;
    struct tl_compare c;
    char x[16], y[16];
    (void)state;
    make(&a, 0x10000, 900, NULL);
    make(&b, 0x10000, 500, NULL);
    push(&a, x);
    push(&b, y);
    compare(&c, x, y, false);
    assert_int_equal(c.total_hunks, 1);
    assert_int_equal(c.hunks[0].a_from, b.n);
    assert_int_equal(c.hunks[0].a_to, a.n);
    assert_int_equal(c.only_b, 0);
    assert_false(c.lost);
    tl_compare_fini(&c);
    const struct tl_compare_request bad = {.a = {x, STREAM, 5, 4}, .b = {x, STREAM, 0, 5}};
    assert_int_equal(tl_lake_compare(lake, &bad, &c, NULL), TL_USAGE);
    tl_compare_fini(&c);
    const struct tl_compare_request none = {.a = {x, "no", 0, 5}, .b = {x, STREAM, 0, 5}};
    assert_int_equal(tl_lake_compare(lake, &none, &c, NULL), TL_NOTFOUND);
    tl_compare_fini(&c);
    free_run(&a);
    free_run(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same),
        cmocka_unit_test(changes_are_found),
        cmocka_unit_test(any_changes),
        cmocka_unit_test(one_ends_early),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
