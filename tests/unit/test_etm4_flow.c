/* SPDX-License-Identifier: MIT */
/* Hand-made packets over a small A64 program, and the resulting flow text. */
#include "etm4/element.h"
#include "etm4/flow.h"
#include "steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint32_t program[] = {
    0xd503201f, /* 1000 nop */
    0x94000004, /* 1004 bl 1014 */
    0x54ffffc0, /* 1008 b.eq 1000 */
    0xd69f03e0, /* 100c eret */
    0xd61f0000, /* 1010 br x0 */
    0xd503201f, /* 1014 nop */
    0xd65f03c0, /* 1018 ret */
    0xd5033fdf, /* 101c isb */
    0xd4000001, /* 1020 svc */
    0xd503201f, /* 1024 nop, then the image ends */
};

struct out {
    struct tl_buf text;
    size_t losses;
    char loss[128]; /* the last one */
    struct steps steps;
};

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct out *out = context;
    assert_true(n > 0 && n <= 256);
    steps_demand(&out->steps, items, n);
    return tl_item_text(&out->text, items, n);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct out *out = context;
    out->losses++;
    snprintf(out->loss, sizeof out->loss, "%s %llu %llu", reason, (unsigned long long)offset,
             (unsigned long long)bytes);
    return TL_OK;
}

static struct tl_image *image;

static int setup(void **state)
{
    uint8_t bytes[sizeof program];
    for (size_t i = 0; i < sizeof program / 4; i++)
        tl_put_le32(bytes + 4 * i, program[i]);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_bytes(image, 0x1000, (struct tl_bytes){bytes, sizeof bytes},
                                        TL_SPACE_N, NULL, NULL),
                     TL_OK);
    return tl_image_freeze(image);
}

static int teardown(void **state)
{
    tl_image_free(image);
    return 0;
}

/* ---- packets ----------------------------------------------------------------------------- */

#define EL1 (1u << TL_ETM4_EL_SHIFT | TL_ETM4_HAS_CONTEXT | TL_ETM4_SF | TL_ETM4_NS)

#define ASYNC                                                                                      \
    {                                                                                              \
        .type = TL_ETM4_ASYNC                                                                      \
    }
#define INFO                                                                                       \
    {                                                                                              \
        .type = TL_ETM4_TRACE_INFO                                                                 \
    }
#define INFO_D(d)                                                                                  \
    {                                                                                              \
        .type = TL_ETM4_TRACE_INFO, .value = (uint64_t)(d) << 32                                   \
    }
#define ON                                                                                         \
    {                                                                                              \
        .type = TL_ETM4_TRACE_ON                                                                   \
    }
#define AT(a)                                                                                      \
    {                                                                                              \
        .type = TL_ETM4_ADDRESS, .value = (a)                                                      \
    }
#define AT_EL1(a)                                                                                  \
    {                                                                                              \
        .type = TL_ETM4_ADDRESS, .value = (a), .flags = EL1                                        \
    }
#define ATOMS(c, v)                                                                                \
    {                                                                                              \
        .type = TL_ETM4_ATOM, .n = (c), .value = (v)                                               \
    }
#define E ATOMS(1, 1)
#define N ATOMS(1, 0)
#define EXC(t, e)                                                                                  \
    {                                                                                              \
        .type = TL_ETM4_EXCEPTION, .value = (t), .n = (e)                                          \
    }
#define TIME(t)                                                                                    \
    {                                                                                              \
        .type = TL_ETM4_TIMESTAMP, .value = (t)                                                    \
    }
#define COMMIT(c)                                                                                  \
    {                                                                                              \
        .type = TL_ETM4_COMMIT, .value = (c)                                                       \
    }
#define CANCEL(c)                                                                                  \
    {                                                                                              \
        .type = TL_ETM4_CANCEL, .value = (c)                                                       \
    }
#define MISPREDICT                                                                                 \
    {                                                                                              \
        .type = TL_ETM4_MISPREDICT                                                                 \
    }
#define BEGIN_AT(a) ASYNC, INFO, ON, AT_EL1(a)
#define BEGIN       BEGIN_AT(0x1000)
#define BEGUN       "O\nM el1.ns.a64\n"

static const struct tl_etm4_config plain = {.version = 0x40, .v8 = true, .aarch64 = true};

static struct tl_buf run(const struct tl_etm4_config *config, const struct tl_image *with,
                         const struct tl_etm4_packet *packets, size_t n, size_t batch,
                         struct out *out)
{
    struct tl_etm4_flow *flow;
    struct tl_etm4_packet *copy = malloc(n * sizeof *copy);
    assert_int_equal(tl_etm4_flow_new(&flow, config, with, on_items, on_loss, out), TL_OK);
    memcpy(copy, packets, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i].offset = i; /* one byte each, for losses */
    for (size_t i = 0; i < n; i += batch) {
        assert_int_equal(tl_etm4_flow_push(flow, copy + i, n - i < batch ? n - i : batch), TL_OK);
        assert_int_equal(tl_etm4_flow_flush(flow), TL_OK);
    }
    assert_int_equal(tl_etm4_flow_finish(flow, n), TL_OK);
    tl_etm4_flow_free(flow);
    free(copy);
    assert_int_equal(tl_buf_add(&out->text, "", 1), TL_OK);
    return out->text;
}

