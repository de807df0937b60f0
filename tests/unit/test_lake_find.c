/* SPDX-License-Identifier: MIT */
/* Searching in both directions, from any position, in one stream and in all, and counting, compared
 * with the flow text of the same streams, read line by line. */
#include "lake_find.h"
#include "lake_insns.h"
#include "lake_lanes.h"
#include "lake_tiles.h"
#include "sim_capture.h"

#include "query/opcodes.h"

#define STREAMS 2

/* Contents of a stream's text. */
struct truth {
    char name[32];
    struct tl_buf text;
    uint64_t *pc, *code;         /* of each instruction */
    uint64_t *exceptions, *gaps; /* positions */
    size_t n, n_exceptions, n_gaps, cap[4];
};

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct truth truths[STREAMS];

static void add(uint64_t **list, size_t *n, size_t *cap, uint64_t value)
{
    assert_int_equal(tl_grow(list, cap, *n + 1, sizeof **list), TL_OK);
    (*list)[(*n)++] = value;
}

static void read_truth(struct truth *t, const char *name)
{
    const struct tl_range_request request = {
        .trace = "t", .stream = name, .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    snprintf(t->name, sizeof t->name, "%s", name);
    fetch(lake, &request, &t->text);
    assert_int_equal(tl_buf_add(&t->text, "", 1), TL_OK);
    for (char *p = (char *)t->text.p, *end; *p; p = end + 1) {
        char *code = NULL;
        size_t n = t->n;
        end = strchr(p, '\n');
        if (*p == 'I' || *p == 'N')
            add(&t->pc, &t->n, &t->cap[0], strtoull(p + 2, &code, 16));
        if (code)
            add(&t->code, &n, &t->cap[1], *p == 'I' ? strtoull(code, NULL, 16) : 0);
        if (*p == 'X')
            add(&t->exceptions, &t->n_exceptions, &t->cap[2], t->n);
        if (*p == 'G')
            add(&t->gaps, &t->n_gaps, &t->cap[3], t->n);
    }
    assert_true(t->n > 80000 && t->n_exceptions > 10 && t->n_gaps > 2);
}

static int set_up(void **state)
{
    (void)state;
    struct capture c;
    const struct sim_options options = {
        .seed = 11, .insns = 120000, .cores = STREAMS, .image = true, .events = true};
    lake = open_memory_lake(&backend, 15000, 2);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 10000);
    capture_free(&c);
    read_truth(&truths[0], "cs.10");
    read_truth(&truths[1], "cs.11");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        tl_buf_fini(&truths[i].text);
        free(truths[i].pc);
        free(truths[i].code);
        free(truths[i].exceptions);
        free(truths[i].gaps);
    }
    close_memory_lake(backend, lake);
    return 0;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static struct tl_found find(const struct tl_find_request *request)
{
    struct tl_found found;
    struct tl_fail fail = {0};
    if (tl_lake_find(lake, request, &found, &fail) < 0)
        fail_msg("%s", fail.text);
    return found;
}

/* ---- one stream ------------------------------------------------------------------------------ */

/* Check a search whose hits in the whole stream are `list`, in ascending order: the hits in the
 * window, in the requested order, and the total count. */
static void check_found(const struct tl_find_request *request, const uint64_t *list, size_t n)
{
    struct tl_find_request counted = *request;
    counted.count = true;
    struct tl_found found = find(&counted);
    size_t k = 0, wanted = 0, total = 0, before = 0, distinct = 0;
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        const uint64_t at = list[request->backward ? n - 1 - i : i];
        const bool in = at >= request->from && at < request->to;
        total += in;
        if (!in || (request->near && (request->backward ? at >= request->at : at <= request->at)))
            continue;
        if (wanted >= request->limit && at != last)
            distinct++;
        else
            wanted++;
        if (distinct == 0) {
            assert_true(k < found.n);
            assert_int_equal(found.hits[k].at.insn, at);
            assert_string_equal(found.hits[k].stream, request->stream);
            k++;
        }
        last = at;
    }
    assert_int_equal(k, found.n);
    assert_int_equal(found.more, distinct > 0);
    assert_int_equal(found.total, total);
    /* Backward, the first hit is the last one at its position. */
    for (size_t i = 0; found.n > 0 && i < n; i++)
        before += list[i] >= request->from && list[i] < request->to &&
                  list[i] < found.hits[0].at.insn + request->backward;
    before -= request->backward && found.n > 0;
    assert_int_equal(found.before, before);
    tl_found_fini(&found);
}

