/* SPDX-License-Identifier: MIT */
/* What differs between encoders and cores of Nexus trace: fields left out, reserved messages,
 * widths of addresses and counts, jump tables, depth of calls; and how the flow is found again. */
#include "flow/block.h"
#include "riscv/nexus_message.h"
#include "sim/program_rng.h"
#include "steps.h"
#include "unit/nexus_bytes.h"

#include <inttypes.h>
#include <stdio.h>

#define NTRACE "[trace]\nformat=ntrace\n[source nt.0]\ncore=rv64\n"
#define SIFIVE "[trace]\nformat=nexus-sifive\n[source nt.0]\ncore=rv64\n"

/* nop; jr a0, twice */
static const uint8_t jumps[] = {0x01, 0x00, 0x02, 0x85, 0x01, 0x00, 0x02, 0x85};
#define JUMPS ((struct tl_bytes){jumps, sizeof jumps})

/* A jump behind two halfwords, by the difference of addresses. */
static void jump_by(struct trace *t, uint64_t difference)
{
    message(t, 5, F(28, 6), F(0, 2), V(2), V(difference >> 1), V(1));
}

static void end(struct trace *t, uint64_t icnt)
{
    message(t, 5, F(33, 6), F(4, 4), F(1, 2), V(icnt), V(1));
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Every reserved code, with any fields, is shown and changes nothing. */
static void reserved_codes(void **state)
{
    (void)state;
    unsigned n = 0;
    for (unsigned code = 0; code < TL_NEXUS_TCODES; code++) {
        struct trace t = {0};
        char text[200];
        if (!tl_nexus_is_reserved((uint8_t)code))
            continue;
        n++;
        sync_at(&t, 0, 0x1000);
        message(&t, 4, F(code, 6), F(5, 4), V(0x123456), V(0x987));
        jump_by(&t, 4);
        end(&t, 0);
        snprintf(text, sizeof text,
                 "O\nM -.rv64\nA reserved message %u\nI 0000000000001000 0001\n"
                 "I 0000000000001002 8502\nG off\n",
                 code);
        check_with(NTRACE, JUMPS, 0x1000, false, &t, text, "");
    }
    assert_int_equal(n, 64 - 16 - 7);
}

/* Memory that was not written is no reserved message. */
static void zeros(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1000);
    t.n += 5;
    jump_by(&t, 4);
    sync_at(&t, 0, 0x1004);
    check_with(NTRACE, JUMPS, 0x1000, false, &t, "O\nM -.rv64\nG bad-packet\nO\nM -.rv64\n",
               "4+9 bad message\n");
}

/* trTeInhibitSrc: messages have no SRC, whatever its width. */
static void inhibited_source(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1000);
    jump_by(&t, 4);
    jump_by(&t, 4);
    static const char text[] = "O\nM -.rv64\nI 0000000000001000 0001\nI 0000000000001002 8502\n"
                               "I 0000000000001004 0001\nI 0000000000001006 8502\n";
    check_with(NTRACE "trTeControl=0x8067\ntrTeInstFeatures=0x40000000\n", JUMPS, 0x1000, false, &t,
               text, "");
    check_with(NTRACE "trTeInhibitSrc=1\ntrTeSrcBits=7\n", JUMPS, 0x1000, false, &t, text, "");
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* From one address to the lower half, of which nothing is mapped, and back. */
static void check_width(const char *ini, uint64_t base, unsigned width)
{
    struct trace t = {0};
    char text[300];
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    sync_at(&t, 0, base & mask);
    jump_by(&t, (base ^ 0x2000) & mask);
    jump_by(&t, ((base + 4) ^ 0x2000) & mask);
    jump_by(&t, 0);
    snprintf(text, sizeof text,
             "O\nM -.rv64\nI %016" PRIx64 " 0001\nI %016" PRIx64 " 8502\n"
             "B - 0000000000002000\nG no-image\nI %016" PRIx64 " 0001\nI %016" PRIx64 " 8502\n",
             base, base + 2, base + 4, base + 6);
    check_with(ini, JUMPS, base, false, &t, text, "");
}

