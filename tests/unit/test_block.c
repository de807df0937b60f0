/* SPDX-License-Identifier: MIT */
#include "flow/block.h"
#include "flow/item.h"
#include "sim/program_rng.h"
#include "stf/close.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint32_t a64_code[] = {
    0xd503201f, /* 1000 nop */
    0xd4000001, /* svc: not a waypoint */
    0x94000002, /* 1008 bl 1010 */
    0xd65f03c0, /* 100c ret */
    0x54ffff80, /* 1010 b.eq 1000 */
    0xd5033fdf, /* 1014 isb */
    0xd503207f, /* 1018 wfi */
    0xd503201f, /* 101c nop, then the image ends */
};

static const uint8_t t32_code[] = {
    0x08, 0xbf,             /* 2000 it eq */
    0x70, 0x47,             /* 2002 bxeq lr */
    0x00, 0xf0, 0x00, 0xf8, /* 2004 bl 2008 */
    0x04, 0xbf,             /* 2008 itt eq */
    0x08, 0x46,             /* 200a moveq r0, r1 */
    0x00, 0xe0,             /* 200c b(eq) 2010: the last of its IT block */
    0x00, 0xf0,             /* 200e the first half of something */
};

static const uint8_t rv_code[] = {
    0x01, 0x00,                   /* 3000 c.nop */
    0x73, 0x00, 0x00, 0x00,       /* 3002 ecall: ends the block */
    0x1f, 0x00, 1,    2,    3, 4, /* 3006 48 bits */
    0x82, 0x80,                   /* 300c ret */
};

struct fixture {
    struct tl_image *image;
    struct tl_block_cache *cache;
};

static int setup(void **state)
{
    static struct fixture f;
    const struct tl_isa_options options = {0};
    uint8_t bytes[sizeof a64_code];
    for (size_t i = 0; i < sizeof a64_code / 4; i++)
        tl_put_le32(bytes + 4 * i, a64_code[i]);
    assert_int_equal(tl_image_new(&f.image), TL_OK);
    const struct tl_bytes pieces[] = {
        {bytes, sizeof bytes}, {t32_code, sizeof t32_code}, {rv_code, sizeof rv_code}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            tl_image_add_bytes(f.image, 0x1000 * (i + 1), pieces[i], TL_SPACE_EL1N, NULL, NULL),
            TL_OK);
    assert_int_equal(tl_image_freeze(f.image), TL_OK);
    assert_int_equal(tl_block_cache_new(&f.cache, f.image, &options), TL_OK);
    tl_block_cache_code(f.cache, tl_stf_block_code);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tl_block_cache_free(f->cache);
    tl_image_free(f->image);
    return 0;
}

static void splits_at_waypoints(void **state)
{
    struct fixture *f = *state;
    struct tl_block *b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1000);
    assert_int_equal(b->n, 3);
    assert_int_equal(b->size, 12);
    assert_int_equal(b->end, TL_BLOCK_WAYPOINT);
    assert_int_equal(b->last_kind, TL_INSN_BRANCH);
    assert_int_equal(b->target, 0x1010);
    assert_true(b->link && !b->conditional && !b->is_return);
    assert_int_equal(b->function, TL_NO_FUNCTION);
    assert_ptr_equal(tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1000), b);

    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1008);
    assert_int_equal(b->n, 1);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x100c);
    assert_true(b->n == 1 && b->is_return && b->last_kind == TL_INSN_INDIRECT);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1010);
    assert_true(b->n == 1 && b->conditional && b->target == 0x1000);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1014);
    assert_true(b->n == 1 && b->last_kind == TL_INSN_SYNC);
}

static void ends_where_the_image_does(void **state)
{
    struct fixture *f = *state;
    struct tl_block *b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1018);
    assert_int_equal(b->n, 2); /* WFI is not a waypoint without the option */
    assert_int_equal(b->end, TL_BLOCK_UNMAPPED);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1020);
    assert_true(b->n == 0 && b->size == 0 && b->pc == 0x1020 && b->end == TL_BLOCK_UNMAPPED);
    b = tl_block_get(f->cache, TL_SPACE_EL1S, TL_ISA_A64, 0x1000);
    assert_int_equal(b->n, 0);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x101e); /* half an instruction */
    assert_int_equal(b->n, 0);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_NONE, 0x1000);
    assert_int_equal(b->n, 0);
}