static void expect_with(const struct tl_etm4_config *config, const struct tl_image *with,
                        const struct tl_etm4_packet *packets, size_t n, const char *text,
                        const char *loss)
{
    for (size_t batch = 1; batch <= n; batch += n > 1 ? n - 1 : 1) {
        struct out out = {.loss = ""};
        const struct tl_buf got = run(config, with, packets, n, batch, &out);
        assert_string_equal((const char *)got.p, text);
        assert_string_equal(out.loss, loss);
        tl_buf_fini(&out.text);
    }
}

#define EXPECT(config, text, ...)                                                                  \
    do {                                                                                           \
        const struct tl_etm4_packet packets[] = {__VA_ARGS__};                                     \
        expect_with(config, image, packets, sizeof packets / sizeof packets[0], text, "");         \
    } while (0)

#define EXPECT_LOSS(config, text, loss, ...)                                                       \
    do {                                                                                           \
        const struct tl_etm4_packet packets[] = {__VA_ARGS__};                                     \
        expect_with(config, image, packets, sizeof packets / sizeof packets[0], text, loss);       \
    } while (0)

/* The program's instructions as text. */
#define I1000 "I 0000000000001000 d503201f\n"
#define I1004 "I 0000000000001004 94000004\n"
#define I1008 "I 0000000000001008 54ffffc0\n"
#define I100C "I 000000000000100c d69f03e0\n"
#define I1010 "I 0000000000001010 d61f0000\n"
#define I1014 "I 0000000000001014 d503201f\n"
#define I1018 "I 0000000000001018 d65f03c0\n"
#define I101C "I 000000000000101c d5033fdf\n"
#define I1020 "I 0000000000001020 d4000001\n"
#define I1024 "I 0000000000001024 d503201f\n"

/* ---- flow -------------------------------------------------------------------------------- */

static void follows_branches(void **state)
{
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018 I1008 I1000 I1004, BEGIN, ATOMS(2, 3), AT(0x1008),
           E, E);
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018 I1008 I100C, BEGIN, ATOMS(2, 3), AT(0x1008),
           ATOMS(2, 2));
    EXPECT(&plain, BEGUN I101C "G no-path\nX debug-halt 1 0000000002000000\nO\n",
           /* too far away to be reached by straight code */
           BEGIN_AT(0x101c), N, EXC(1, 1), AT(0x2000000), ON);
}

/* What the program says and what the trace says differ: a gap, and on where the trace says. */
static void trace_and_program_differ(void **state)
{
    EXPECT(&plain, BEGUN I1000 I1004 "G no-path\n" I1008 I100C, BEGIN, E, AT(0x1008), N, E);
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018, BEGIN, E, AT(0x1014), E);
    /* an unconditional branch that was not taken was another instruction */
    EXPECT(&plain, BEGUN I1000 I1004 I1008 I100C, BEGIN, N, N, E);
    EXPECT(&plain, BEGUN I1014 I1018 I101C, BEGIN_AT(0x1014), N, E);
}

static void waits_for_sync(void **state)
{
    EXPECT(&plain, "", E, ON, AT_EL1(0x1000), INFO, E);
    EXPECT(&plain, "", ASYNC, E, ON, AT_EL1(0x1000), E);
    EXPECT(&plain, "O\n", ASYNC, INFO, ON, AT(0x1000), E); /* no context yet */
    EXPECT_LOSS(&plain, "G sync 7\n" BEGUN, "not synchronised 0 7",
                {.type = TL_ETM4_NOT_SYNC, .value = 7}, BEGIN);
}

static void reports_missing_addresses(void **state)
{
    /* RET without return stack: no instruction until the next address, reported once */
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018 "G no-path\n" I1008 I1000 I1004, BEGIN,
           ATOMS(5, 31), AT(0x1008), ATOMS(2, 3));
    EXPECT(&plain,
           BEGUN "B - 0000000000005000\nG no-image\n" I101C
                 "X irq 14 0000000000001020\nG no-path\n",
           BEGIN_AT(0x5000), E, E, AT(0x101c), E, EXC(14, 1), AT(0x1020), E);
    EXPECT(&plain, BEGUN I1020 I1024 "G no-image\n", BEGIN_AT(0x1020), E, E);
}