static void address_bits(void **state)
{
    (void)state;
    check_width(SIFIVE, 0xffffffff80003000, 48);
    check_width(SIFIVE, 0xffffffff80003000, 49);
    check_width(SIFIVE, 0xffffffff80003000, 63);
    check_width(SIFIVE, 0x0000555580003000, 48);
    check_width(SIFIVE "addrbits=39\n", 0xffffffc080000000, 39);
    check_width(SIFIVE "addrbits=39\n", 0x0000003f80000000, 39);
    check_width("[trace]\nformat=nexus-sifive\n[source nt.0]\ncore=u74-rv64\n", 0xffffffc080000000,
                39);
    check_width(NTRACE "addrbits=57\n", 0xff12345680000000, 57);
    check_width(NTRACE, 0x0000ffff80003000, 48);
}

/* ---- jump tables ---------------------------------------------------------------------------- */

/* cm.jt 3; jr a0; 0x20: cm.jalt 40; jr a0; 0x30: ret; the table behind it */
static void table_jumps(void **state)
{
    (void)state;
    for (unsigned xlen = 32; xlen <= 64; xlen += 32) {
        const unsigned size = xlen / 8;
        uint8_t program[64 + 64 * 8] = {0};
        struct trace t = {0};
        char ini[160], text[300];
        tl_put_le16(program, 0xa00e);
        tl_put_le16(program + 0x20, 0xa0a2);
        tl_put_le16(program + 0x22, 0x8502);
        tl_put_le16(program + 0x30, 0x8082);
        tl_put_le32(program + 64 + 3 * size, 0x80000020);
        tl_put_le32(program + 64 + 40 * size, 0x80000030);
        sync_at(&t, 0, 0x80000000);
        /* cm.jt, cm.jalt, ret: reported; jr; the end */
        message(&t, 5, F(28, 6), F(0, 2), V(3), V(0x22 >> 1), V(1));
        message(&t, 5, F(28, 6), F(0, 2), V(1), V((0x22 ^ 0) >> 1), V(1));
        end(&t, 3); /* once more, the return is left out */
        snprintf(ini, sizeof ini,
                 "[trace]\nformat=ntrace\n[source nt.0]\ncore=rv%uimc_zcmp_zcmt\njvt=0x80000040\n",
                 xlen);
        snprintf(text, sizeof text,
                 "O\nM -.rv%u\nI 0000000080000000 a00e\nI 0000000080000020 a0a2\n"
                 "I 0000000080000030 8082\nI 0000000080000022 8502\nI 0000000080000000 a00e\n"
                 "I 0000000080000020 a0a2\nI 0000000080000030 8082\nG off\n",
                 xlen);
        check_with(ini, (struct tl_bytes){program, sizeof program}, 0x80000000, false, &t, text,
                   "");
    }
}

/* Without the table the way behind it is not known, which is said once. */
static void no_table(void **state)
{
    (void)state;
    static const uint8_t program[] = {0x01, 0x00, 0x0e, 0xa0, 0x01, 0x00, 0x02, 0x85};
    struct trace t = {0};
    sync_at(&t, 0, 0x1000);
    message(&t, 5, F(28, 6), F(0, 2), V(6), V(4 >> 1), V(1));
    jump_by(&t, 4);
    message(&t, 5, F(28, 6), F(0, 2), V(6), V(4 >> 1), V(1));
    check_with("[trace]\nformat=ntrace\n[source nt.0]\ncore=rv32_zcmt\n",
               (struct tl_bytes){program, sizeof program}, 0x1000, false, &t,
               "O\nM -.rv32\nI 0000000000001000 0001\nI 0000000000001002 a00e\nG no-path\n"
               "I 0000000000001004 0001\nI 0000000000001006 8502\nI 0000000000001000 0001\n"
               "I 0000000000001002 a00e\nG no-path\n",
               "4+0 CM.JT without its jump table: add jvt=ADDRESS to the source, and the table to "
               "the image\n");
}