/* Check several windows, positions and limits, in both directions. */
static void check_ways(struct tl_find_request request, const uint64_t *list, size_t n)
{
    static uint64_t random = 9;
    const struct truth *const t = &truths[request.stream[4] - '0'];
    for (int round = 0; round < 6; round++) {
        const uint64_t a = next_random(&random) % t->n, b = next_random(&random) % t->n;
        const bool all = round % 3 == 0;
        request.from = all ? 0 : a < b ? a : b;
        request.to = all ? UINT64_MAX : a < b ? b : a;
        request.near = round % 3 == 1 ? request.stream : NULL;
        request.at =
            n > 0 && round % 2 ? list[next_random(&random) % n] : next_random(&random) % t->n;
        request.limit = 1 + next_random(&random) % 40;
        for (int backward = 0; backward < 2; backward++) {
            request.backward = backward;
            check_found(&request, list, n);
        }
    }
}

static void addresses(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int round = 0; round < 8; round++) {
        const struct truth *const t = &truths[round & 1];
        const uint64_t pc = t->pc[next_random(&random) % t->n];
        uint64_t *list = NULL;
        size_t n = 0, cap = 0;
        for (size_t i = 0; i < t->n; i++)
            if (t->pc[i] >= pc && t->pc[i] < pc + 12)
                add(&list, &n, &cap, i);
        check_ways((struct tl_find_request){.trace = "t",
                                            .stream = t->name,
                                            .kind = TL_FIND_PC,
                                            .pc_from = pc,
                                            .pc_to = pc + 12},
                   list, n);
        free(list);
    }
}

static void events(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        struct tl_find_request request = {
            .trace = "t", .stream = truths[i].name, .kind = TL_FIND_EVENT, .text = "exception"};
        check_ways(request, truths[i].exceptions, truths[i].n_exceptions);
        request.text = "gap";
        check_ways(request, truths[i].gaps, truths[i].n_gaps);
        request.kind = TL_FIND_TEXT;
        check_ways(request, truths[i].gaps, truths[i].n_gaps);
    }
}

/* Entries into a function, in both directions and from any position. */
static void symbols(void **state)
{
    struct tl_functions functions;
    (void)state;
    assert_int_equal(tl_lake_functions(lake, "t", &functions, NULL), TL_OK);
    size_t entered = 0;
    for (size_t f = 0; f + 1 < functions.n; f += 7) {
        const struct truth *const t = &truths[f & 1];
        uint64_t *list = NULL;
        size_t n = 0, cap = 0;
        const uint64_t from = functions.p[f].pc, to = functions.p[f + 1].pc;
        const struct tl_find_request request = {
            .trace = "t", .stream = t->name, .kind = TL_FIND_SYMBOL, .text = functions.p[f].name};
        struct tl_find_request whole = request;
        whole.to = UINT64_MAX;
        whole.limit = 100000;
        struct tl_found found = find(&whole);
        for (size_t i = 0; i < found.n; i++) {
            const uint64_t at = found.hits[i].at.insn;
            assert_true(t->pc[at] >= from && t->pc[at] < to);
            assert_true(at == 0 || t->pc[at - 1] < from || t->pc[at - 1] >= to);
            add(&list, &n, &cap, at);
        }
        tl_found_fini(&found);
        entered += n;
        /* A range that begins inside a function finds it at its beginning, so these search the
         * whole stream. */
        for (int backward = 0; backward < 2; backward++) {
            whole.backward = backward;
            whole.limit = 30;
            check_found(&whole, list, n);
            whole.near = request.stream;
            whole.at = n > 0 ? list[n / 2] + 1 : 5;
            check_found(&whole, list, n);
            whole.near = NULL;
        }
        free(list);
    }
    assert_true(entered > 1000);
    tl_functions_fini(&functions);
}

static void encodings(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int round = 0; round < 8; round++) {
        const struct truth *const t = &truths[round & 1];
        const uint64_t code = t->code[next_random(&random) % t->n];
        const uint64_t mask = round & 2 ? 0xffffff00 : 0xffffffff;
        uint64_t *list = NULL;
        size_t n = 0, cap = 0;
        char text[24];
        if (code == 0)
            continue;
        snprintf(text, sizeof text, "%08llx", (unsigned long long)code);
        if (round & 2)
            memcpy(text + 6, "xx", 2);
        for (size_t i = 0; i < t->n; i++)
            if ((t->code[i] & mask) == (code & mask))
                add(&list, &n, &cap, i);
        check_ways(
            (struct tl_find_request){
                .trace = "t", .stream = t->name, .kind = TL_FIND_OPCODE, .text = text},
            list, n);
        free(list);
    }
}