static void uses_the_return_stack(void **state)
{
    struct tl_etm4_config c = plain;
    c.return_stack = true;
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 I1008 I1000 I1004, BEGIN, ATOMS(3, 7), E);
    /* an address packet takes precedence, and does not pop */
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 I1014 I1018 I1008, BEGIN, ATOMS(2, 3), AT(0x1014),
           ATOMS(2, 1));
    /* the return stack is empty */
    EXPECT(&c, BEGUN I1014 I1018 "G no-path\n" I1008, BEGIN_AT(0x1014), ATOMS(2, 3), AT(0x1008), N);
    /* Trace On clears the stack; after Trace Info nothing is pushed before an address */
    EXPECT(&c, BEGUN I1000 I1004 "O\n" I1014 I1018 "G no-path\n", BEGIN, E, ON, AT(0x1014), E, E);
    EXPECT(&c, BEGUN I1008 I1000 I1004 I1014 I1018 "G no-path\n", BEGIN_AT(0x1008), INFO,
           ATOMS(4, 15));
    /* pending returns are taken after Trace Info; an address there ends the stack, a call too */
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 I1008 I100C "R\n" I1014 I1018 "G no-path\n", BEGIN,
           ATOMS(2, 3), ASYNC, INFO, ATOMS(2, 2), {.type = TL_ETM4_EXCEPTION_RETURN}, AT(0x1014), E,
           E);
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 "G no-path\n", BEGIN, E, INFO, AT(0x1014), E, E);
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 I1008 I1000 I1004 I1014 I1018 "G no-path\n", BEGIN,
           ATOMS(2, 3), INFO, ATOMS(4, 15), E);
    /* nothing is predicted behind code that is not in the image, nor by its outcomes */
    EXPECT(&c,
           BEGUN I1000 I1004 I1014 I1018 "B - 0000000000005000\nG no-image\n" I1014 I1018
                                         "G no-path\n" I1008,
           BEGIN, ATOMS(2, 3), AT(0x5000), ATOMS(3, 7), AT(0x1014), ATOMS(3, 7), AT(0x1008), N);
    /* an exception return is not predicted, nor is a call */
    EXPECT(&c, BEGUN I1000 I1004 "X irq 14 0000000000001014\n" I100C "R\nX irq 14 -\nG no-path\n",
           BEGIN, E, EXC(14, 2), AT(0x1014), AT(0x100c), E, {.type = TL_ETM4_EXCEPTION_RETURN},
           EXC(14, 1), E);
    /* an exception directly after a predicted return */
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 "X irq 14 0000000000001008\n", BEGIN, ATOMS(2, 3),
           EXC(14, 1), AT(0x1008));
}

static void keeps_the_newest_returns(void **state)
{
    /* 20 calls, 16 stack entries: 1008 is `b.eq 1000`, N continues to ERET; each BL pushes 1008 */
    struct tl_etm4_config c = plain;
    c.return_stack = true;
    struct tl_etm4_packet packets[256] = {BEGIN};
    struct tl_buf want = {0};
    size_t n = 4;
    assert_int_equal(tl_buf_printf(&want, "%s", BEGUN), TL_OK);
    for (int i = 0; i < 20; i++) {
        packets[n++] = (struct tl_etm4_packet)EXC(14, 2); /* the handler calls, too */
        packets[n++] = (struct tl_etm4_packet)AT(0x1014);
        packets[n++] = (struct tl_etm4_packet)AT(0x1004);
        packets[n++] = (struct tl_etm4_packet)E;
        assert_int_equal(tl_buf_printf(&want, "%s%s", "X irq 14 0000000000001014\n", I1004), TL_OK);
    }
    for (int i = 0; i < 18; i++) {
        packets[n++] = (struct tl_etm4_packet)EXC(14, 2);
        packets[n++] = (struct tl_etm4_packet)AT(0x1014);
        packets[n++] = (struct tl_etm4_packet)AT(0x1018);
        packets[n++] = (struct tl_etm4_packet)ATOMS(2, 1); /* RET, then B.EQ not taken */
        assert_int_equal(tl_buf_printf(&want, "X irq 14 0000000000001014\n%s%s", I1018,
                                       i < 16 ? I1008 : "G no-path\n"),
                         TL_OK);
    }
    assert_int_equal(tl_buf_add(&want, "", 1), TL_OK);
    expect_with(&c, image, packets, n, (const char *)want.p, "");
    tl_buf_fini(&want);
}

static void takes_exceptions(void **state)
{
    /* SVC is not a waypoint: the exception shows that it was reached */
    EXPECT(&plain, BEGUN I101C I1020 "X call 2 0000000000001024\n" I1014 I1018, BEGIN_AT(0x101c), E,
           EXC(2, 1), AT(0x1024), AT(0x1014), E);
    /* at the target of a branch: nothing was executed there */
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018 "X irq 14 0000000000001008\n" I1008, BEGIN,
           ATOMS(2, 3), EXC(14, 2), AT(0x1008), AT(0x1008), N);
    /* context before the address, or with it; both apply to what follows */
    EXPECT(&plain, BEGUN I1000 I1004 "M el2.ns.a64\nX trap 3 0000000000001014\n" I1014 I1018, BEGIN,
           E, EXC(3, 1), {.type = TL_ETM4_CONTEXT, .flags = EL1 + (1 << TL_ETM4_EL_SHIFT)},
           AT(0x1014), AT(0x1014), E);
    /* no address follows */
    EXPECT(&plain, BEGUN I1000 I1004 "X irq 14 -\nG no-path\n" I1008, BEGIN, E, EXC(14, 1), E,
           AT(0x1008), N);
    EXPECT(&plain, BEGUN "X irq 14 -\nO\n", BEGIN, EXC(14, 1), ON);
    /* the program does not reach the address */
    EXPECT(&plain, BEGUN I1000 I1004 "G no-path\nX irq 14 0000000000001016\n", BEGIN, E, EXC(14, 1),
           AT(0x1016));
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018 "X irq 14 0000000000001000\n", BEGIN, E, E,
           AT(0x1008), EXC(14, 1), AT(0x1000));
    /* nor behind a branch without an outcome */
    EXPECT(&plain, BEGUN "G no-path\nX irq 14 0000000000001008\n", BEGIN, EXC(14, 1), AT(0x1008));
    EXPECT(&plain, BEGUN "G no-path\nX irq 14 0000000000001014\n", BEGIN, EXC(14, 1), AT(0x1014));
    EXPECT(&plain, BEGUN "R\n", BEGIN, {.type = TL_ETM4_EXCEPTION_RETURN});
    EXPECT(&plain, BEGUN I100C, BEGIN_AT(0x100c), E);
}