/* ---- counts --------------------------------------------------------------------------------- */

struct tally {
    uint64_t insns, gaps, lost, losses;
    struct steps steps;
};

static int add_up(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                  size_t n)
{
    struct tally *const tally = context;
    steps_demand(&tally->steps, items, n);
    for (size_t i = 0; i < n; i++) {
        tally->insns += items[i].kind == TL_ITEM_BLOCK ? items[i].n : 0;
        tally->gaps += items[i].kind == TL_ITEM_GAP;
    }
    return TL_OK;
}

static int add_loss(void *context, const struct tl_decode_loss *loss)
{
    struct tally *const tally = context;
    tally->lost += loss->bytes;
    tally->losses += loss->fault;
    return TL_OK;
}

static struct tally add_all(const char *ini, const uint8_t *code, size_t n, const struct trace *t)
{
    struct tally tally = {0};
    const struct tl_decode_sink sink = {.context = &tally, .items = add_up, .loss = add_loss};
    decode_to(ini, (struct tl_bytes){code, n}, 0x1000, &sink, t->p, t->n);
    return tally;
}

/* beqz a0, itself; jr a0 */
static const uint8_t loop[] = {0x63, 0x00, 0x05, 0x00, 0x02, 0x85};

/* Repetitions have 18 bits, counts of halfwords and branches 32. More is a bad message. */
static void large_counts(void **state)
{
    (void)state;
    struct trace t = {0};
    struct tally tally;
    sync_at(&t, 0, 0x1000);
    message(&t, 4, F(27, 6), F(2, 4), V(7), V(262143));
    message(&t, 5, F(28, 6), F(0, 2), V(2 * 2 * 262143 + 3), V(0), V(2));
    tally = add_all(NTRACE, loop, sizeof loop, &t);
    assert_int_equal(tally.insns, 2 * 262143 + 2);
    assert_int_equal(tally.gaps + tally.losses, 0);

    t = (struct trace){0}; /* told by their number */
    sync_at(&t, 0, 0x1000);
    message(&t, 3, F(27, 6), F(9, 4), V((1 << 23) + 5));
    message(&t, 5, F(28, 6), F(0, 2), V(2 * ((1 << 23) + 5) + 3), V(0), V(2));
    tally = add_all(SIFIVE, loop, sizeof loop, &t);
    assert_int_equal(tally.insns, (1 << 23) + 5 + 2);
    assert_int_equal(tally.gaps + tally.losses, 0);

    t = (struct trace){0}; /* j itself */
    static const uint8_t endless[] = {0x01, 0xa0};
    sync_at(&t, 0, 0x1000);
    end(&t, 1 << 24);
    tally = add_all(NTRACE, endless, sizeof endless, &t);
    assert_int_equal(tally.insns, 1 << 24);

    static const struct {
        uint64_t code, data, times;
    } bad[] = {{0, UINT64_C(1) << 32, 0}, {2, 7, 1 << 18}, {9, UINT64_C(1) << 32, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        t = (struct trace){0};
        sync_at(&t, 0, 0x1000);
        message(&t, 4, F(27, 6), F(bad[i].code, 4), V(bad[i].data), V(bad[i].times));
        tally = add_all(SIFIVE, loop, sizeof loop, &t);
        assert_int_equal(tally.insns, 0);
        assert_int_equal(tally.losses, 1);
    }
}

/* f: beqz a0, 1f; jal f; ret; 1: ret. Returns from 1,023 calls are left out. */
static void deep_calls(void **state)
{
    (void)state;
    static const uint8_t program[] = {0x63, 0x06, 0x05, 0x00, 0xef, 0xf0, 0xdf, 0xff,
                                      0x67, 0x80, 0x00, 0x00, 0x67, 0x80, 0x00, 0x00};
    enum { CALLS = 1023 };
    struct trace t = {0};
    sync_at(&t, 0, 0x1000);
    message(&t, 3, F(27, 6), F(8, 4), V(CALLS));
    message(&t, 5, F(28, 6), F(0, 2), V(2 * (3 * CALLS + 2)), V(0), V(3));
    const struct tally tally = add_all(SIFIVE, program, sizeof program, &t);
    assert_int_equal(tally.insns, 3 * CALLS + 2);
    assert_int_equal(tally.gaps + tally.losses, 0);
}

/* A sequential jump behind so many instructions that the block they are in is full. */
static void far_pair(void **state)
{
    (void)state;
    /* auipc t1, 0; jr 12(t1); nop 4; nop; jr a0 */
    static const uint8_t pair[] = {0x17, 0x03, 0x00, 0x00, 0x67, 0x00, 0xc3, 0x00,
                                   0x13, 0x00, 0x00, 0x00, 0x01, 0x00, 0x02, 0x85};
    static const uint8_t nop[] = {0x01, 0x00};
    for (unsigned n = TL_BLOCK_MAX - 3; n < TL_BLOCK_MAX + 3; n++) {
        uint8_t code[2 * (TL_BLOCK_MAX + 3) + sizeof pair];
        struct trace t = {0};
        for (unsigned i = 0; i < n; i++)
            memcpy(code + 2 * (size_t)i, nop, sizeof nop);
        memcpy(code + 2 * (size_t)n, pair, sizeof pair);
        sync_at(&t, 0, 0x1000);
        message(&t, 5, F(28, 6), F(0, 2), V(n + 4 + 2), V(0), V(1));
        end(&t, 1);
        const struct tally tally = add_all("[trace]\nformat=ntrace\n[source nt.0]\ncore=rv64\n"
                                           "trTeInstEnSequentialJump=1\n",
                                           code, 2 * (size_t)n + sizeof pair, &t);
        assert_int_equal(tally.insns, n + 2 + 2 + 1);
        assert_int_equal(tally.gaps + tally.losses, 1); /* the end */
    }
}

/* ---- going on ------------------------------------------------------------------------------- */

/* Behind what does not fit, the flow goes on at an address from which several outcomes fit;
 * messages until then are counted as lost. */
static void found_again(void **state)
{
    (void)state;
    /* 0x1000: beqz a0, itself; jr a0; 0x1006: nop; jr a0 */
    static const uint8_t program[] = {0x63, 0x00, 0x05, 0x00, 0x02, 0x85, 0x01, 0x00, 0x02, 0x85};
    struct trace t = {0};
    sync_at(&t, 0, 0x1006);
    message(&t, 5, F(28, 6), F(0, 2), V(3), V(6 >> 1), V(1)); /* ends inside jr and nop */
    message(&t, 5, F(28, 6), F(0, 2), V(5), V(0), V(2 + 0));  /* two branches, one outcome */
    message(&t, 5, F(28, 6), F(0, 2), V(7), V(0), V(12));     /* three, of which one is not taken */
    message(&t, 5, F(28, 6), F(0, 2), V(9), V(0), V(30));     /* four */
    message(&t, 5, F(28, 6), F(0, 2), V(3), V(0), V(2));
    const struct tally tally = add_all(NTRACE, program, sizeof program, &t);
    assert_int_equal(tally.insns, 5 + 2);
    assert_int_equal(tally.losses, 1);
    assert_true(tally.gaps >= 2);
}

/* Behind a message that is not understood, what does not fit was damage: addresses are wrong up to
 * the next SYNC. */
static void not_found_again(void **state)
{
    (void)state;
    /* as above */
    static const uint8_t program[] = {0x63, 0x00, 0x05, 0x00, 0x02, 0x85, 0x01, 0x00, 0x02, 0x85};
    struct trace t = {0};
    sync_at(&t, 0, 0x1006);
    message(&t, 3, F(31, 6), V(5), V(7));
    message(&t, 5, F(28, 6), F(0, 2), V(3), V(6 >> 1), V(1));
    message(&t, 5, F(28, 6), F(0, 2), V(9), V(0), V(30));
    message(&t, 5, F(28, 6), F(0, 2), V(9), V(0), V(30));
    sync_at(&t, 0, 0x1000);
    message(&t, 5, F(28, 6), F(0, 2), V(9), V(0), V(30));
    const struct tally tally = add_all(NTRACE, program, sizeof program, &t);
    assert_int_equal(tally.insns, 5);
    assert_int_equal(tally.losses, 1);
}

/* A message of the other kind of trace, which damage made, is not believed for the rest. */
static void kind_of_trace(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1000);
    message(&t, 2, F(3, 6), V(2));
    message(&t, 5, F(28, 6), F(0, 2), V(3), V(0), V(2)); /* not in branch messages */
    for (unsigned i = 0; i < 10; i++)
        message(&t, 2, F(3, 6), V(2));
    message(&t, 4, F(4, 6), F(0, 2), V(3), V(0)); /* the last branch is not taken: no outcome */
    const struct tally tally = add_all(NTRACE, loop, sizeof loop, &t);
    assert_int_equal(tally.insns, 1 + 2 + 10 + 2);
    assert_int_equal(tally.gaps + tally.losses, 0);
}

