/* SPDX-License-Identifier: MIT */
/* Instructions: the same as when reading record by record, for any chunking; seeking; groups. */
#include "stf/operands.h"
#include "test_stf_util.h"

static const uint8_t mode_words[4][8] = {{0}, {1}, {2}, {3}};

/* Groups of all sorts, `n` instructions; PCs jump, modes and processes change. */
static void put_trace(struct tl_buf *out, unsigned n, uint64_t *seed)
{
    put_header(out);
    for (unsigned i = 0; i < n; i++) {
        const uint64_t dice = rng_next(seed);
        if (dice % 37 == 0)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_PROCESS_ID_EXT,
                                                    .process = {i, i + 1, i + 2}});
        if (dice % 41 == 0)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_FORCE_PC,
                                                    .pc = rng_next(seed) & 0xfffffe});
        if (dice % 5 == 0)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET,
                                                    .target = rng_next(seed) & 0xfffffe});
        if (dice % 3 == 0)
            put_record(out, &(struct tl_stf_record){
                                .type = TL_STF_INST_REG,
                                .reg = {(uint16_t)(dice % 32), 0x21, {mode_words[1], 8}}});
        for (uint64_t k = dice >> 20 & 3; k > 1; k--) {
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                                    .access = {dice, 8, 0, TL_STF_READ}});
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = dice});
        }
        if (dice % 43 == 0)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_COMMENT,
                                                    .text = text_bytes("a comment")});
        if (dice % 47 == 0) {
            put_record(out, &(struct tl_stf_record){.type = TL_STF_EVENT,
                                                    .event = {TL_STF_EVENT_MODE_CHANGE,
                                                              {mode_words[dice >> 32 & 3], 8}}});
            if (dice >> 40 & 1)
                put_record(out, &(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET,
                                                        .target = rng_next(seed) & 0xfffffe});
        }
        if (dice >> 50 & 1)
            put_insn(out, (uint32_t)dice);
        else
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = (uint16_t)dice});
    }
}

struct expected {
    uint64_t pc;
    uint64_t next;
    uint32_t opcode;
    uint32_t records; /* in its group */
    uint32_t tid;
    uint8_t mode;
    uint8_t size;
};

/* The expected result, by reading record by record. */
static size_t expect(struct tl_bytes bytes, struct expected *out)
{
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    struct tl_stf_pc pc = {0};
    size_t n = 0;
    uint32_t records = 0, tid = 0;
    uint8_t mode = TL_STF_MODE_UNKNOWN, next_mode = mode;
    bool header = true;
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes);
    tl_stf_reader_finish(reader);
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK) {
        const uint64_t at = tl_stf_pc_add(&pc, &r);
        records += !header;
        if (r.type == TL_STF_PROCESS_ID_EXT)
            tid = r.process.tid;
        if (r.type == TL_STF_FORCE_PC && !header)
            mode = next_mode;
        if (r.type == TL_STF_EVENT && r.event.number == TL_STF_EVENT_MODE_CHANGE) {
            next_mode = (uint8_t)tl_stf_word(r.event.fields, 0);
            mode = n == 0 ? next_mode : mode;
        }
        if (tl_stf_is_marker(r.type)) {
            out[n++] = (struct expected){
                at, pc.next, r.opcode, records, tid, mode, r.type == TL_STF_INST_32 ? 4 : 2};
            records = 0;
            mode = next_mode;
        }
        header &= r.type != TL_STF_END_HEADER;
    }
    tl_stf_reader_free(reader);
    return n;
}

static void check_one(const struct tl_stf_insns *s, const struct tl_stf_insn *got,
                      const struct expected *want, bool with_state)
{
    assert_int_equal(got->pc, want->pc);
    assert_int_equal(got->opcode, want->opcode);
    assert_int_equal(got->size, want->size);
    assert_int_equal(tl_stf_insn_next(s, got), want->next);
    if (with_state) {
        assert_int_equal(got->mode, want->mode);
        assert_int_equal(tl_stf_insns_state(s)->tid, want->tid);
    }
    struct tl_stf_group group = tl_stf_insn_group(s, got);
    struct tl_stf_record r = {.type = 0};
    uint32_t records = 0;
    uint8_t flags = 0;
    while (tl_stf_group_next(&group, &r) == TL_OK) {
        records++;
        flags |= r.type == TL_STF_FORCE_PC ? TL_STF_FORCED : 0;
        flags |= r.type == TL_STF_INST_MEM_ACCESS ? TL_STF_MEMORY : 0;
        flags |= r.type == TL_STF_EVENT ? TL_STF_EVENTS : 0;
        flags |=
            r.type == TL_STF_INST_PC_TARGET || r.type == TL_STF_EVENT_PC_TARGET ? TL_STF_TAKEN : 0;
        flags |=
            r.type == TL_STF_INST_REG || r.type == TL_STF_COMMENT || r.type == TL_STF_PROCESS_ID_EXT
                ? TL_STF_OTHERS
                : 0;
    }
    assert_int_equal(records, want->records);
    assert_int_equal(got->flags, flags);
    assert_int_equal(r.opcode, want->opcode);
}