static void knows_the_m_profile(void **state)
{
    struct tl_etm4_config c = plain;
    c.m_profile = true;
    EXPECT(&c, BEGUN "X SysTick 15 -\n", BEGIN, EXC(15, 1), AT(0xfffffffe));
    EXPECT(&c, BEGUN "X irq503 519 0000000000001000\n", BEGIN, EXC(0x3f7, 1), AT(0x1000));
    EXPECT(&c, BEGUN "X debug-halt - 0000000000001000\n", BEGIN, EXC(24, 1), AT(0x1000));
    /* an exception return is a P0 element, in Armv7-M and in Armv8-M */
    c.max_spec_depth = 16;
    for (unsigned v8 = 0; v8 < 2; v8++) {
        c.v8 = v8;
        EXPECT(&c, BEGUN I1000 I1004 "X SVCall 11 0000000000001014\n" I1008 "R\n" I1014 I1018,
               BEGIN, E, EXC(11, 1), AT(0x1014), AT(0x1008), N, {.type = TL_ETM4_EXCEPTION_RETURN},
               AT(0x1014), E, COMMIT(5));
    }
}

/* Elements that wait at the end for commits that never come are told, once they are too many for a
 * trace unit: its depth is wrong. */
static void doubts_its_depth(void **state)
{
    (void)state;
    static struct tl_etm4_packet packets[4 + TL_ETM4_WAITING_MAX + 1] = {BEGIN};
    struct tl_etm4_config c = plain;
    c.max_spec_depth = 1u << 30;
    for (size_t i = 4; i < sizeof packets / sizeof *packets; i++)
        packets[i] = (struct tl_etm4_packet)E;
    for (size_t n = sizeof packets / sizeof *packets - 1; n <= sizeof packets / sizeof *packets;
         n++) {
        struct out out = {0};
        run(&c, image, packets, n, 7, &out);
        assert_string_equal((char *)out.text.p, BEGUN);
        assert_int_equal(out.losses, n > 4 + TL_ETM4_WAITING_MAX);
        tl_buf_fini(&out.text);
    }
}

static void knows_ete(void **state)
{
    struct tl_etm4_config c = plain;
    c.version = 0x50;
    c.ete = true;
    EXPECT(&c, BEGUN I100C "R\n" I1014 I1018, BEGIN_AT(0x100c), E, AT(0x1014), E);
    EXPECT(&c, BEGUN "X pe-reset 0 -\n" I1008, BEGIN, {.type = TL_ETM4_PE_RESET}, AT(0x1008), N);
    EXPECT(&c, "V 5\n", ASYNC, {.type = TL_ETM4_EVENT, .value = 5});
    EXPECT(&plain, "", ASYNC, {.type = TL_ETM4_EVENT, .value = 5});
    EXPECT(&c, BEGUN "A transaction start\nA transaction commit\nA transaction fail\n", BEGIN,
           {.type = TL_ETM4_TRANSACTION_START}, {.type = TL_ETM4_TRANSACTION_COMMIT},
           {.type = TL_ETM4_EXCEPTION, .value = 24, .flags = TL_ETM4_TRANSACTION_FAILED});
    EXPECT(&c, BEGUN "S ite 1 00000000deadbeef\n", BEGIN,
           {.type = TL_ETM4_ITE, .n = 1, .value = 0xdeadbeef});
    c.ts_marker = true;
    EXPECT(&c, BEGUN "A timestamp marker\nT 2\n", BEGIN, TIME(1), {.type = TL_ETM4_TS_MARKER},
           TIME(2));
}

static void takes_source_addresses(void **state)
{
#define SOURCE(a)                                                                                  \
    {                                                                                              \
        .type = TL_ETM4_SOURCE_ADDRESS, .value = (a)                                               \
    }
    struct tl_etm4_config c = plain;
    c.ete = true;
    /* everything up to the source was executed, and the source branched */
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 "G no-path\n", BEGIN, SOURCE(0x1004), SOURCE(0x1018),
           E);
    EXPECT(&c, BEGUN I1008 I100C "R\n" I1008 I1000 I1004, BEGIN_AT(0x1008), SOURCE(0x100c),
           AT(0x1008), SOURCE(0x1008), E);
    /* before the current address, behind a call, or behind an unknown target: only the source
     * itself is known */
    EXPECT(&c, BEGUN "G no-path\n" I1008 I1000 I1004, BEGIN_AT(0x101c), SOURCE(0x1008), E);
    EXPECT(&c, BEGUN "G no-path\n" I100C "R\nG no-path\n" I1008 I1000 I1004, BEGIN, SOURCE(0x100c),
           SOURCE(0x1008), E);
    EXPECT(&c, BEGUN "N 0000000000002028\nG no-image\n", BEGIN, SOURCE(0x1028 + 0x1000), E);
    EXPECT(&c, BEGUN "N 0000000000001030\nG no-image\n", BEGIN_AT(0x101c), SOURCE(0x1030), E);
}