static void keeps_instruction_sets_apart(void **state)
{
    struct fixture *f = *state;
    struct tl_block *a64 = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x2000);
    struct tl_block *t32 = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_T32, 0x2000);
    struct tl_block *any = tl_block_get(f->cache, TL_SPACE_ANY, TL_ISA_T32, 0x2000);
    assert_true(a64->isa == TL_ISA_A64 && t32->isa == TL_ISA_T32);
    assert_ptr_not_equal(a64, t32);
    assert_ptr_not_equal(any, t32);
    assert_int_equal(any->n, t32->n);
}

static void follows_it_blocks(void **state)
{
    struct fixture *f = *state;
    struct tl_block *b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_T32, 0x2000);
    assert_true(b->n == 2 && b->size == 4 && b->conditional && b->is_return);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_T32, 0x2004);
    assert_true(b->n == 1 && b->size == 4 && !b->conditional && b->target == 0x2008);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_T32, 0x2008);
    assert_true(b->n == 3 && b->conditional && b->target == 0x2010);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_T32, 0x200e);
    assert_true(b->n == 0 && b->end == TL_BLOCK_UNMAPPED);
}

static void prepares_records(void **state)
{
    struct fixture *f = *state;
    static const uint8_t a64[] = {0xf0, 0x1f, 0x20, 0x03, 0xd5, 0xf0, 0x01, 0x00,
                                  0x00, 0xd4, 0xf0, 0x02, 0x00, 0x00, 0x94};
    struct tl_block *b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1000);
    assert_int_equal(b->coded_size, sizeof a64);
    assert_memory_equal(b->coded, a64, sizeof a64);
    assert_int_equal(b->last_coded, 5);

    static const uint8_t t32[] = {0xf1, 0x08, 0xbf, 0xf1, 0x70, 0x47};
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_T32, 0x2000);
    assert_int_equal(b->coded_size, sizeof t32);
    assert_memory_equal(b->coded, t32, sizeof t32);
    static const uint8_t wide[] = {0xf0, 0x00, 0xf8, 0x00, 0xf0}; /* first halfword on top */
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_T32, 0x2004);
    assert_memory_equal(b->coded, wide, sizeof wide);

    static const uint8_t odd[] = {0x1f, 0x0c, 0x30, 0,    0, 0,    0,    0,    0,   0xe6,
                                  4,    0x1f, 0x00, 1,    2, 0xe6, 2,    3,    4,   0,
                                  0,    0xf0, 0x1f, 0x00, 1, 2,    0xf1, 0x82, 0x80};
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_RV64, 0x3006);
    assert_int_equal(b->n, 2);
    assert_int_equal(b->coded_size, sizeof odd);
    assert_memory_equal(b->coded, odd, sizeof odd);
}

static void ends_riscv_blocks_at_traps(void **state)
{
    struct fixture *f = *state;
    struct tl_block *b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_RV64, 0x3000);
    assert_true(b->n == 2 && b->last_kind == TL_INSN_TRAP && b->end == TL_BLOCK_WAYPOINT);
}

static void counts_instructions(void **state)
{
    struct fixture *f = *state;
    struct tl_block *b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_RV64, 0x3000);
    assert_int_equal(tl_block_bytes(b, 0), 0);
    assert_int_equal(tl_block_bytes(b, 1), 2);
    assert_int_equal(tl_block_bytes(b, 2), 6);
    assert_int_equal(tl_block_count_to(b, 0x3000), 0);
    assert_int_equal(tl_block_count_to(b, 0x3002), 1);
    assert_int_equal(tl_block_count_to(b, 0x3004), -1);
    assert_int_equal(tl_block_count_to(b, 0x3006), 2);
    assert_int_equal(tl_block_count_to(b, 0x3007), -1);
    b = tl_block_get(f->cache, TL_SPACE_EL1N, TL_ISA_A64, 0x1000);
    assert_int_equal(tl_block_count_to(b, 0x1008), 2);
    assert_int_equal(tl_block_count_to(b, 0x1009), -1);
}