static void test_like_records(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("like_records");
    static struct expected want[3000];
    static const size_t pieces_of[] = {1, 3, 17, 64, 200, 5000, 1 << 20};
    for (size_t p = 0; p < sizeof pieces_of / sizeof *pieces_of; p++) {
        struct tl_buf bytes = {0};
        put_trace(&bytes, 2000, &seed);
        const size_t n = expect(bytes_of(&bytes), want);
        assert_int_equal(n, 2000);
        struct pieces pieces = {bytes_of(&bytes), pieces_of[p], rng_next(&seed), {0}};
        const struct tl_stf_source source = {&pieces, pieces_next, NULL};
        struct tl_stf_insns *s;
        assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
        size_t at = 0;
        for (;;) {
            struct tl_stf_insn batch[64];
            const size_t cap = 1 + rng_next(&seed) % 64;
            assert_int_equal(tl_stf_insns_at(s), at);
            const int got = tl_stf_insns_read(s, batch, cap, NULL);
            if (got == TL_EOF)
                break;
            assert_true(got > 0 && (size_t)got <= cap);
            for (int i = 0; i < got; i++)
                check_one(s, &batch[i], &want[at++], true);
        }
        assert_int_equal(at, n);
        assert_int_equal(tl_stf_insns_header(s)->pc, 0x1000);
        tl_stf_insns_free(s);
        tl_buf_fini(&pieces.copy);
        tl_buf_fini(&bytes);
    }
}

static void test_pushed(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("pushed");
    static struct expected want[3000];
    struct tl_buf bytes = {0};
    put_trace(&bytes, 1000, &seed);
    const size_t n = expect(bytes_of(&bytes), want);
    struct tl_stf_insns *s;
    struct tl_stf_insn batch[16];
    assert_int_equal(tl_stf_insns_new(&s), TL_OK);
    size_t at = 0;
    for (size_t i = 0; i <= bytes.n;) {
        const int got = tl_stf_insns_read(s, batch, 16, NULL);
        if (got == TL_EOF)
            break;
        if (got == TL_AGAIN) {
            size_t step = 1 + rng_next(&seed) % 100;
            step = step < bytes.n - i ? step : bytes.n - i;
            if (step == 0)
                tl_stf_insns_finish(s);
            else
                tl_stf_insns_push(s, (struct tl_bytes){bytes.p + i, step});
            i += step;
            continue;
        }
        assert_true(got > 0);
        for (int k = 0; k < got; k++)
            check_one(s, &batch[k], &want[at++], true);
    }
    assert_int_equal(at, n);
    tl_stf_insns_free(s);
    tl_buf_fini(&bytes);
}

/* Cut at any byte, the trace gives whole instructions only, then the correct error. */
static void test_never_invents(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("never_invents");
    static struct expected want[3000];
    struct tl_buf bytes = {0};
    put_trace(&bytes, 60, &seed);
    expect(bytes_of(&bytes), want);
    for (size_t cut = 4; cut <= bytes.n; cut++) {
        uint8_t *const exact = malloc(cut);
        assert_non_null(exact);
        memcpy(exact, bytes.p, cut);
        struct tl_stf_insns *s;
        struct tl_stf_insn batch[64];
        struct tl_fail fail = {0};
        assert_int_equal(tl_stf_insns_new(&s), TL_OK);
        tl_stf_insns_push(s, (struct tl_bytes){exact, cut});
        tl_stf_insns_finish(s);
        size_t at = 0;
        int got;
        while ((got = tl_stf_insns_read(s, batch, 64, &fail)) > 0) {
            for (int i = 0; i < got; i++)
                check_one(s, &batch[i], &want[at++], true);
        }
        assert_true(got == TL_EOF || got == TL_BAD);
        if (got == TL_BAD)
            assert_true(fail.offset <= cut);
        tl_stf_insns_free(s);
        free(exact);
    }
    tl_buf_fini(&bytes);
}

