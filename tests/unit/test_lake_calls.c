/* SPDX-License-Identifier: MIT */
/* Details of calls, and call trees of ranges, compared with the truth of the generated trace. */
#define STREAM "stf.0"
#define INSNS  400000

#include "lake_analysis.h"
#include "made_calls.h"

#include "sim/small_elf.h"

static struct tl_backend *backend;
static struct tl_lake *lake;
static uint64_t *selfs;   /* own instructions of each call, indexed as core.calls */
static size_t *innermost; /* the call active at each instruction */

static char names[FUNCTIONS][16];

static void put_image(char hash[static 72])
{
    struct tl_sim_elf_symbol symbols[FUNCTIONS];
    uint8_t *const code = calloc(FUNCTIONS, 0x1000);
    struct tl_buf elf = {0};
    struct tl_image_row row;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        snprintf(names[i], sizeof names[i], "function_%u", i);
        symbols[i] = (struct tl_sim_elf_symbol){names[i], ENTRY(i), 0x1000};
    }
    const struct tl_sim_elf one = {.machine = EM_RISCV,
                                   .wide = true,
                                   .address = ENTRY(0),
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

static int by_place(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->depth < y->depth ? -1 : x->depth > y->depth;
}

static int set_up(void **state)
{
    struct capture c = {0};
    char hash[72];
    (void)state;
    make_trace();
    lake = open_memory_lake(&backend, 30000, 2);
    put_image(hash);
    c.bytes = core.stf;
    assert_int_equal(
        tl_buf_printf(&c.setup, "[trace]\nformat=stf\n[image program]\nfile=%s\n", hash), TL_OK);
    assert_int_equal(tl_buf_add(&c.setup, "", 1), TL_OK);
    push_sealed(lake, "t", &c, 1 << 20);
    capture_free(&c);
    qsort(core.calls, core.n_calls, sizeof *core.calls, by_place);
    innermost = calloc(core.insns, sizeof *innermost);
    selfs = calloc(core.n_calls, sizeof *selfs);
    for (size_t i = 0; i < core.n_calls; i++)
        for (uint64_t k = core.calls[i].from; k < core.calls[i].to; k++)
            innermost[k] = i;
    for (uint64_t k = 0; k < core.insns; k++)
        selfs[innermost[k]]++;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(core.calls);
    free(innermost);
    free(selfs);
    close_memory_lake(backend, lake);
    return 0;
}

/* ---- one call -------------------------------------------------------------------------------- */

static unsigned function_of(const struct call *call)
{
    return (unsigned)((call->pc - ENTRY(0)) / 0x1000);
}

/* The call that is active at an instruction, at a given depth. */
static size_t call_at(uint64_t insn, uint32_t depth)
{
    size_t i = innermost[insn];
    while (core.calls[i].depth > depth || core.calls[i].to <= insn)
        i--;
    assert_true(core.calls[i].depth == depth && core.calls[i].from <= insn);
    return i;
}

static void check_call(uint64_t insn, uint32_t depth)
{
    struct tl_call_info call;
    struct tl_fail fail = {0};
    const size_t i = call_at(insn, depth);
    const struct call *const truth = &core.calls[i];
    if (tl_lake_call(lake, "t", STREAM, insn, depth, &call, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_string_equal(call.name, names[function_of(truth)]);
    assert_int_equal(call.kind, depth == 0 ? TL_CALL_ROOT : TL_CALL_CALL);
    assert_int_equal(call.depth, depth);
    assert_int_equal(call.deepest, core.calls[innermost[insn]].depth);
    assert_int_equal(call.from, truth->from);
    if (call.to != truth->to)
        print_message("insn %llu depth %u of %s from %llu to %llu, found %llu\n",
                      (unsigned long long)insn, depth, call.name, (unsigned long long)truth->from,
                      (unsigned long long)truth->to, (unsigned long long)call.to);
    assert_int_equal(call.to, truth->to);
    assert_int_equal(call.ended, truth->to < core.insns);
    assert_int_equal(call.pc, truth->pc);
    assert_int_equal(call.self, selfs[i]);
    if (depth > 0) {
        const struct call *const caller = &core.calls[call_at(truth->from, depth - 1)];
        assert_string_equal(call.caller, names[function_of(caller)]);
        assert_int_equal(call.caller_from, caller->from);
    }
    uint64_t calls = 0, number = 0, total = 0, lowest = UINT64_MAX, highest = 0, longest = 0;
    uint64_t previous = UINT64_MAX, next = UINT64_MAX;
    for (size_t k = 0; k < core.n_calls; k++) {
        const struct call *const other = &core.calls[k];
        const uint64_t length = other->to - other->from;
        if (other->depth == 0 || function_of(other) != function_of(truth))
            continue;
        calls++;
        number += other->from <= truth->from;
        total += length;
        lowest = length < lowest ? length : lowest;
        if (length > highest) {
            highest = length;
            longest = other->from;
        }
        if (other->from < truth->from)
            previous = other->from;
        if (other->from > truth->from && next == UINT64_MAX)
            next = other->from;
    }
    assert_int_equal(call.calls, calls);
    assert_int_equal(call.finished, calls); /* all of them end before the trace does */
    assert_int_equal(call.number, depth > 0 ? number : 0);
    assert_int_equal(call.total, total);
    assert_int_equal(call.min, calls > 0 ? lowest : 0);
    assert_int_equal(call.max, highest);
    assert_int_equal(call.longest, longest);
    assert_int_equal(call.has_previous, previous != UINT64_MAX);
    assert_int_equal(call.has_next, next != UINT64_MAX);
    assert_true(!call.has_previous || call.previous == previous);
    assert_true(!call.has_next || call.next == next);
    tl_call_info_fini(&call);
}

static void calls_are_what_they_were(void **state)
{
    (void)state;
    core.random = 5;
    check_call(0, 0);
    check_call(core.insns - 1, 0);
    for (int round = 0; round < 150; round++) {
        const uint64_t insn = below(core.insns);
        const uint32_t deepest = core.calls[innermost[insn]].depth;
        check_call(insn, round % 3 == 0 ? deepest : (uint32_t)below(deepest + 1));
        struct tl_call_info call;
        assert_int_equal(tl_lake_call(lake, "t", STREAM, insn, TL_CALL_INNERMOST, &call, NULL),
                         TL_OK);
        assert_int_equal(call.depth, deepest);
        tl_call_info_fini(&call);
        assert_int_equal(tl_lake_call(lake, "t", STREAM, insn, deepest + 1, &call, NULL),
                         TL_NOTFOUND);
        tl_call_info_fini(&call);
    }
    struct tl_call_info call;
    assert_int_equal(tl_lake_call(lake, "t", STREAM, core.insns, 0, &call, NULL), TL_NOTFOUND);
    tl_call_info_fini(&call);
}

/* ---- a range --------------------------------------------------------------------------------- */

struct path {
    uint64_t key; /* of the sequence of functions */
    uint64_t self, total;
};

static uint64_t step_key(uint64_t key, unsigned function)
{
    return (key ^ (function + 1)) * 0x100000001b3u + 77;
}

/* The key of the path from the root to call `i`. */
static uint64_t path_key(size_t i)
{
    unsigned functions[DEEPEST + 1];
    const uint32_t depth = core.calls[i].depth;
    const uint64_t at = core.calls[i].from;
    for (uint32_t d = 0; d <= depth; d++)
        functions[d] = function_of(&core.calls[call_at(at, d)]);
    uint64_t key = 1;
    for (uint32_t d = 0; d <= depth; d++)
        key = step_key(key, functions[d]);
    return key;
}

static struct path *find_path(struct path *paths, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        if (paths[i].key == key)
            return &paths[i];
    return NULL;
}

/* Count the own instructions of each path in a range, one by one. */
static size_t true_paths(uint64_t from, uint64_t to, struct path *out, size_t highest)
{
    size_t n = 0;
    for (uint64_t k = from; k < to;) {
        const size_t i = innermost[k];
        uint64_t run = 0;
        for (; k < to && innermost[k] == i; k++)
            run++;
        const uint64_t key = path_key(i);
        struct path *path = find_path(out, n, key);
        if (!path) {
            assert_true(n < highest);
            path = &out[n++];
            *path = (struct path){.key = key};
        }
        path->self += run;
    }
    return n;
}

static unsigned number_of(const char *name)
{
    return (unsigned)strtoul(name + strlen("function_"), NULL, 10);
}

static void check_range(uint64_t from, uint64_t to)
{
    static struct path paths[20000];
    const size_t n = true_paths(from, to, paths, sizeof paths / sizeof *paths);
    const struct tl_profile_request request = {
        .trace = "t", .stream = STREAM, .from = from, .to = to, .nodes = 20000};
    struct tl_profile profile;
    struct tl_fail fail = {0};
    uint64_t keys[DEEPEST + 3] = {1}, self = 0;
    size_t found = 0;
    if (tl_lake_profile(lake, &request, &profile, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_false(profile.truncated);
    assert_int_equal(profile.insns, to - from);
    for (size_t i = 0; i < profile.n_nodes; i++) {
        const struct tl_profile_node *const node = &profile.nodes[i];
        keys[node->depth + 1] = step_key(keys[node->depth], number_of(node->name));
        const struct path *const path = find_path(paths, n, keys[node->depth + 1]);
        assert_int_equal(node->self, path ? path->self : 0);
        found += path != NULL;
        /* Children come after their parent, and their counts are parts of its own. */
        uint64_t children = 0;
        for (size_t k = i + 1; k < profile.n_nodes && profile.nodes[k].depth > node->depth; k++)
            children += profile.nodes[k].depth == node->depth + 1 ? profile.nodes[k].total : 0;
        assert_int_equal(node->total, node->self + children);
        self += node->self;
    }
    assert_int_equal(found, n);
    assert_int_equal(self, to - from);
    /* Functions, regardless of their callers. */
    for (size_t i = 0; i < profile.n_functions; i++) {
        const struct tl_profile_function *const f = &profile.functions[i];
        uint64_t own = 0, calls = 0;
        for (uint64_t k = from; k < to; k++)
            own += function_of(&core.calls[innermost[k]]) == number_of(f->name);
        for (size_t k = 0; k < core.n_calls; k++)
            calls += core.calls[k].depth > 0 && core.calls[k].from >= from &&
                     core.calls[k].from < to && function_of(&core.calls[k]) == number_of(f->name);
        assert_int_equal(f->self, own);
        assert_int_equal(f->calls, calls);
        assert_true(f->total >= f->self && f->total <= to - from);
    }
    tl_profile_fini(&profile);
}

static void ranges_have_their_trees(void **state)
{
    (void)state;
    core.random = 3;
    check_range(0, 50000);
    check_range(29999, 30001);
    check_range(12345, 12346);
    for (int round = 0; round < 6; round++) {
        const uint64_t from = below(core.insns - 70000);
        check_range(from, from + 1 + below(70000));
    }
    check_range(0, 50000); /* again, with the shards cached */
}

/* Bottom-up, the sums are the same: each function's own instructions, by caller. */
static void from_below(void **state)
{
    const struct tl_profile_request request = {
        .trace = "t", .stream = STREAM, .from = 1000, .to = 90000, .callers = true, .nodes = 20000};
    struct tl_profile profile;
    uint64_t own[FUNCTIONS] = {0}, sum = 0;
    (void)state;
    assert_int_equal(tl_lake_profile(lake, &request, &profile, NULL), TL_OK);
    for (uint64_t k = 1000; k < 90000; k++)
        own[function_of(&core.calls[innermost[k]])]++;
    for (size_t i = 0; i < profile.n_nodes; i++) {
        const struct tl_profile_node *const node = &profile.nodes[i];
        uint64_t callers = 0;
        for (size_t k = i + 1; k < profile.n_nodes && profile.nodes[k].depth > node->depth; k++)
            callers += profile.nodes[k].depth == node->depth + 1 ? profile.nodes[k].total : 0;
        assert_true(node->total >= callers); /* the smallest may be omitted */
        if (node->depth > 0)
            continue;
        assert_int_equal(node->total, own[number_of(node->name)]);
        sum += node->total;
    }
    assert_int_equal(sum, 89000);
    tl_profile_fini(&profile);
}

/* If there are many paths, the largest are returned. */
static void few_nodes(void **state)
{
    struct tl_profile all, few;
    struct tl_profile_request request = {.trace = "t", .to = UINT64_MAX, .nodes = 20000};
    (void)state;
    assert_int_equal(tl_lake_profile(lake, &request, &all, NULL), TL_OK);
    request.nodes = 100;
    assert_int_equal(tl_lake_profile(lake, &request, &few, NULL), TL_OK);
    assert_true(few.truncated);
    assert_int_equal(few.n_nodes, 100);
    assert_int_equal(few.insns, core.insns);
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < few.n_nodes; i++)
        lowest = few.nodes[i].total < lowest ? few.nodes[i].total : lowest;
    size_t larger = 0;
    for (size_t i = 0; i < all.n_nodes; i++)
        larger += all.nodes[i].total > lowest;
    assert_true(larger <= 100);
    tl_profile_fini(&all);
    tl_profile_fini(&few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_what_they_were),
        cmocka_unit_test(ranges_have_their_trees),
        cmocka_unit_test(from_below),
        cmocka_unit_test(few_nodes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