/* Many blocks: the hash table grows, nothing moves, and a reset frees the memory. */
static void grows_and_resets(void **state)
{
    enum { N = 20000 };
    static struct tl_block *blocks[N];
    const struct tl_isa_options options = {0};
    struct tl_image *image;
    struct tl_block_cache *cache;
    uint8_t *code = calloc(N, 4);
    for (size_t i = 0; i < N; i++)
        tl_put_le32(code + 4 * i, i % 9 ? 0xd503201f : 0xd65f03c0);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(
        tl_image_add_bytes(image, 0, (struct tl_bytes){code, N * 4}, TL_SPACE_ANY, NULL, NULL),
        TL_OK);
    free(code);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_block_cache_new(&cache, image, &options), TL_OK);
    const size_t empty = tl_block_cache_bytes(cache);
    for (size_t i = 0; i < N; i++)
        blocks[i] = tl_block_get(cache, TL_SPACE_EL1N, TL_ISA_A64, i * 4);
    for (size_t i = 0; i < N; i++) {
        assert_ptr_equal(tl_block_get(cache, TL_SPACE_EL1N, TL_ISA_A64, i * 4), blocks[i]);
        assert_int_equal(blocks[i]->pc, i * 4);
        assert_int_equal(blocks[i]->n, i + 9 < N ? (9 - i % 9) % 9 + 1 : blocks[i]->n);
    }
    const size_t full = tl_block_cache_bytes(cache);
    assert_true(full > empty + N * sizeof(struct tl_block));
    for (uint64_t pc = 1 << 20; pc < 3 << 20; pc += 4) /* unmapped addresses cost no memory */
        assert_int_equal(tl_block_get(cache, TL_SPACE_EL1N, TL_ISA_A64, pc)->n, 0);
    assert_int_equal(tl_block_cache_bytes(cache), full);
    tl_block_cache_reset(cache);
    assert_true(tl_block_cache_bytes(cache) < full / 2);
    assert_int_equal(tl_block_get(cache, TL_SPACE_EL1N, TL_ISA_A64, 4)->n, 9);
    tl_block_cache_free(cache);
    tl_image_free(image);
}

static void map(struct tl_image *image, uint64_t address, size_t insns, unsigned space,
                const struct tl_image_context *context)
{
    static const uint8_t zeroes[64 * 4];
    assert_true(insns <= 64);
    assert_int_equal(tl_image_bind(image, context), TL_OK);
    assert_int_equal(
        tl_image_add_bytes(image, address, (struct tl_bytes){zeroes, insns * 4}, space, NULL, NULL),
        TL_OK);
}

/* If nothing was found once, another space or view may still have something, and so may the
 * neighbouring addresses. */
static void remembers_what_is_not_there(void **state)
{
    const struct tl_isa_options options = {0};
    const struct tl_image_context contexts[] = {{.has_context_id = true, .context_id = 7},
                                                {.has_vmid = true, .vmid = 3}};
    const unsigned spaces[] = {TL_SPACE_EL1N, TL_SPACE_EL2, TL_SPACE_ANY};
    uint64_t views[3] = {0};
    struct tl_image *image;
    struct tl_block_cache *cache;
    assert_int_equal(tl_image_new(&image), TL_OK);
    map(image, 0, 4, TL_SPACE_ANY, NULL);
    map(image, 0x2000, 8, TL_SPACE_EL1N, NULL);
    map(image, 0x2ff0, 8, TL_SPACE_EL2, NULL);
    map(image, 0x4000, 64, TL_SPACE_EL1N, &contexts[0]);
    map(image, 0x4080, 64, TL_SPACE_ANY, &contexts[1]);
    map(image, UINT64_MAX - 15, 4, TL_SPACE_ANY, NULL);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_block_cache_new(&cache, image, &options), TL_OK);
    for (size_t i = 0; i < 2; i++)
        views[i + 1] = tl_image_view(image, &contexts[i], 0, NULL);
    assert_true(views[1] != views[2] && views[1] && views[2]);
    uint64_t random = 1, found = 0;
    for (unsigned i = 0; i < 200000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t pc = (random >> 20 & 1 ? -0x40 : 0) + (random >> 32 & 0x57fc);
        const uint64_t view = views[(random >> 50) % 3];
        const unsigned space = spaces[(random >> 55) % 3];
        const bool is_there = tl_image_view_at(image, view, space, pc).n > 0;
        tl_block_cache_view(cache, view);
        const struct tl_block *const b = tl_block_get(cache, space, TL_ISA_A64, pc);
        assert_int_equal(b->n > 0, is_there);
        assert_int_equal(b->pc, pc);
        found += is_there;
        uint64_t first, last;
        if (is_there)
            continue;
        tl_image_view_void(image, view, space, pc, &first, &last);
        assert_true(first <= pc && pc <= last);
        assert_true(first == 0 || tl_image_view_at(image, view, space, first - 1).n > 0);
        assert_true(last == UINT64_MAX || tl_image_view_at(image, view, space, last + 1).n > 0);
    }
    assert_true(found > 1000);
    tl_block_cache_free(cache);
    tl_image_free(image);
}