static void make_zstf(struct tl_bytes plain, uint64_t markers, struct tl_buf *file)
{
    const struct tl_stf_out_options options = {
        .format = TL_STF_FILE_ZSTF, .markers = markers, .unchecked = true};
    const struct tl_stf_sink sink = {file, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, plain);
    tl_stf_reader_finish(reader);
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK)
        assert_int_equal(tl_stf_out_put(out, &r, NULL), TL_OK);
    assert_int_equal(tl_stf_out_finish(out, NULL), TL_OK);
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
}

static void test_seek(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("seek");
    static struct expected want[3000];
    static const uint64_t chunks[] = {1, 7, 100, 1000, 5000};
    for (size_t c = 0; c < 5; c++) {
        struct tl_buf bytes = {0}, file = {0};
        put_trace(&bytes, 1000, &seed);
        const size_t n = expect(bytes_of(&bytes), want);
        make_zstf(bytes_of(&bytes), chunks[c], &file);
        struct tl_stf_file *f;
        struct tl_stf_insns *s;
        assert_int_equal(tl_stf_file_bytes(&f, bytes_of(&file), NULL), TL_OK);
        const struct tl_stf_source source = tl_stf_file_source(f);
        assert_non_null(source.seek);
        assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
        for (int round = 0; round < 100; round++) {
            const uint64_t at = rng_next(&seed) % n;
            struct tl_stf_insn batch[20];
            assert_int_equal(tl_stf_insns_seek(s, at, NULL), TL_OK);
            assert_int_equal(tl_stf_insns_at(s), at);
            const int got = tl_stf_insns_read(s, batch, 20, NULL);
            assert_true(got > 0);
            for (int i = 0; i < got; i++)
                check_one(s, &batch[i], &want[at + (uint64_t)i], false);
        }
        struct tl_stf_insn one;
        assert_int_equal(
            tl_stf_insns_seek(s, n, NULL) == TL_OK ? tl_stf_insns_read(s, &one, 1, NULL) : TL_EOF,
            TL_EOF);
        assert_int_equal(tl_stf_insns_seek(s, n + 1, NULL), TL_NOTFOUND);
        assert_int_equal(tl_stf_insns_seek(s, UINT64_MAX, NULL), TL_NOTFOUND);
        assert_int_equal(tl_stf_insns_seek(s, 0, NULL), TL_OK);
        assert_int_equal(tl_stf_insns_read(s, &one, 1, NULL), 1);
        check_one(s, &one, &want[0], true);
        tl_stf_insns_free(s);
        tl_stf_file_close(f);
        tl_buf_fini(&bytes);
        tl_buf_fini(&file);
    }
}

/* Without an index, seeking works only forward. */
static void test_seek_plain(void **state)
{
    (void)state;
    uint64_t seed = 3;
    static struct expected want[3000];
    struct tl_buf bytes = {0};
    put_trace(&bytes, 1000, &seed);
    expect(bytes_of(&bytes), want);
    struct tl_stf_file *f;
    struct tl_stf_insns *s;
    struct tl_stf_insn one;
    assert_int_equal(tl_stf_file_bytes(&f, bytes_of(&bytes), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
    assert_int_equal(tl_stf_insns_seek(s, 700, NULL), TL_OK);
    assert_int_equal(tl_stf_insns_read(s, &one, 1, NULL), 1);
    check_one(s, &one, &want[700], true);
    assert_int_equal(tl_stf_insns_seek(s, 5, NULL), TL_UNSUPPORTED);
    assert_int_equal(tl_stf_insns_seek(s, 1001, NULL), TL_NOTFOUND);
    tl_stf_insns_free(s);
    tl_stf_file_close(f);
    tl_buf_fini(&bytes);
}

static int read_all(struct tl_bytes bytes, struct tl_fail *fail, uint64_t *count)
{
    struct tl_stf_insns *s;
    struct tl_stf_insn batch[32];
    int got;
    *count = 0;
    assert_int_equal(tl_stf_insns_new(&s), TL_OK);
    tl_stf_insns_push(s, bytes);
    tl_stf_insns_finish(s);
    while ((got = tl_stf_insns_read(s, batch, 32, fail)) > 0)
        *count += (uint64_t)got;
    tl_stf_insns_free(s);
    return got;
}

/* Without a FORCE_PC there is no address and reading fails; one after the header suffices. */
static void test_no_address(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct tl_fail fail;
    uint64_t count;
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_IDENTIFIER});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_VERSION, .version = {1, 3}});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_END_HEADER});
    const size_t header = bytes.n;
    put_insn(&bytes, 1);
    assert_int_equal(read_all(bytes_of(&bytes), &fail, &count), TL_BAD);
    assert_int_equal(fail.offset, header);
    assert_int_equal(count, 0);
    bytes.n = header;
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = 0x10});
    put_insn(&bytes, 1);
    assert_int_equal(read_all(bytes_of(&bytes), &fail, &count), TL_EOF);
    assert_int_equal(count, 1);
    tl_buf_fini(&bytes);
}