struct mnemonics {
    uint64_t *list;
    size_t n, cap;
    const char *word;
    bool disassembled;
};

static int collect(void *context, const struct tl_insn_row *row)
{
    struct mnemonics *const m = context;
    const size_t n = strlen(m->word);
    m->disassembled |= row->text[0] && row->text[0] != '(';
    if (strncmp(row->text, m->word, n) == 0 && (row->text[n] == ' ' || row->text[n] == '\0'))
        add(&m->list, &m->n, &m->cap, row->insn);
    return TL_OK;
}

static void mnemonics(void **state)
{
    static const char *const words[] = {"bl", "ret", "eret", "wfi", "sdiv"};
    (void)state;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const struct truth *const t = &truths[0];
        struct mnemonics m = {.word = words[w]};
        for (uint64_t at = 0; at < t->n; at += 4096)
            assert_int_equal(tl_lake_insns(lake, "t", t->name, at, 4096, collect, &m, NULL), TL_OK);
        if (!m.disassembled) {
            free(m.list);
            skip();
        }
        check_ways(
            (struct tl_find_request){
                .trace = "t", .stream = t->name, .kind = TL_FIND_MNEMONIC, .text = words[w]},
            m.list, m.n);
        print_message("%s: %zu\n", words[w], m.n);
        free(m.list);
    }
}

/* A call begins a slice, and every call is found. */
static void calls(void **state)
{
    (void)state;
    struct tl_functions functions;
    size_t all = 0;
    assert_int_equal(tl_lake_functions(lake, "t", &functions, NULL), TL_OK);
    for (size_t f = 0; f < functions.n; f += 5) {
        const struct truth *const t = &truths[f & 1];
        uint64_t *list = NULL;
        size_t n = 0, cap = 0;
        for (uint64_t at = 0; at < t->n; at += 2000) {
            struct tl_slices slices;
            const struct tl_slices_request wanted = {
                .trace = "t", .stream = t->name, .from = at, .to = at + 2000};
            assert_int_equal(tl_lake_slices(lake, &wanted, &slices, NULL), TL_OK);
            assert_false(slices.truncated);
            for (size_t i = 0; i < slices.n; i++)
                if (strcmp(slices.p[i].name, functions.p[f].name) == 0 && slices.p[i].from >= at)
                    add(&list, &n, &cap, slices.p[i].from);
            tl_slices_fini(&slices);
        }
        const struct tl_find_request request = {.trace = "t",
                                                .stream = t->name,
                                                .kind = TL_FIND_CALL,
                                                .to = UINT64_MAX,
                                                .limit = 100000,
                                                .text = functions.p[f].name};
        struct tl_found found = find(&request);
        /* Slices also begin where the flow resumes after a gap, which is not a call. */
        for (size_t i = 0; i < found.n; i++) {
            const uint64_t at = found.hits[i].at.insn;
            bool is_slice = false;
            for (size_t k = 0; k < n && !is_slice; k++)
                is_slice = list[k] == at;
            if (!is_slice)
                fail_msg("%s: no slice begins at %llu", request.text, (unsigned long long)at);
            assert_true(strncmp(found.hits[i].text, request.text, strlen(request.text)) == 0);
        }
        /* Tasks are switched to, not called; few other slices begin after a gap. */
        if (strstr(request.text, "_main"))
            assert_int_equal(found.n, 0);
        else
            assert_true(found.n <= n && n <= found.n + found.n / 4);
        all += found.n;
        uint64_t *hits = calloc(found.n + 1, sizeof *hits);
        for (size_t i = 0; i < found.n; i++)
            hits[i] = found.hits[i].at.insn;
        check_ways(request, hits, found.n);
        free(hits);
        free(list);
        tl_found_fini(&found);
    }
    assert_true(all > 1000);
    tl_functions_fini(&functions);
}

/* Times never decrease, whichever shard contains a position and the gaps near it. */
static void times_rise(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        struct tl_position at, last = {0};
        for (uint64_t border = 15000; border < truths[i].n; border += 15000)
            for (uint64_t p = border - 30; p < border + 30; p++) {
                assert_int_equal(
                    tl_lake_locate(lake, "t", truths[i].name, TL_UNIT_INSN, p, &at, NULL), TL_OK);
                assert_true(at.time >= last.time);
                last = at;
            }
    }
}

/* ---- all streams ----------------------------------------------------------------------------- */