static void takes_q_elements(void **state)
{
#define Q(count, a)                                                                                \
    {.type = TL_ETM4_Q,                                                                            \
     .flags = TL_ETM4_HAS_COUNT | TL_ETM4_HAS_ADDRESS,                                             \
     .value2 = (count),                                                                            \
     .value = (a)}
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018, BEGIN, Q(2, 0x1014), E);
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018, BEGIN, Q(1, 0x1004), ATOMS(2, 3));
    EXPECT(&plain, BEGUN I101C I1020 I1024 "G no-image\n", BEGIN_AT(0x101c), Q(2, 0x1024), E);
    /* neither its target nor behind it */
    EXPECT(&plain, BEGUN "G no-path 2\n" I1018, BEGIN, Q(2, 0x1018), E);
    EXPECT(&plain, BEGUN "G no-path 3\n" I1014 I1018, BEGIN, Q(3, 0x1014), E);
    EXPECT(&plain, BEGUN "G no-path 1\n" I1014 I1018, BEGIN, Q(1, 0x1014), E);
    EXPECT(&plain, BEGUN "G no-path\n" I1014 I1018, BEGIN, {.type = TL_ETM4_Q}, AT(0x1014), E);
    EXPECT(&plain, BEGUN "G no-path 4294967295\n" I1014 I1018, BEGIN, Q(0xffffffff, 0x1014), E);
}

/* ---- speculation ------------------------------------------------------------------------- */

static void commits_and_cancels(void **state)
{
    struct tl_etm4_config c = plain;
    c.max_spec_depth = 3;
    EXPECT(&c, BEGUN, BEGIN, E); /* not committed */
    EXPECT(&c, BEGUN I1000 I1004, BEGIN, E, COMMIT(1));
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018, BEGIN, ATOMS(2, 3), AT(0x1008), ATOMS(1, 0),
           COMMIT(2));
    EXPECT(&c, BEGUN I1000 I1004 I1014 I1018 I1008, BEGIN, ATOMS(2, 3), AT(0x1008), ATOMS(1, 0),
           COMMIT(1), COMMIT(2));
    /* beyond the maximum depth the oldest are committed */
    EXPECT(&c, BEGUN I1000 I1004, BEGIN, ATOMS(2, 3), AT(0x1008), ATOMS(2, 0));
    /* cancelled atoms and what depends on them; times stay in their place */
    EXPECT(&c, BEGUN I1000 I1004 "T 1\nT 2\n" I1014 I1018, BEGIN, E, TIME(1), E, AT(0x1008),
           TIME(2), CANCEL(1), COMMIT(1), E, COMMIT(1));
    EXPECT(&c, BEGUN I1000 I1004, BEGIN, ATOMS(3, 1), CANCEL(2), COMMIT(1));
    /* mispredicted: the opposite direction, and the address of the wrong path is dropped */
    EXPECT(&c, BEGUN I1008 I100C, BEGIN_AT(0x1008), E, MISPREDICT, E, COMMIT(2));
    EXPECT(&c, BEGUN I1008 I1000 I1004, BEGIN_AT(0x1008), N, AT(0x1014), MISPREDICT, E, COMMIT(2));
    EXPECT(
        &c, BEGUN I1000 I1004 I1014 I1018 I1008 I100C, BEGIN, E, E, AT(0x1008),
        {.type = TL_ETM4_CANCEL, .value = 1, .n = 2, .value2 = 1, .flags = TL_ETM4_IS_MISPREDICT},
        COMMIT(2), E, COMMIT(1));
    /* exceptions count as elements, together with their address */
    EXPECT(&c, BEGUN I1000 I1004 "X irq 14 0000000000001014\n", BEGIN, E, EXC(14, 1), AT(0x1014),
           COMMIT(2));
    /* cycle counts also commit, and keep their place */
    EXPECT(&c, BEGUN I1000 I1004 "Y 7\n", BEGIN, E,
           {.type = TL_ETM4_CYCLE_COUNT,
            .value = 7,
            .value2 = 1,
            .flags = TL_ETM4_HAS_COUNT | TL_ETM4_HAS_COMMIT});
}

static void starts_amid_speculation(void **state)
{
    struct tl_etm4_config c = plain;
    c.max_spec_depth = 4;
    EXPECT(&c, "", ASYNC, INFO_D(2), ON, AT_EL1(0x1000), E);
    EXPECT(&c, BEGUN I1000 I1004, ASYNC, INFO_D(2), ON, AT_EL1(0x1000), E, COMMIT(3));
    EXPECT(&c, BEGUN I1000 I1004, ASYNC, INFO_D(2), COMMIT(1), ON, AT_EL1(0x1000), E, COMMIT(2));
    EXPECT(&c, "O\n", ASYNC, INFO_D(3), CANCEL(2), ON, MISPREDICT, COMMIT(1));
}

static void rejects_impossible_resolution(void **state)
{
    struct tl_etm4_config c = plain;
    c.max_spec_depth = 2;
    EXPECT_LOSS(&c, BEGUN I1000 I1004 "G bad-packet\n",
                "commit of more elements than there are 5 3", BEGIN, E, COMMIT(2), E, COMMIT(1));
    EXPECT_LOSS(&c, BEGUN "G bad-packet\n", "cancel of more elements than there are 5 1", BEGIN, E,
                CANCEL(2));
    EXPECT_LOSS(&c, BEGUN "G bad-packet\n", "mispredict without an atom 4 1", BEGIN, MISPREDICT);
    /* a unit that never speculates may still commit in cycle counts */
    EXPECT(&plain, BEGUN I1000 I1004 I1014 I1018, BEGIN, E, COMMIT(1), E);
}