/*
 * A header without END_HEADER that is followed by the end mark or a transaction has no instruction.
 */
static void test_header_ended_by_no_instruction(void **state)
{
    (void)state;
    static const uint8_t channel_e[9] = {5};
    const struct tl_stf_record ends[] = {
        {.type = TL_STF_RESERVE_END},
        {.type = TL_STF_TRANSACTION, .transaction.data = {channel_e, 9}}};
    for (size_t i = 0; i < 2; i++) {
        struct tl_buf bytes = {0};
        struct tl_fail fail;
        uint64_t count;
        put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_IDENTIFIER});
        put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_VERSION});
        put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = 0x10});
        put_record(&bytes, &ends[i]);
        assert_int_equal(read_all(bytes_of(&bytes), &fail, &count), TL_EOF);
        assert_int_equal(count, 0);
        tl_buf_fini(&bytes);
    }
}

static void test_transactions_are_refused(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct tl_fail fail;
    uint64_t count;
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_IDENTIFIER});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_VERSION});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_PROTOCOL_ID, .protocol = 1});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_END_HEADER});
    assert_int_equal(read_all(bytes_of(&bytes), &fail, &count), TL_UNSUPPORTED);
    tl_buf_fini(&bytes);
}

static void test_end_mark_and_trailing_records(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct tl_fail fail;
    uint64_t count;
    put_header(&bytes);
    put_insn(&bytes, 1);
    put_insn(&bytes, 2);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_COMMENT,
                                               .text = text_bytes("behind the last")});
    assert_int_equal(read_all(bytes_of(&bytes), &fail, &count), TL_EOF);
    assert_int_equal(count, 2);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_RESERVE_END});
    assert_int_equal(tl_buf_add(&bytes, "\0\0\0", 3), TL_OK);
    assert_int_equal(read_all(bytes_of(&bytes), &fail, &count), TL_EOF);
    assert_int_equal(count, 2);
    tl_buf_fini(&bytes);
}

/* A group without end must not fill the memory; its effects on the state still count. */
static void test_endless_group(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    put_header(&bytes);
    while (bytes.n < 3u * TL_STF_GROUP_MAX) {
        put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = 0x7000});
        put_record(&bytes,
                   &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = 0x8000});
    }
    put_insn(&bytes, 5);
    put_insn(&bytes, 6);
    struct pieces pieces = {bytes_of(&bytes), 100000, 1, {0}};
    const struct tl_stf_source source = {&pieces, pieces_next, NULL};
    struct tl_stf_insns *s;
    struct tl_stf_insn two[2];
    assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
    assert_int_equal(tl_stf_insns_read(s, &two[0], 1, NULL), 1);
    assert_true(two[0].flags & TL_STF_HEADLESS);
    assert_int_equal(two[0].pc, 0x7000);
    assert_true(two[0].group_size <= TL_STF_GROUP_MAX + 100000);
    assert_int_equal(tl_stf_insns_read(s, &two[1], 1, NULL), 1);
    assert_int_equal(two[1].pc, 0x8000);
    tl_stf_insns_free(s);
    tl_buf_fini(&pieces.copy);
    tl_buf_fini(&bytes);
}