static bool in_order(const struct tl_hit *a, const struct tl_hit *b)
{
    if (a->at.time != b->at.time)
        return a->at.time < b->at.time;
    return strcmp(a->stream, b->stream) != 0 || a->at.insn <= b->at.insn;
}

/* Check that the pages after a first request contain all hits, each once. */
static void check_turning(struct tl_find_request request, const struct tl_found *all)
{
    char near[32];
    size_t k = 0;
    request.count = true;
    for (bool over = false; !over;) {
        struct tl_found page = find(&request);
        assert_int_equal(page.total, all->n);
        assert_true(page.n <= request.limit + TL_FIND_TOGETHER);
        if (page.n > 0)
            assert_int_equal(page.before, request.backward ? all->n - 1 - k : k);
        for (size_t i = 0; i < page.n; i++, k++) {
            assert_true(k < all->n);
            const struct tl_hit *const hit = &all->hits[request.backward ? all->n - 1 - k : k];
            assert_int_equal(page.hits[i].at.insn, hit->at.insn);
            assert_string_equal(page.hits[i].stream, hit->stream);
            assert_string_equal(page.hits[i].text, hit->text);
            assert_int_equal(page.hits[i].pc, hit->pc);
        }
        assert_int_equal(page.more, k < all->n);
        over = page.n == 0;
        if (!over) {
            const struct tl_hit *const last = &page.hits[page.n - 1];
            snprintf(near, sizeof near, "%s", last->stream);
            request.near = near;
            request.at = last->at.insn;
            request.skip = last->nth;
        }
        tl_found_fini(&page);
    }
    assert_int_equal(k, all->n);
}

/* Check that all hits, page by page, are the hits of all streams in a single order. */
static void check_pages(const char *text, bool backward)
{
    struct tl_find_request request = {
        .trace = "t", .kind = TL_FIND_TEXT, .text = text, .limit = 100000};
    struct tl_found all = find(&request);
    size_t sum = 0;
    for (size_t i = 0; i < STREAMS; i++) {
        struct tl_find_request one = request;
        one.stream = truths[i].name;
        one.to = UINT64_MAX;
        struct tl_found found = find(&one);
        sum += found.n;
        tl_found_fini(&found);
    }
    assert_int_equal(all.n, sum);
    assert_true(sum > 5);
    for (size_t i = 1; i < all.n; i++) {
        assert_true(all.hits[i].at.has_time);
        if (!in_order(&all.hits[i - 1], &all.hits[i]))
            fail_msg("%s %llu at %llu behind %s %llu at %llu", all.hits[i].stream,
                     (unsigned long long)all.hits[i].at.insn,
                     (unsigned long long)all.hits[i].at.time, all.hits[i - 1].stream,
                     (unsigned long long)all.hits[i - 1].at.insn,
                     (unsigned long long)all.hits[i - 1].at.time);
    }
    request.backward = backward;
    request.limit = 7 + all.n / 16;
    check_turning(request, &all);
    tl_found_fini(&all);
}

/* Without an image no instruction is known, so all hits precede instruction 0; they are still
 * delivered in pages. */
static void one_position(void **state)
{
    (void)state;
    struct capture c;
    const struct sim_options options = {
        .seed = 12, .insns = 200000, .cores = STREAMS, .events = true};
    sim_capture(lake, &options, &c);
    push_sealed(lake, "bare", &c, 10000);
    capture_free(&c);
    for (size_t i = 0; i <= STREAMS; i++) {
        struct tl_find_request request = {.trace = "bare",
                                          .stream = i < STREAMS ? truths[i].name : NULL,
                                          .kind = TL_FIND_EVENT,
                                          .text = "branch,unknown,exception,gap,event,context",
                                          .to = UINT64_MAX,
                                          .limit = 100000};
        struct tl_found all = find(&request);
        assert_true(all.n > 2000 && !all.more);
        for (size_t k = 0; k < all.n; k++)
            assert_int_equal(all.hits[k].at.insn, 0);
        for (int backward = 0; backward < 2; backward++) {
            request.backward = backward;
            request.limit = 100;
            check_turning(request, &all);
            request.limit = 1000;
            check_turning(request, &all);
            /* There are no further positions. */
            struct tl_find_request beside = request;
            beside.near = all.hits[backward ? 0 : all.n - 1].stream;
            struct tl_found none = find(&beside);
            assert_int_equal(none.n, 0);
            tl_found_fini(&none);
        }
        tl_found_fini(&all);
    }
}

static size_t hits_of(const char *text)
{
    const struct tl_find_request request = {
        .trace = "t", .kind = TL_FIND_EVENT, .text = text, .limit = 100000};
    struct tl_found found = find(&request);
    const size_t n = found.n;
    tl_found_fini(&found);
    return n;
}