/* ---- lost synchronisation ---------------------------------------------------------------- */

static void waits_after_loss(void **state)
{
    struct tl_etm4_config c = plain;
    c.max_spec_depth = 4;
    EXPECT_LOSS(&plain, BEGUN "G overflow\n" BEGUN I1000 I1004, "trace unit overflow 4 4", BEGIN,
                {.type = TL_ETM4_OVERFLOW}, E, AT(0x1000), ASYNC, INFO, ON, AT_EL1(0x1000), E);
    EXPECT_LOSS(&plain, BEGUN "G bad-packet\n" BEGUN I1000 I1004, "bad packet 4 3", BEGIN,
                {.type = TL_ETM4_BAD}, {.type = TL_ETM4_BAD}, BEGIN, E);
    /* uncommitted P0 elements are dropped, other elements are not */
    EXPECT_LOSS(&c, BEGUN "T 9\nV 3\nA timestamp marker\nS ite 0 0000000000000001\nG discard\n",
                "trace unit discard 9 1", BEGIN, E, TIME(9), {.type = TL_ETM4_EVENT, .value = 3},
                {.type = TL_ETM4_TS_MARKER}, {.type = TL_ETM4_ITE, .value = 1},
                {.type = TL_ETM4_DISCARD});
}

static void gives_branches_without_image(void **state)
{
    const struct tl_etm4_packet packets[] = {BEGIN,      E,          AT(0x5000), ATOMS(3, 0),
                                             EXC(14, 1), AT(0x5008), AT(0x80)};
    expect_with(&plain, NULL, packets, sizeof packets / sizeof packets[0],
                BEGUN "B - 0000000000001000\nB - 0000000000005000\nX irq 14 0000000000005008\n"
                      "B - 0000000000000080\n",
                "");
    /* an empty image is equivalent to none */
    struct tl_image *empty;
    assert_int_equal(tl_image_new(&empty), TL_OK);
    assert_int_equal(tl_image_freeze(empty), TL_OK);
    expect_with(&plain, empty, packets, 5, BEGUN "B - 0000000000001000\n", "");
    tl_image_free(empty);
    const struct tl_etm4_packet source[] = {BEGIN, SOURCE(0x1004)};
    expect_with(&plain, NULL, source, 5, BEGUN "B - 0000000000001000\nN 0000000000001004\n", "");
}

static void reports_modes_and_contexts(void **state)
{
#define CONTEXT(el, more)                                                                          \
    {.type = TL_ETM4_CONTEXT,                                                                      \
     .flags = TL_ETM4_HAS_CONTEXT | (uint32_t)(el) << TL_ETM4_EL_SHIFT | (more)}
    EXPECT(&plain, "M el0.ns.a64\nM el3.s.a64\nM el2.realm.a64\nM el3.root.a64\nM el0.ns.a32\n",
           ASYNC, INFO, CONTEXT(0, TL_ETM4_SF | TL_ETM4_NS), CONTEXT(3, TL_ETM4_SF),
           CONTEXT(3, TL_ETM4_SF), CONTEXT(2, TL_ETM4_SF | TL_ETM4_NS | TL_ETM4_NSE),
           {.type = TL_ETM4_CONTEXT}, CONTEXT(3, TL_ETM4_SF | TL_ETM4_NSE), CONTEXT(0, TL_ETM4_NS));
    EXPECT(&plain, "M el0.ns.t32\nG no-path\nM el0.ns.a32\n", ASYNC, INFO,
           {.type = TL_ETM4_ADDRESS,
            .value = 0x1000,
            .flags = TL_ETM4_HAS_CONTEXT | TL_ETM4_NS | TL_ETM4_IS1},
           AT(0x1000));
    EXPECT(&plain, "M el0.ns.a64\nC 5 -\nC 5 7\nC 6 7\n", ASYNC, INFO,
           {.type = TL_ETM4_CONTEXT,
            .context_id = 5,
            .flags = TL_ETM4_HAS_CONTEXT | TL_ETM4_SF | TL_ETM4_NS | TL_ETM4_HAS_CTXID},
           {.type = TL_ETM4_CONTEXT,
            .context_id = 5,
            .vmid = 7,
            .flags = TL_ETM4_HAS_CONTEXT | TL_ETM4_SF | TL_ETM4_NS | TL_ETM4_HAS_CTXID |
                     TL_ETM4_HAS_VMID},
           {.type = TL_ETM4_CONTEXT,
            .context_id = 6,
            .flags = TL_ETM4_HAS_CONTEXT | TL_ETM4_SF | TL_ETM4_NS | TL_ETM4_HAS_CTXID});
    /* the image is only mapped for non-secure EL1, EL0 and EL2 */
    EXPECT(&plain, "M el1.s.a64\nB - 0000000000001000\nG no-image\nM el2.ns.a64\n" I1000 I1004,
           ASYNC, INFO,
           {.type = TL_ETM4_ADDRESS, .value = 0x1000, .flags = EL1 & ~(uint32_t)TL_ETM4_NS}, E,
           {.type = TL_ETM4_ADDRESS, .value = 0x1000, .flags = EL1 + (1 << TL_ETM4_EL_SHIFT)}, E);
}