/* Write one record of a random kind that a group can have, including incomplete combinations. */
static void put_any_record(struct tl_buf *out, uint64_t dice)
{
    static const uint8_t words[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct tl_stf_record r = {.type = TL_STF_INST_MEM_ACCESS, .access = {dice, 8, 3, 1}};
    switch (dice % 9) {
    case 0:
    case 1:
        break;
    case 2:
    case 3:
        r = (struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = dice};
        break;
    case 4:
        r = (struct tl_stf_record){.type = TL_STF_INST_REG,
                                   .reg = {(uint16_t)(dice >> 8), 0x31, {words, 8}}};
        break;
    case 5: /* a vector of one word, without VLEN_CONFIG */
        r = (struct tl_stf_record){.type = TL_STF_INST_REG, .reg = {4, 0x23, {words, 8}}};
        break;
    case 6:
        r = (struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = dice};
        break;
    case 7:
        r = (struct tl_stf_record){.type = TL_STF_BUS_MASTER_ACCESS, .bus = {dice, 8, 1, 2, 3, 1}};
        break;
    default:
        r = (struct tl_stf_record){.type = TL_STF_EVENT, .event = {2, {words, 16}}};
        break;
    }
    put_record(out, &r);
}

/* The next access of the core or of a bus master, record by record. */
static int plain_access(struct tl_stf_group *group, struct tl_stf_access *a)
{
    struct tl_stf_record r;
    int result;
    while ((result = tl_stf_group_next(group, &r)) == TL_OK) {
        const bool bus = r.type == TL_STF_BUS_MASTER_ACCESS;
        if (!bus && r.type != TL_STF_INST_MEM_ACCESS)
            continue;
        *a = bus ? (struct tl_stf_access){r.bus.address, r.bus.size,  r.bus.type, true,
                                          r.bus.master,  r.bus.index, r.bus.attr}
                 : (struct tl_stf_access){.address = r.access.address,
                                          .size = r.access.size,
                                          .type = r.access.type,
                                          .attr = r.access.attr};
        a->data = group->rest.p;
        const uint8_t content = bus ? TL_STF_BUS_MASTER_CONTENT : TL_STF_INST_MEM_CONTENT;
        while (group->rest.n && group->rest.p[0] == content &&
               tl_stf_group_next(group, &r) == TL_OK)
            a->n_data++;
        return TL_OK;
    }
    return result;
}

static void assert_same_accesses(struct tl_stf_group group)
{
    struct tl_stf_group fast = group, plain = group;
    struct tl_stf_access a = {0}, b = {0};
    int result;
    do {
        result = plain_access(&plain, &b);
        assert_int_equal(tl_stf_group_access(&fast, &a), result);
        if (result < 0)
            continue;
        assert_true(a.address == b.address && a.size == b.size && a.type == b.type);
        assert_true(a.bus == b.bus && a.master == b.master && a.index == b.index);
        assert_true(a.attr == b.attr && a.n_data == b.n_data && a.data == b.data);
    } while (result == TL_OK);
}

static void assert_same_operands(struct tl_stf_group group)
{
    struct tl_stf_group fast = group, plain = group;
    struct tl_stf_operand a = {0}, b;
    plain.shape = 0;
    int result;
    do {
        result = tl_stf_group_operand_any(&plain, &b);
        assert_int_equal(tl_stf_group_operand(&fast, &a), result);
        if (result < 0)
            continue;
        assert_true(a.number == b.number && a.type == b.type && a.operand == b.operand);
        assert_true(a.value.p == b.value.p && a.value.n == b.value.n);
    } while (result == TL_OK);
}

/*
 * The inlined look-ups of accesses and registers give the same results as the general ones,
 * wherever the group is cut.
 */
static void test_operands_in_line(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("test_operands_in_line");
    for (unsigned round = 0; round < 500; round++) {
        struct tl_buf group = {0};
        for (uint64_t n = rng_next(&seed) % 7; n > 0; n--)
            put_any_record(&group, rng_next(&seed));
        if (round & 1)
            put_insn(&group, 0x13);
        else
            put_record(&group, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 1});
        for (size_t n = 0; n <= group.n; n++) {
            /* A copy of exactly this size lets the sanitizer detect reads past the end. */
            uint8_t *const copy = malloc(n ? n : 1);
            assert_non_null(copy);
            memcpy(copy, group.p, n);
            assert_same_accesses((struct tl_stf_group){.rest = {copy, n}});
            assert_same_operands((struct tl_stf_group){.rest = {copy, n}});
            free(copy);
        }
        tl_buf_fini(&group);
    }
}