static void limits_block_length(void **state)
{
    const struct tl_isa_options options = {0};
    struct tl_image *image;
    struct tl_block_cache *cache;
    const size_t n = TL_BLOCK_MAX + 10;
    uint8_t *code = malloc(n * 4);
    for (size_t i = 0; i < n; i++)
        tl_put_le32(code + 4 * i, 0xd503201f);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(
        tl_image_add_bytes(image, 0, (struct tl_bytes){code, n * 4}, TL_SPACE_ANY, NULL, NULL),
        TL_OK);
    free(code);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_block_cache_new(&cache, image, &options), TL_OK);
    const struct tl_block *b = tl_block_get(cache, TL_SPACE_ANY, TL_ISA_A64, 0);
    assert_true(b->n == TL_BLOCK_MAX && b->end == TL_BLOCK_FULL);
    b = tl_block_get(cache, TL_SPACE_ANY, TL_ISA_A64, b->size);
    assert_true(b->n == 10 && b->end == TL_BLOCK_UNMAPPED);
    tl_block_cache_free(cache);
    tl_image_free(image);
}

/* An IT block is not divided: the last of its instructions is conditional. */
static void keeps_it_blocks_whole(void **state)
{
    /* itt eq; moveq r0, r1; beq, the last of them; at the end of a full block and around it */
    static const uint16_t it[] = {0xbf04, 0x4608, 0xe000};
    const struct tl_isa_options options = {0};
    (void)state;
    for (size_t at = TL_BLOCK_MAX - 4; at <= TL_BLOCK_MAX; at++) {
        struct tl_image *image;
        struct tl_block_cache *cache;
        uint8_t code[2 * (TL_BLOCK_MAX + 3)];
        for (size_t i = 0; i < at + 3; i++)
            tl_put_le16(code + 2 * i, i < at ? 0xbf00 : it[i - at]);
        assert_int_equal(tl_image_new(&image), TL_OK);
        assert_int_equal(tl_image_add_bytes(image, 0, (struct tl_bytes){code, 2 * (at + 3)},
                                            TL_SPACE_ANY, NULL, NULL),
                         TL_OK);
        assert_int_equal(tl_image_freeze(image), TL_OK);
        assert_int_equal(tl_block_cache_new(&cache, image, &options), TL_OK);
        const struct tl_block *b = tl_block_get(cache, TL_SPACE_ANY, TL_ISA_T32, 0);
        if (b->end == TL_BLOCK_FULL)
            b = tl_block_get(cache, TL_SPACE_ANY, TL_ISA_T32, b->size);
        assert_true(b->end == TL_BLOCK_WAYPOINT && b->conditional && b->n >= 3);
        tl_block_cache_free(cache);
        tl_image_free(image);
    }
}