static void add_code(struct tl_image *to, const struct tl_image_context *context, uint64_t at,
                     uint32_t first, uint32_t second)
{
    uint8_t bytes[8];
    tl_put_le32(bytes, first);
    tl_put_le32(bytes + 4, second);
    assert_int_equal(tl_image_bind(to, context), TL_OK);
    assert_int_equal(tl_image_add_bytes(to, at, (struct tl_bytes){bytes, sizeof bytes},
                                        TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
}

/* Two processes have different code at the same address; each executes a loop there, in turn. */
static void follows_the_process(void **state)
{
    static const struct tl_image_context one = {.context_id = 1, .has_context_id = true};
    static const struct tl_image_context two = {.context_id = 2, .vmid = 3, true, true};
    struct tl_image *with;
    assert_int_equal(tl_image_new(&with), TL_OK);
    add_code(with, &one, 0x8000, 0xd503201f, 0x17ffffff); /* nop; b 8000 */
    add_code(with, &two, 0x8000, 0x14000001, 0x17ffffff); /* b 8004; b 8000 */
    add_code(with, NULL, 0x9000, 0xd503201f, 0xd65f03c0); /* nop; ret */
    assert_int_equal(tl_image_freeze(with), TL_OK);
#define IN(a, c, v)                                                                                \
    {                                                                                              \
        .type = TL_ETM4_ADDRESS, .value = (a), .context_id = (c), .vmid = (v),                     \
        .flags = EL1 | TL_ETM4_HAS_CTXID | TL_ETM4_HAS_VMID                                        \
    }
    const struct tl_etm4_packet packets[] = {
        ASYNC,
        INFO,
        ON,
        IN(0x8000, 1, 3),
        E,
        E,
        IN(0x8000, 2, 3),
        E,
        E,
        IN(0x9000, 2, 3),
        E,
        IN(0x8000, 1, 0),
        E,
        IN(0x9000, 1, 0),
        E,
        IN(0x8000, 2, 3),
        E,
        /* and where nothing is mapped: */ IN(0x8000, 2, 0),
        E,
        IN(0x9000, 7, 7),
        E,
    };
#define ONE  "I 0000000000008000 d503201f\nI 0000000000008004 17ffffff\n"
#define BOTH "I 0000000000009000 d503201f\nI 0000000000009004 d65f03c0\n"
    expect_with(&plain, with, packets, sizeof packets / sizeof packets[0],
                BEGUN "C 1 3\n" ONE ONE "C 2 3\n"
                      "I 0000000000008000 14000001\nI 0000000000008004 17ffffff\nG no-path\n" BOTH
                      "C 1 0\n" ONE "G no-path\n" BOTH "C 2 3\n"
                      "I 0000000000008000 14000001\nC 2 0\nG no-path\nB - 0000000000008000\nG "
                      "no-image\nC 7 7\n" BOTH,
                "");
    tl_image_free(with);
}

/* A32 calls T32, which returns from an IT block, through the return stack and by address. */
static void changes_the_instruction_set(void **state)
{
    struct tl_etm4_config c = {.version = 0x42, .v8 = true, .aarch64 = true, .return_stack = true};
    struct tl_image *with;
    assert_int_equal(tl_image_new(&with), TL_OK);
    add_code(with, NULL, 0x2000, 0xfa000002, 0xeafffffe); /* blx 2010; b 2004 */
    add_code(with, NULL, 0x2010, 0xbf082800, 0xe7fe4770); /* cmp r0, #0; it eq; bxeq lr; b 2016 */
    assert_int_equal(tl_image_freeze(with), TL_OK);
#define EL0_A32(a)                                                                                 \
    {                                                                                              \
        .type = TL_ETM4_ADDRESS, .value = (a), .flags = TL_ETM4_HAS_CONTEXT | TL_ETM4_NS           \
    }
    const struct tl_etm4_packet packets[] = {
        ASYNC,       INFO,
        ON,          EL0_A32(0x2000),
        ATOMS(2, 3), E,
        ON,          EL0_A32(0x2000),
        ATOMS(2, 1), ATOMS(1, 1),
        ON,          EL0_A32(0x2000),
        ATOMS(2, 3), EL0_A32(0x2004),
        E,
    };
#define CALL   "I 0000000000002000 fa000002\nM el0.ns.t32\n" IN_T32
#define IN_T32 "I 0000000000002010 2800\nI 0000000000002012 bf08\nI 0000000000002014 4770\n"
#define BACK   "M el0.ns.a32\nI 0000000000002004 eafffffe\n"
    expect_with(&c, with, packets, sizeof packets / sizeof packets[0],
                "O\nM el0.ns.a32\n" CALL BACK "O\n" CALL "I 0000000000002016 e7fe\nO\n"
                "M el0.ns.a32\n" CALL BACK,
                "");
    tl_image_free(with);
}

/* An exception in the middle of an instruction, which resumes later. */
static void interrupts_an_instruction(void **state)
{
    static const struct tl_etm4_config c = {.version = 0x44, .v8 = true, .m_profile = true};
    struct tl_image *with;
    assert_int_equal(tl_image_new(&with), TL_OK);
    add_code(with, NULL, 0x3000, 0x00f0e8b0, 0xe7fee7fe); /* ldm r0!, {r4-r7}; b .; b . */
    assert_int_equal(tl_image_freeze(with), TL_OK);
#define T32(a)                                                                                     \
    {                                                                                              \
        .type = TL_ETM4_ADDRESS, .value = (a), .flags = TL_ETM4_HAS_CONTEXT | TL_ETM4_IS1          \
    }
    const struct tl_etm4_packet packets[] = {ASYNC,     INFO,        ON,          T32(0x3000),
                                             EXC(2, 1), T32(0x3002), T32(0x3006), E};
    expect_with(&c, with, packets, sizeof packets / sizeof packets[0],
                "O\nM el0.s.t32\nI 0000000000003000 e8b000f0\nX NonMaskableInt 2 0000000000003002\n"
                "I 0000000000003006 e7fe\n",
                "");
    const struct tl_etm4_packet odd[] = {ASYNC, INFO, ON, T32(0x3000), EXC(2, 1), T32(0x3001)};
    expect_with(&c, with, odd, sizeof odd / sizeof odd[0],
                "O\nM el0.s.t32\nG no-path\nX NonMaskableInt 2 0000000000003001\n", "");
    tl_image_free(with);
}

/* Arbitrary packets give some result, the same for any batching. */
static void survives_any_packets(void **state)
{
    enum { PACKETS = 400 };
    static struct tl_etm4_packet p[PACKETS];
    const unsigned seed = 4711;
    print_message("seed %u\n", seed);
    srandom(seed);
    for (int round = 0; round < 1500; round++) {
        struct tl_etm4_config c = plain;
        c.ete = random() & 1;
        c.m_profile = random() % 4 == 0;
        c.return_stack = random() & 1;
        c.trans_p0 = random() & 1;
        c.max_spec_depth = random() % 3 ? 0 : (uint32_t)random() % 6;
        p[0] = (struct tl_etm4_packet)ASYNC;
        p[1] = (struct tl_etm4_packet)INFO;
        p[2] = (struct tl_etm4_packet)AT_EL1(0x1000);
        for (size_t i = 3; i < PACKETS; i++) {
            static const uint8_t often[] = {TL_ETM4_ATOM, TL_ETM4_ADDRESS, TL_ETM4_EXCEPTION,
                                            TL_ETM4_COMMIT, TL_ETM4_CANCEL};
            p[i] = (struct tl_etm4_packet){0};
            p[i].type = random() % 3 ? often[random() % 5] : (uint8_t)(random() % TL_ETM4_TYPES);
            if ((p[i].type == TL_ETM4_BAD || p[i].type == TL_ETM4_OVERFLOW ||
                 p[i].type == TL_ETM4_DISCARD) &&
                random() % 8)
                p[i].type = TL_ETM4_ASYNC;
            p[i].flags = (uint32_t)random() & 0x1ffff;
            p[i].n =
                p[i].type == TL_ETM4_ATOM ? (uint8_t)(1 + random() % 64) : (uint8_t)(random() % 3);
            p[i].value = p[i].type == TL_ETM4_ADDRESS || p[i].type == TL_ETM4_SOURCE_ADDRESS ||
                                 p[i].type == TL_ETM4_Q
                             ? 0x1000 + (uint64_t)(random() % 12) * 4
                         : p[i].type == TL_ETM4_ATOM ? (uint64_t)random() << 32 | (uint64_t)random()
                                                     : (uint64_t)random() % 4;
            p[i].value2 = (uint64_t)random() % 5;
        }
        struct out a = {.losses = 0}, b = {.losses = 0};
        run(&c, image, p, PACKETS, 1, &a);
        run(&c, image, p, PACKETS, PACKETS, &b);
        assert_int_equal(a.text.n, b.text.n);
        assert_memory_equal(a.text.p, b.text.p, a.text.n);
        assert_int_equal(a.losses, b.losses);
        tl_buf_fini(&a.text);
        tl_buf_fini(&b.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_branches),
        cmocka_unit_test(trace_and_program_differ),
        cmocka_unit_test(waits_for_sync),
        cmocka_unit_test(reports_missing_addresses),
        cmocka_unit_test(uses_the_return_stack),
        cmocka_unit_test(keeps_the_newest_returns),
        cmocka_unit_test(takes_exceptions),
        cmocka_unit_test(knows_the_m_profile),
        cmocka_unit_test(doubts_its_depth),
        cmocka_unit_test(knows_ete),
        cmocka_unit_test(takes_source_addresses),
        cmocka_unit_test(takes_q_elements),
        cmocka_unit_test(commits_and_cancels),
        cmocka_unit_test(starts_amid_speculation),
        cmocka_unit_test(rejects_impossible_resolution),
        cmocka_unit_test(waits_after_loss),
        cmocka_unit_test(gives_branches_without_image),
        cmocka_unit_test(reports_modes_and_contexts),
        cmocka_unit_test(follows_the_process),
        cmocka_unit_test(changes_the_instruction_set),
        cmocka_unit_test(interrupts_an_instruction),
        cmocka_unit_test(survives_any_packets),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