/* Write a typical group: some of a target, registers, an access with its content. */
static void put_usual_group(struct tl_buf *out, uint64_t dice, uint32_t vlen)
{
    static const uint8_t words[32] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
    const struct tl_stf_layout layout = {.vlen = vlen};
    if (dice % 8 == 0)
        put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = dice});
    for (uint64_t n = (dice >> 3 & 7) % 5, i = 0; i < n; i++) {
        const bool vector = (dice >> (40 + 3 * i) & 7) == 0;
        const struct tl_stf_record r = {.type = TL_STF_INST_REG,
                                        .reg = {(uint16_t)(dice >> 16),
                                                vector ? 0x23 : 0x21,
                                                {words, vector && vlen ? vlen / 8 : 8}}};
        assert_int_equal(tl_stf_record_encode(&layout, &r, out), TL_OK);
    }
    if (dice >> 6 & 1) {
        put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                                .access = {dice, 4, 7, TL_STF_WRITE}});
        for (uint64_t n = (dice >> 7 & 7) == 0 ? 2 : 1; n > 0; n--)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = n});
    }
}

/*
 * Check that the shape of a group, as found by the scan, does not change what its reader gets, even
 * if some records were read before.
 */
static void assert_shape(struct tl_stf_insns *s, const struct tl_stf_insn *insn, size_t skipped)
{
    struct tl_stf_group group = tl_stf_insn_group(s, insn);
    struct tl_bytes record;
    for (; skipped > 0 && group.rest.n > 5; skipped--)
        assert_int_equal(tl_stf_group_skip(&group, &record), TL_OK);
    assert_same_accesses(group);
    assert_same_operands(group);
    /* The access after the registers, with some registers read or not. */
    struct tl_stf_group fast = group, plain = group;
    struct tl_stf_access a = {0}, b = {0};
    struct tl_stf_operand o;
    plain.shape = 0;
    if (insn->opcode & 1)
        assert_int_equal(tl_stf_group_operand(&fast, &o), tl_stf_group_operand_any(&plain, &o));
    const int result = plain_access(&plain, &b);
    assert_int_equal(tl_stf_group_access(&fast, &a), result);
    assert_true(result < 0 || (a.address == b.address && a.data == b.data));
    if (insn->flags & TL_STF_TAKEN)
        assert_true(tl_stf_insn_next(s, insn) == tl_stf_insn_next_any(s, insn));
}

static void test_shapes(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("test_shapes");
    unsigned known = 0;
    for (unsigned round = 0; round < 200; round++) {
        static const uint32_t vlens[] = {0, 64, 128, 256};
        const struct tl_stf_header_spec spec = {
            .isa = TL_STF_ISA_RISCV, .iem = 2, .pc = 0x1000, .vlen = vlens[round % 4]};
        struct tl_buf bytes = {0};
        assert_int_equal(tl_stf_header_write(&spec, &bytes, NULL), TL_OK);
        const size_t n = rng_next(&seed) % 200;
        for (size_t i = 0; i < n; i++) {
            if (rng_next(&seed) % 16 > 0)
                put_usual_group(&bytes, rng_next(&seed), spec.vlen);
            else if (spec.vlen <= 64) /* any record: its vectors have one word */
                put_any_record(&bytes, rng_next(&seed));
            if (rng_next(&seed) & 1)
                put_insn(&bytes, (uint32_t)rng_next(&seed));
            else
                put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 1});
        }
        struct pieces pieces = {bytes_of(&bytes), 1 + rng_next(&seed) % 3000, seed, {0}};
        const struct tl_stf_source source = {&pieces, pieces_next, NULL};
        struct tl_stf_insns *s;
        struct tl_stf_insn batch[64];
        size_t at = 0;
        int got;
        assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
        while ((got = tl_stf_insns_read(s, batch, 1 + rng_next(&seed) % 64, NULL)) > 0) {
            for (int i = 0; i < got; i++) {
                assert_shape(s, &batch[i], rng_next(&seed) % 3);
                known += batch[i].shape > 0;
            }
            at += (size_t)got;
        }
        assert_int_equal(got, TL_EOF);
        assert_int_equal(at, n);
        tl_stf_insns_free(s);
        tl_buf_fini(&pieces.copy);
        tl_buf_fini(&bytes);
    }
    assert_true(known > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_records),
        cmocka_unit_test(test_pushed),
        cmocka_unit_test(test_never_invents),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_seek_plain),
        cmocka_unit_test(test_no_address),
        cmocka_unit_test(test_header_ended_by_no_instruction),
        cmocka_unit_test(test_transactions_are_refused),
        cmocka_unit_test(test_end_mark_and_trailing_records),
        cmocka_unit_test(test_endless_group),
        cmocka_unit_test(test_operands_in_line),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