/* Cached lines equal those formatted each time, also for parts of blocks. */
static void has_its_lines_ready(void **state)
{
    static const uint8_t x64_code[] = {0x90, 0x48, 0x89, 0xc8, 0x66, 0x90, 0x0f, 0x1f,
                                       0x40, 0x00, 0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90,
                                       0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
    static const struct {
        enum tl_isa isa;
        uint64_t pc;
    } begins[] = {{TL_ISA_A64, 0x1000}, {TL_ISA_A32, 0x1000},  {TL_ISA_T32, 0x2000},
                  {TL_ISA_T32, 0x2004}, {TL_ISA_RV64, 0x3000}, {TL_ISA_RV64, 0x3006},
                  {TL_ISA_X64, 0x4000}};
    struct fixture *f = *state;
    const struct tl_isa_options options = {0};
    struct tl_image *image;
    struct tl_block_cache *cache;
    struct tl_buf plain = {0}, coded = {0};
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (size_t i = 0; i < 3; i++) {
        const struct tl_bytes code = tl_image_at(f->image, TL_SPACE_EL1N, 0x1000 * (i + 1));
        assert_int_equal(
            tl_image_add_bytes(image, 0x1000 * (i + 1), code, TL_SPACE_ANY, NULL, NULL), TL_OK);
    }
    assert_int_equal(tl_image_add_bytes(image, 0x4000, (struct tl_bytes){x64_code, sizeof x64_code},
                                        TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_block_cache_new(&cache, image, &options), TL_OK);
    tl_block_cache_code(cache, tl_item_text_insn);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const struct tl_block *const b =
            tl_block_get(cache, TL_SPACE_ANY, begins[i].isa, begins[i].pc);
        const uintptr_t twice[] = {tl_path_step(b, true), tl_path_step(b, false)};
        assert_true(b->n > 0 && b->coded);
        for (uint32_t n = 0; n <= b->n + 1; n++) {
            const struct tl_item item =
                n > b->n ? (struct tl_item){.kind = TL_ITEM_PATH, .n = 2, .path = twice}
                         : (struct tl_item){.kind = TL_ITEM_BLOCK, .n = n, .pc = b->pc, .block = b};
            tl_buf_reset(&plain);
            tl_buf_reset(&coded);
            assert_int_equal(tl_item_text(&plain, &item, 1), TL_OK);
            assert_int_equal(tl_item_text_coded(&coded, &item, 1), TL_OK);
            assert_int_equal(plain.n, coded.n);
            assert_true(plain.n > 0 || n == 0);
            assert_true(n == 0 || memcmp(plain.p, coded.p, plain.n) == 0);
        }
    }
    tl_buf_fini(&plain);
    tl_buf_fini(&coded);
    tl_block_cache_free(cache);
    tl_image_free(image);
}

/* Lines of x86 instructions of every size are what printf() makes of them; they use no more room
 * than is promised, and no byte behind the instruction. */
static void lines_are_as_printed(void **state)
{
    struct tl_sim_rng rng = {7};
    for (unsigned round = 0; round < 300; round++) {
        const unsigned size = 1 + round % 15;
        const uint64_t pc = (uint64_t)tl_sim_below(&rng, UINT32_MAX) << 32 | round * 0x9e3779b9U;
        const size_t most = TL_ITEM_INSN_TEXT + 2 * (size_t)size;
        uint8_t *const code = malloc(size), *const line = malloc(most); /* exact, for checkers */
        char printed[64];
        assert_true(code && line);
        int n = snprintf(printed, sizeof printed, "I %016llx ", (unsigned long long)pc);
        for (unsigned i = 0; i < size; i++) {
            code[i] = (uint8_t)tl_sim_below(&rng, 256);
            n += snprintf(printed + n, sizeof printed - (size_t)n, "%02x", code[i]);
        }
        printed[n++] = '\n';
        memset(line, 0x55, most);
        assert_int_equal(tl_item_text_insn(line, pc, code, size, 0, TL_ISA_X64), n);
        assert_true((size_t)n <= most);
        assert_memory_equal(line, printed, n);
        free(code);
        free(line);
    }
}

/* Random code of long blocks, for T32 with IT blocks and instructions of both sizes. */
static void put_random_code(uint8_t *out, size_t n, enum tl_isa isa, struct tl_sim_rng *rng)
{
    static const uint8_t a32[] = {0x01, 0x00, 0x80, 0xe2}, a64[] = {0x1f, 0x20, 0x03, 0xd5};
    for (size_t at = 0; at + 4 <= n;) {
        const uint32_t dice = tl_sim_below(rng, 40);
        const uint32_t any = tl_sim_below(rng, UINT32_MAX);
        if (isa != TL_ISA_T32) {
            memcpy(out + at, isa == TL_ISA_A32 ? a32 : a64, 4);
            if (dice == 0)
                tl_put_le32(out + at, any);
            at += 4;
            continue;
        }
        tl_put_le16(out + at, dice < 4    ? (uint16_t)(0xbf01 | (any & 0xfe)) /* IT */
                              : dice < 5  ? (uint16_t)any
                              : dice < 12 ? 0xf8d1u /* LDR.W */
                                          : 0x3001u /* ADDS */);
        at += 2;
        if (dice >= 5 && dice < 12) {
            tl_put_le16(out + at, 4);
            at += 2;
        }
    }
}

static void assert_alike(const struct tl_block *a, const struct tl_block *b)
{
    struct tl_block x = *a, y = *b;
    assert_int_equal(x.coded_size, y.coded_size);
    assert_true(x.coded_size == 0 || memcmp(x.coded, y.coded, x.coded_size) == 0);
    x.coded = y.coded = NULL;
    x.number = y.number = 0;
    memset(x.go, 0, sizeof x.go);
    memset(y.go, 0, sizeof y.go);
    assert_memory_equal(&x, &y, sizeof x);
}

/* What is left of a block that was executed in part is as if it were decoded by itself. */
static void rests_are_blocks(void **state)
{
    static const enum tl_isa isas[] = {TL_ISA_A32, TL_ISA_T32, TL_ISA_A64};
    enum { BYTES = 3000, BASE = 0x8000 };
    const struct tl_isa_options options = {.arch_major = 7, .profile = 'M'};
    struct tl_sim_rng rng = {5};
    uint32_t compared = 0;
    (void)state;
    for (unsigned round = 0; round < 12; round++) {
        const enum tl_isa isa = isas[round % 3];
        static uint8_t code[BYTES + 4];
        struct tl_image *image;
        struct tl_block_cache *parts, *alone;
        put_random_code(code, sizeof code, isa, &rng);
        assert_int_equal(tl_image_new(&image), TL_OK);
        assert_int_equal(tl_image_add_bytes(image, BASE, (struct tl_bytes){code, BYTES},
                                            TL_SPACE_ANY, NULL, NULL),
                         TL_OK);
        assert_int_equal(tl_image_freeze(image), TL_OK);
        assert_int_equal(tl_block_cache_new(&parts, image, &options), TL_OK);
        assert_int_equal(tl_block_cache_new(&alone, image, &options), TL_OK);
        if (round % 4) {
            tl_block_cache_code(parts, tl_item_text_insn);
            tl_block_cache_code(alone, tl_item_text_insn);
        }
        uint64_t pc = BASE;
        while (pc < BASE + BYTES) {
            const struct tl_block *b = tl_block_get(parts, TL_SPACE_ANY, isa, pc);
            assert_alike(b, tl_block_get(alone, TL_SPACE_ANY, isa, pc));
            compared++;
            const uint32_t n = b->n > 0 ? 1 + tl_sim_below(&rng, b->n < 4 ? b->n : 4) : 0;
            const uint32_t bytes = n ? tl_block_bytes(b, n) : 2;
            if (n > 0 && n < b->n)
                tl_block_cache_begun(parts, b, n, bytes);
            pc += bytes;
        }
        tl_block_cache_free(parts);
        tl_block_cache_free(alone);
        tl_image_free(image);
    }
    assert_true(compared > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_at_waypoints),
        cmocka_unit_test(ends_where_the_image_does),
        cmocka_unit_test(keeps_instruction_sets_apart),
        cmocka_unit_test(follows_it_blocks),
        cmocka_unit_test(prepares_records),
        cmocka_unit_test(ends_riscv_blocks_at_traps),
        cmocka_unit_test(counts_instructions),
        cmocka_unit_test(grows_and_resets),
        cmocka_unit_test(remembers_what_is_not_there),
        cmocka_unit_test(limits_block_length),
        cmocka_unit_test(keeps_it_blocks_whole),
        cmocka_unit_test(has_its_lines_ready),
        cmocka_unit_test(lines_are_as_printed),
        cmocka_unit_test(rests_are_blocks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