static void kinds_add_up(void **state)
{
    (void)state;
    assert_int_equal(hits_of("gap,exception,trace-on"),
                     hits_of("gap") + hits_of("exception") + hits_of("trace-on"));
    assert_int_equal(hits_of("gap,exception"), hits_of("exception,gap,exception"));
}

static void all_streams(void **state)
{
    (void)state;
    check_pages("gap", false);
    check_pages("gap", true);
    check_pages("exception", false);
    check_pages("exception", true);
    check_pages("event:exception,gap,trace-on", false);
    check_pages("event:gap,exception", true);
    check_pages("opcode:d65f03c0", true);
}

/* ---- queries as users write them ------------------------------------------------------------- */

static void texts(void **state)
{
    static const struct {
        const char *text;
        enum tl_find_kind kind;
    } good[] = {
        {"0x400000", TL_FIND_PC},
        {"400000", TL_FIND_PC},
        {"0x400000:0x400010", TL_FIND_PC},
        {"400000-400010", TL_FIND_PC},
        {"gap", TL_FIND_EVENT},
        {"overflow", TL_FIND_EVENT},
        {"op:ldr*", TL_FIND_MNEMONIC},
        {"opcode:0xd65f03c0", TL_FIND_OPCODE},
        {"event:mode", TL_FIND_EVENT},
        {"event:mode,gap", TL_FIND_EVENT},
        {"cbnz", TL_FIND_MNEMONIC},
    };
    static const struct {
        const char *text;
        int result;
    } bad[] = {
        {"", TL_USAGE},
        {"event:nothing", TL_USAGE},
        {"event:gap,", TL_USAGE},
        {"event:gap,overflow", TL_USAGE},
        {"opcode:12345", TL_USAGE},
        {"opcode:", TL_USAGE},
        {"call:no such thing", TL_NOTFOUND},
        {"op:", TL_USAGE},
        {"symbol:x y", TL_NOTFOUND},
        {"+++", TL_USAGE},
        {"0x10:0x8", TL_USAGE},
    };
    struct tl_functions functions;
    struct tl_fail fail = {0};
    struct tl_found found;
    (void)state;
    struct tl_find_request request = {
        .trace = "t", .stream = "cs.10", .kind = TL_FIND_TEXT, .to = UINT64_MAX, .limit = 1};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        request.text = good[i].text;
        const int r = tl_lake_find(lake, &request, &found, &fail);
        if (r != TL_UNSUPPORTED && (r < 0 || found.kind != good[i].kind))
            fail_msg("%s: %d, kind %d: %s", good[i].text, r, (int)found.kind, fail.text);
        tl_found_fini(&found);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        request.text = bad[i].text;
        const int r = tl_lake_find(lake, &request, &found, &fail);
        if (r != bad[i].result)
            fail_msg("\"%s\": %d", bad[i].text, r);
        assert_true(fail.text[0] != '\0');
        tl_found_fini(&found);
    }
    /* A function, a part of its name in another case, and an address inside it. */
    assert_int_equal(tl_lake_functions(lake, "t", &functions, NULL), TL_OK);
    const struct tl_function *const f = &functions.p[3];
    char text[96];
    request.text = f->name;
    found = find(&request);
    assert_int_equal(found.kind, TL_FIND_CALL);
    tl_found_fini(&found);
    snprintf(text, sizeof text, "%.5s", f->name);
    for (char *p = text; *p; p++)
        *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
    request.text = text;
    found = find(&request);
    assert_int_equal(found.kind, TL_FIND_CALL);
    tl_found_fini(&found);
    snprintf(text, sizeof text, "%s+0x8", f->name);
    found = find(&request);
    assert_int_equal(found.kind, TL_FIND_PC);
    assert_true(found.n == 0 || found.hits[0].pc == f->pc + 8);
    tl_found_fini(&found);
    tl_functions_fini(&functions);
    request.text = "gap";
    request.near = "cs.11";
    assert_int_equal(tl_lake_find(lake, &request, &found, &fail), TL_NOTFOUND);
    tl_found_fini(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),    cmocka_unit_test(events),
        cmocka_unit_test(symbols),      cmocka_unit_test(encodings),
        cmocka_unit_test(mnemonics),    cmocka_unit_test(calls),
        cmocka_unit_test(times_rise),   cmocka_unit_test(all_streams),
        cmocka_unit_test(kinds_add_up), cmocka_unit_test(texts),
        cmocka_unit_test(one_position),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
