/* SPDX-License-Identifier: MIT */
/*
 * Accesses to memory in STF of other producers are found by their address: exactly those that its
 * records tell, each at its instruction, in any range, direction and with any shards.
 */
#include "lake_find.h"
#include "lake_help.h"
#include "made_stf.h"
#include "stf/reader.h"

enum { INSNS = 20000, SHARD = 3000 };

struct access {
    uint64_t position, address;
    uint32_t bytes;
};

struct truth {
    struct access *p;
    size_t n, cap;
};

/* What the records tell, by a reader that knows nothing of shards. */
static void read_truth(struct tl_bytes stf, struct truth *out)
{
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    uint64_t position = 0;
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, stf);
    tl_stf_reader_finish(reader);
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK) {
        const bool bus = r.type == TL_STF_BUS_MASTER_ACCESS;
        position += tl_stf_is_marker(r.type);
        if (!bus && r.type != TL_STF_INST_MEM_ACCESS)
            continue;
        assert_int_equal(tl_grow(&out->p, &out->cap, out->n + 1, sizeof *out->p), TL_OK);
        const uint64_t address = bus ? r.bus.address : r.access.address;
        const uint32_t size = bus ? r.bus.size : r.access.size;
        out->p[out->n++] = (struct access){position, address, size == 8 && address % 8 ? 1 : size};
    }
    tl_stf_reader_free(reader);
    assert_int_equal(position, INSNS);
}

static void find(struct tl_lake *lake, const struct tl_find_request *request, struct tl_found *out)
{
    struct tl_fail fail = {0};
    if (tl_lake_find(lake, request, out, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* Compare with the truth: accesses to [from, to) by instructions [first, end). */
static size_t compare(struct tl_lake *lake, const struct truth *truth, uint64_t from, uint64_t to,
                      uint64_t first, uint64_t end, bool backward)
{
    char text[64];
    struct tl_found found;
    size_t n = 0;
    snprintf(text, sizeof text, "data:%llx:%llx", (unsigned long long)from, (unsigned long long)to);
    const struct tl_find_request request = {.trace = "t",
                                            .stream = "stf.0",
                                            .kind = TL_FIND_TEXT,
                                            .text = text,
                                            .from = first,
                                            .to = end,
                                            .backward = backward,
                                            .count = true,
                                            .limit = 100000};
    find(lake, &request, &found);
    for (size_t k = 0; k < truth->n; k++) {
        const struct access *const a = &truth->p[backward ? truth->n - 1 - k : k];
        const bool touched =
            a->address < to && (a->address >= from || from - a->address < a->bytes);
        if (!touched || a->position < first || a->position >= end)
            continue;
        char address[32];
        snprintf(address, sizeof address, " at 0x%llx,", (unsigned long long)a->address);
        assert_true(n < found.n);
        assert_int_equal(found.hits[n].at.insn, a->position);
        /* Those of one instruction come in any order when the nearest ones are last. */
        if (!backward)
            assert_non_null(strstr(found.hits[n].text, address));
        n++;
    }
    assert_int_equal(found.n, n);
    assert_int_equal(found.total, n);
    tl_found_fini(&found);
    return n;
}

static void found_where_they_are(void **state)
{
    (void)state;
    struct tl_backend *backend;
    struct tl_lake *lake = open_memory_lake(&backend, SHARD, 1);
    struct maker m = {.seed = 11};
    struct capture c = {0};
    struct tl_setup setup;
    struct truth truth = {0};
    begin_trace(&m, 0, false);
    put_trace(&m, INSNS);
    read_truth((struct tl_bytes){m.out.p, m.out.n}, &truth);
    assert_true(truth.n > INSNS / 4);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "stf", NULL), TL_OK);
    assert_int_equal(tl_setup_write(&setup, &c.setup), TL_OK);
    assert_int_equal(tl_buf_add(&c.setup, "", 1), TL_OK);
    tl_setup_fini(&setup);
    c.bytes = m.out;
    push_sealed(lake, "t", &c, 4000);
    const uint64_t half = UINT64_MAX / 512;
    for (int backward = 0; backward < 2; backward++) {
        assert_true(compare(lake, &truth, 0, half, 0, UINT64_MAX, backward) > truth.n / 8);
        assert_true(compare(lake, &truth, half, UINT64_MAX, 500, 12345, backward) > 0);
        for (size_t i = 0; i < truth.n; i += truth.n / 20) {
            const struct access *const a = &truth.p[i];
            const uint64_t last = a->address + a->bytes - 1;
            assert_true(compare(lake, &truth, a->address, a->address + 1, 0, UINT64_MAX, backward) >
                        0);
            assert_true(
                compare(lake, &truth, last, last + 1, a->position, a->position + 1, backward) > 0);
        }
    }
    free(truth.p);
    capture_free(&c);
    close_memory_lake(backend, lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_where_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