/* A random message of up to 9 or 20 bytes: the bytes that end a field, and the last one, are
 * marked. */
static size_t random_message(struct tl_sim_rng *rng, uint8_t *out)
{
    static const uint8_t codes[] = {TL_NEXUS_HIST, TL_NEXUS_DIRECT, TL_NEXUS_INDIRECT};
    const size_t n = 2 + tl_sim_below(rng, tl_sim_below(rng, 3) ? 8 : 19);
    out[0] = (uint8_t)(codes[tl_sim_below(rng, 3)] << 2);
    for (size_t i = 1; i < n; i++) {
        const bool ends = tl_sim_below(rng, 2) == 0;
        const unsigned data = tl_sim_below(rng, 2) ? tl_sim_below(rng, 64) : 0;
        out[i] = (uint8_t)(data << 2 | (i + 1 == n ? TL_NEXUS_MESSAGE_END : ends));
    }
    return n;
}

/* Frequent messages are read as one word, if a word behind them may be read: with the result of
 * reading field by field. */
static void short_messages(void **state)
{
    (void)state;
    enum { ROUNDS = 200000, MANY = 1000 };
    struct tl_sim_rng rng = {7};
    struct tl_nexus_message by_word = {0}, by_field = {0};
    unsigned good = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint8_t bytes[20 + 8];
        memset(bytes, (int)tl_sim_below(&rng, 256), sizeof bytes);
        const size_t n = random_message(&rng, bytes);
        const unsigned src_bits = tl_sim_below(&rng, 7);
        const struct tl_bytes in = {bytes, n};
        const int one = tl_nexus_read(&by_word, in, sizeof bytes, src_bits);
        const int other = tl_nexus_read(&by_field, in, n, src_bits);
        assert_int_equal(one, other);
        good += one == TL_OK;
        if (one < 0)
            continue;
        assert_int_equal(by_word.has, by_field.has);
        assert_int_equal(by_word.src, by_field.src);
        assert_int_equal(by_word.bytes, by_field.bytes);
        assert_int_equal(by_word.addr_bits, by_field.addr_bits);
        assert_memory_equal(by_word.field, by_field.field, sizeof by_word.field);
    }
    assert_true(good > MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserved_codes),   cmocka_unit_test(zeros),
        cmocka_unit_test(inhibited_source), cmocka_unit_test(address_bits),
        cmocka_unit_test(table_jumps),      cmocka_unit_test(no_table),
        cmocka_unit_test(large_counts),     cmocka_unit_test(deep_calls),
        cmocka_unit_test(far_pair),         cmocka_unit_test(found_again),
        cmocka_unit_test(not_found_again),  cmocka_unit_test(kind_of_trace),
        cmocka_unit_test(short_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
