/* SPDX-License-Identifier: MIT */
/* Flow items to STF and back: the same items, however they are cut into chunks and shards. */
#include "test_stf_util.h"

#include "image/image.h"
#include "isa/x86.h"
#include "sim/x86_code.h"
#include "stf/flow/flow_reader.h"
#include "stf/flow/flow_writer.h"

#define BASE 0x10000u

struct world {
    struct tl_image *image;
    struct tl_block_cache *cache;
    enum tl_isa isa;
    uint32_t code_size;
};

/* Mostly plain instructions, some branches of each kind. */
static const uint32_t a64[] = {
    0xd503201f, 0x91000400, 0xaa0003e1, 0xf9400020, /* nop, add, mov, ldr */
    0x14000004, 0x54000080, 0x94000010, 0xd65f03c0, /* b, b.eq, bl, ret */
    0xd61f0020, 0xd63f0020, 0x91000421, 0xb4000060, /* br, blr, add, cbz */
    0xd69f03e0, 0x8b010000, 0xcb010000, 0xf9000020, /* eret, add, sub, str */
};
/* c.nop, c.li, c.mv and addi, jal, beq, jalr, ret, mret … */
static const uint32_t rv[] = {0x0001, 0x4501,     0x852e,     0x00a50513, 0x0080006f, 0x00b50463,
                              0x8082, 0x000500e7, 0x00a58533, 0x9002,     0x30200073, 0x00053503,
                              0xa001, 0xc111,     0x0001,     0x00100513};

static bool is_x86(enum tl_isa isa)
{
    return isa == TL_ISA_X64 || isa == TL_ISA_X32 || isa == TL_ISA_X16;
}

static void world_init(struct world *w, enum tl_isa isa, uint64_t *seed)
{
    uint8_t code[4096];
    uint32_t n = is_x86(isa) ? tl_sim_x86_code(isa, code, sizeof code, rng_next(seed)) : 0;
    while (!is_x86(isa) && n + 4 <= sizeof code) {
        const uint32_t pick = (uint32_t)(rng_next(seed) % 16);
        const uint32_t op = isa == TL_ISA_A64 ? a64[pick] : rv[pick];
        tl_put_le32(code + n, op);
        n += isa == TL_ISA_A64 || (op & 3) == 3 ? 4 : 2;
    }
    w->isa = isa;
    w->code_size = n;
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(
        tl_image_add_bytes(w->image, BASE, (struct tl_bytes){code, n}, TL_SPACE_ANY, "code", NULL),
        TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
    const struct tl_isa_options options = {.arch_major = 8, .profile = 'A'};
    assert_int_equal(tl_block_cache_new(&w->cache, w->image, &options), TL_OK);
    if (rng_next(seed) % 4 > 0) /* otherwise records are encoded from blocks as they arrive */
        tl_block_cache_code(w->cache, tl_stf_block_code);
}

static void world_fini(struct world *w)
{
    tl_block_cache_free(w->cache);
    tl_image_free(w->image);
}

/* ---- items ----------------------------------------------------------------------------------- */

struct script {
    struct tl_item items[600];
    size_t n;
};

static struct tl_item *add(struct script *s, uint8_t kind)
{
    struct tl_item *const item = &s->items[s->n++];
    *item = (struct tl_item){.kind = kind};
    return item;
}

/* An address of an instruction, found by walking from the start. */
static uint64_t some_pc(const struct world *w, uint64_t *seed)
{
    const uint32_t want = (uint32_t)(rng_next(seed) % (w->code_size - 64));
    if (w->isa == TL_ISA_A64)
        return BASE + want / 4 * 4;
    uint32_t at = 0;
    while (at < want) {
        const struct tl_bytes code = tl_image_at(w->image, TL_SPACE_ANY, BASE + at);
        struct tl_x86_insn insn;
        if (is_x86(w->isa))
            assert_true(tl_x86_decode(w->isa, code, &insn) > 0);
        at += is_x86(w->isa) ? insn.size : (code.p[0] & 3) == 3 ? 4 : 2;
    }
    return BASE + at;
}

static const char *const names[] = {"irq", "data-fault", "a-name-of-more-than-eight-bytes", "x"};

/* Of all decoders that tell software trace. */
static const char *const sources[] = {"itm", "stm", "osd-stm", "uart", "uart-in", "ite", "ptwrite"};
static const uint8_t payload[] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Add an item that may occur between two blocks. Returns whether it interrupts the flow. */
static bool add_between(struct script *s, const struct world *w, uint64_t next, bool comments,
                        uint64_t *seed)
{
    bool broken = false;
    switch (rng_next(seed) % 24) {
    case 0: {
        struct tl_item *const x = add(s, TL_ITEM_EXCEPTION);
        x->flags = rng_next(seed) % 4 ? TL_ITEM_HAS_PC : 0;
        x->pc = x->flags ? next : 0;
        x->sub = (uint16_t)(rng_next(seed) % 1024);
        x->text = names[rng_next(seed) % 4];
        break;
    }
    case 1:
        add(s, TL_ITEM_MODE)->value = tl_mode(w->isa == TL_ISA_A64 ? TL_ARCH_ARM
                                              : is_x86(w->isa)     ? TL_ARCH_X86
                                                                   : TL_ARCH_RISCV,
                                              rng_next(seed) % 4, rng_next(seed) % 4, w->isa);
        break;
    case 2: {
        struct tl_item *const c = add(s, TL_ITEM_CONTEXT);
        c->flags = (uint8_t)(rng_next(seed) & (TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE));
        c->pc = c->flags & TL_ITEM_HAS_PC ? rng_next(seed) >> 16 : 0;
        c->value = c->flags & TL_ITEM_HAS_VALUE ? rng_next(seed) & 0xffff : 0;
        break;
    }
    case 3:
        add(s, TL_ITEM_GAP)->sub = TL_GAP_OVERFLOW;
        broken = true;
        break;
    case 4:
        add(s, TL_ITEM_TRACE_ON);
        broken = true;
        break;
    case 5:
        add(s, TL_ITEM_ERET);
        break;
    case 6:
        if (comments)
            add(s, TL_ITEM_TIME)->value = rng_next(seed);
        break;
    case 7:
        if (comments) {
            struct tl_item *const software = add(s, TL_ITEM_SOFTWARE);
            software->name = sources[rng_next(seed) % (sizeof sources / sizeof *sources)];
            software->data = payload;
            software->n = 1 + rng_next(seed) % sizeof payload;
        }
        break;
    default:
        break;
    }
    return broken;
}

/* A walk through the program with exceptions and gaps, containing only legal sequences. */
static void make_script(struct script *s, const struct world *w, bool comments, bool points,
                        uint64_t *seed)
{
    s->n = 0;
    uint64_t pc = some_pc(w, seed);
    while (s->n < 500) {
        if (points && rng_next(seed) % 6 == 0) {
            struct tl_item *const b = add(s, rng_next(seed) % 4 ? TL_ITEM_BRANCH : TL_ITEM_UNKNOWN);
            b->flags = TL_ITEM_HAS_PC;
            b->pc = pc;
            if (b->kind == TL_ITEM_BRANCH) {
                b->flags |= TL_ITEM_HAS_VALUE;
                b->value = pc = some_pc(w, seed);
                if (comments)
                    b->flags |= (uint8_t)(rng_next(seed) & (TL_ITEM_CALL | TL_ITEM_RETURN));
                if (rng_next(seed) % 8 == 0 && s->n > 1 &&
                    s->items[s->n - 2].kind == TL_ITEM_BLOCK) {
                    b->flags &= (uint8_t)~TL_ITEM_HAS_PC;
                    b->pc = 0;
                }
            }
            continue;
        }
        const struct tl_block *const block = tl_block_get(w->cache, TL_SPACE_ANY, w->isa, pc);
        assert_non_null(block);
        if (block->n == 0) {
            add(s, TL_ITEM_TRACE_ON);
            pc = some_pc(w, seed);
            continue;
        }
        struct tl_item *const item = add(s, TL_ITEM_BLOCK);
        item->block = block;
        item->pc = pc;
        const bool part = rng_next(seed) % 8 == 0;
        item->n = part ? 1 + (uint32_t)(rng_next(seed) % block->n) : block->n;
        const bool branch = block->last_kind == TL_INSN_BRANCH ||
                            block->last_kind == TL_INSN_INDIRECT ||
                            block->last_kind == TL_INSN_RETURN_EX;
        uint64_t next = pc + tl_block_bytes(block, item->n);
        if (item->n == block->n && branch && (!block->conditional || rng_next(seed) % 2)) {
            item->flags = TL_ITEM_TAKEN;
            next = block->last_kind == TL_INSN_BRANCH ? block->target : some_pc(w, seed);
        }
        if (next < BASE || next >= BASE + w->code_size - 64)
            next = some_pc(w, seed);
        if (add_between(s, w, next, comments, seed) || rng_next(seed) % 16 == 0)
            next = some_pc(w, seed);
        pc = next;
    }
}

static void text_of(const struct tl_item *items, size_t n, struct tl_buf *out)
{
    assert_int_equal(tl_item_text(out, items, n), TL_OK);
}

static int sink_text(void *context, const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

/* Copy the lines of the text that begin with one of `kinds`. */
static void only(const struct tl_buf *text, const char *kinds, struct tl_buf *out)
{
    tl_buf_reset(out);
    for (size_t i = 0; i < text->n;) {
        size_t end = i;
        while (end < text->n && text->p[end] != '\n')
            end++;
        end += end < text->n;
        if (strchr(kinds, text->p[i]))
            assert_int_equal(tl_buf_add(out, text->p + i, end - i), TL_OK);
        i = end;
    }
}

static void assert_same_text(const struct tl_buf *a, const struct tl_buf *b)
{
    const size_t n = a->n < b->n ? a->n : b->n;
    size_t i = 0;
    while (i < n && a->p[i] == b->p[i])
        i++;
    if (a->n == b->n && i == n)
        return;
    size_t line = i;
    while (line > 0 && a->p[line - 1] != '\n')
        line--;
    printf("wanted:\n%.400s\ngot:\n%.400s\n", a->p + (line < a->n ? line : 0),
           b->p + (line < b->n ? line : 0));
    fail_msg("texts differ at byte %zu of %zu and %zu", i, a->n, b->n);
}

/* ---- writing as the store does --------------------------------------------------------------- */

struct shards {
    struct tl_buf file[16];
    size_t n;
};

/* Chunks and shards of `chunk` markers and `per_shard` chunks; items in random batches. */
static void write_shards(const struct script *s, const struct tl_stf_flow_options *options,
                         uint64_t chunk, unsigned per_shard, struct shards *out, uint64_t *seed)
{
    struct tl_stf_flow *flow;
    struct tl_zstf_writer *zstf;
    assert_int_equal(tl_stf_flow_new(&flow, options, NULL), TL_OK);
    assert_int_equal(tl_zstf_writer_new(&zstf, chunk, 1), TL_OK);
    out->n = 0;
    struct tl_buf *file = &out->file[out->n++];
    assert_int_equal(tl_zstf_writer_begin(zstf, file), TL_OK);
    uint64_t stop = chunk;
    uint8_t head[TL_ZSTF_HEAD];
    for (size_t i = 0; i < s->n;) {
        size_t batch = 1 + rng_next(seed) % 40;
        batch = batch < s->n - i ? batch : s->n - i;
        struct tl_stf_flow_at at = {0};
        int result;
        while ((result = tl_stf_flow_items(flow, s->items + i, batch, stop, &at)) == TL_AGAIN) {
            assert_int_equal(tl_stf_flow_markers(flow), stop);
            assert_int_equal(tl_zstf_writer_chunk(zstf, tl_stf_flow_bytes(flow), chunk,
                                                  tl_stf_flow_chunk_pc(flow), file),
                             TL_OK);
            tl_stf_flow_take(flow);
            stop += chunk;
            if (per_shard && stop > chunk * per_shard && out->n < 16) {
                assert_int_equal(tl_zstf_writer_finish(zstf, text_bytes("private"), file, head),
                                 TL_OK);
                memcpy(file->p, head, sizeof head);
                tl_stf_flow_restart(flow);
                stop = chunk;
                file = &out->file[out->n++];
                assert_int_equal(tl_zstf_writer_begin(zstf, file), TL_OK);
            }
        }
        assert_int_equal(result, TL_OK);
        i += batch;
    }
    assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
    const uint64_t rest = tl_stf_flow_markers(flow) - (stop - chunk);
    if (tl_stf_flow_bytes(flow).n)
        assert_int_equal(tl_zstf_writer_chunk(zstf, tl_stf_flow_bytes(flow), rest,
                                              tl_stf_flow_chunk_pc(flow), file),
                         TL_OK);
    assert_int_equal(tl_zstf_writer_finish(zstf, (struct tl_bytes){0}, file, head), TL_OK);
    memcpy(file->p, head, sizeof head);
    tl_zstf_writer_free(zstf);
    tl_stf_flow_free(flow);
}

static void shards_fini(struct shards *shards)
{
    for (size_t i = 0; i < 16; i++)
        tl_buf_fini(&shards->file[i]);
}

/*
 * Check that each shard is a valid trace by itself: header, order of records, PCs; and that all
 * chunks but the last are full.
 */
static uint64_t check_shard(const struct tl_buf *bytes, uint64_t chunk, bool points)
{
    struct tl_stf_file *file;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    struct tl_stf_order order = {0};
    const char *rule = "";
    uint64_t markers = 0;
    assert_int_equal(tl_stf_file_bytes(&file, bytes_of(bytes), NULL), TL_OK);
    assert_null(tl_stf_file_warning(file));
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_reader_open(&reader, &source), TL_OK);
    int result;
    while ((result = tl_stf_reader_next(reader, &record, NULL)) == TL_OK) {
        markers += tl_stf_is_marker(record.type);
        if (tl_stf_order_add(&order, &record, &rule) < 0 && !points)
            fail_msg("record at %llu breaks a rule: %s", (unsigned long long)record.offset, rule);
    }
    assert_int_equal(result, TL_EOF);
    assert_int_equal(tl_stf_reader_header(reader)->faults, 0);
    tl_stf_reader_free(reader);
    struct tl_zstf *const zstf = tl_stf_file_zstf(file);
    assert_non_null(zstf);
    struct tl_buf plain = {0};
    struct tl_stf_pc pc = {0};
    for (uint64_t i = 0; i < tl_zstf_chunks(zstf); i++) {
        uint64_t in_chunk = 0;
        tl_buf_reset(&plain);
        assert_int_equal(tl_zstf_read(zstf, i, &plain, NULL, NULL), TL_OK);
        assert_int_equal(tl_zstf_chunk(zstf, i)->start_pc, i ? pc.next : 0);
        assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
        const struct tl_stf_layout layout = {0};
        for (struct tl_bytes rest = bytes_of(&plain); rest.n;) {
            const int size = tl_stf_record_decode(&layout, rest, &record);
            assert_true(size > 0);
            tl_stf_pc_add(&pc, &record);
            in_chunk += tl_stf_is_marker(record.type);
            rest.p += size;
            rest.n -= (size_t)size;
            if (i + 1 < tl_zstf_chunks(zstf) && rest.n == 0)
                assert_true(tl_stf_is_marker(record.type));
        }
        if (i + 1 < tl_zstf_chunks(zstf))
            assert_int_equal(in_chunk, chunk);
        tl_stf_reader_free(reader);
    }
    tl_buf_fini(&plain);
    tl_stf_file_close(file);
    return markers;
}

static void read_shards(const struct shards *shards, struct tl_buf *text)
{
    struct tl_stf_flow_reader *reader;
    assert_int_equal(tl_stf_flow_reader_new(&reader, sink_text, text), TL_OK);
    for (size_t i = 0; i < shards->n; i++) {
        struct tl_stf_file *file;
        struct tl_stf_reader *records;
        struct tl_stf_record record;
        assert_int_equal(tl_stf_file_bytes(&file, bytes_of(&shards->file[i]), NULL), TL_OK);
        const struct tl_stf_source source = tl_stf_file_source(file);
        assert_int_equal(tl_stf_reader_open(&records, &source), TL_OK);
        while (tl_stf_reader_next(records, &record, NULL) == TL_OK)
            assert_int_equal(tl_stf_flow_reader_add(reader, &record), TL_OK);
        tl_stf_reader_free(records);
        tl_stf_file_close(file);
    }
    assert_int_equal(tl_stf_flow_reader_finish(reader), TL_OK);
    tl_stf_flow_reader_free(reader);
}

static uint64_t count_insns(const struct script *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->items[i].kind == TL_ITEM_BLOCK ? s->items[i].n : 0;
    return n;
}

static void round_trip(enum tl_isa isa, bool comments, bool points, uint64_t *seed)
{
    struct world w;
    static struct script s;
    struct shards shards = {0};
    struct tl_buf want = {0}, got = {0}, a = {0}, b = {0};
    world_init(&w, isa, seed);
    make_script(&s, &w, comments, points, seed);
    text_of(s.items, s.n, &want);
    const struct tl_stf_flow_options options = {.isa = isa, .comments = comments};
    const uint64_t chunk = 1 + rng_next(seed) % 400;
    const unsigned per_shard = (unsigned)(rng_next(seed) % 4);
    write_shards(&s, &options, chunk, per_shard, &shards, seed);
    uint64_t markers = 0;
    for (size_t i = 0; i < shards.n; i++)
        markers += check_shard(&shards.file[i], chunk, points);
    assert_int_equal(markers, count_insns(&s));
    read_shards(&shards, &got);
    /*
     * Instructions, branches and exceptions are in exactly this order; all other items are present.
     */
    const char *const kinds[] = {
        "INBX", "X", "M", "C", "R", comments ? "G" : "", comments ? "O" : "", comments ? "T" : ""};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        only(&want, kinds[i], &a);
        only(&got, kinds[i], &b);
        assert_same_text(&a, &b);
    }
    shards_fini(&shards);
    tl_buf_fini(&want);
    tl_buf_fini(&got);
    tl_buf_fini(&a);
    tl_buf_fini(&b);
    world_fini(&w);
}

static void test_random_items(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("random_items");
    static const enum tl_isa sets[] = {TL_ISA_RV64, TL_ISA_A64, TL_ISA_X64, TL_ISA_X32, TL_ISA_X16};
    for (int round = 0; round < 600; round++)
        round_trip(sets[round % 5], round & 2, round & 4, &seed);
}

static int keep_flags(void *context, const struct tl_item *items, size_t n)
{
    struct tl_buf *const out = context;
    for (size_t i = 0; i < n; i++) {
        const uint8_t flags = items[i].flags & (TL_ITEM_CALL | TL_ITEM_RETURN);
        const int result = items[i].kind == TL_ITEM_BRANCH ? tl_buf_add(out, &flags, 1) : TL_OK;
        if (result < 0)
            return result;
    }
    return TL_OK;
}

/* A stream of only branches has no marker: one chunk, and calls and returns are read back. */
static void test_branch_flags_come_back(void **state)
{
    (void)state;
    static struct script s;
    struct shards shards = {0};
    struct tl_buf flags = {0};
    uint64_t seed = 1;
    s.n = 0;
    for (unsigned i = 0; i < 100; i++)
        *add(&s, TL_ITEM_BRANCH) =
            (struct tl_item){.kind = TL_ITEM_BRANCH,
                             .flags = (uint8_t)(TL_ITEM_HAS_PC | (i % 4 & 1 ? TL_ITEM_CALL : 0) |
                                                (i % 4 & 2 ? TL_ITEM_RETURN : 0)),
                             .pc = 0x1000 + i * 4,
                             .value = 0x2000 + i * 8};
    const struct tl_stf_flow_options options = {.isa = TL_ISA_OR1K, .comments = true};
    write_shards(&s, &options, 10, 2, &shards, &seed);
    assert_int_equal(shards.n, 1);
    assert_int_equal(check_shard(&shards.file[0], 10, true), 0);
    struct tl_stf_file *file;
    assert_int_equal(tl_stf_file_bytes(&file, bytes_of(&shards.file[0]), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_flow_read(&source, keep_flags, &flags, NULL), TL_OK);
    assert_int_equal(flags.n, 100);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(flags.p[i], s.items[i].flags & (TL_ITEM_CALL | TL_ITEM_RETURN));
    tl_stf_file_close(file);
    tl_buf_fini(&flags);
    shards_fini(&shards);
}

static void add_note(struct script *s, const char *text)
{
    add(s, TL_ITEM_NOTE)->text = text;
}

/* Notes of accesses are records of the instruction in front of them, with comments and without. An
 * access without content, or without an instruction, is none. */
static void test_accesses_become_records(void **state)
{
    (void)state;
    for (unsigned comments = 0; comments < 2; comments++) {
        static struct script s;
        const struct tl_stf_flow_options options = {.isa = TL_ISA_A64, .comments = comments};
        struct tl_stf_flow_at at = {0};
        struct tl_stf_flow *flow;
        struct listing l = {0};
        struct world w;
        uint64_t seed = 3;
        world_init(&w, TL_ISA_A64, &seed);
        struct tl_block *const b = tl_block_get(w.cache, TL_SPACE_ANY, TL_ISA_A64, BASE);
        s.n = 0;
        add_note(&s, "INST_MEM_ACCESS addr=0x77 size=4 attr=0x0 access=1");
        for (unsigned i = 0; i < 2; i++) {
            *add(&s, TL_ITEM_BLOCK) = (struct tl_item){
                .kind = TL_ITEM_BLOCK, .flags = TL_ITEM_HAS_PC, .n = 1, .pc = BASE, .block = b};
            if (i == 0) {
                add_note(&s, "INST_MEM_ACCESS addr=0x5004 size=4 attr=0x0 access=2");
                add_note(&s, "INST_MEM_CONTENT data=0x1234");
                add_note(&s, "INST_MEM_CONTENT data=0x99");
                add_note(&s, "INST_MEM_ACCESS addr=0x5008 size=4 attr=0x0 access=2");
            }
        }
        assert_int_equal(tl_stf_flow_new(&flow, &options, NULL), TL_OK);
        assert_int_equal(tl_stf_flow_items(flow, s.items, s.n, UINT64_MAX, &at), TL_OK);
        assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
        list_bytes(tl_stf_flow_bytes(flow), &l);
        assert_int_equal(tl_buf_add(&l.text, "", 1), TL_OK);
        const char *const text = (const char *)l.text.p;
        const char *const access =
            strstr(text, "INST_MEM_ACCESS addr=0x5004 size=4 attr=0x0 access=2\n");
        assert_non_null(access);
        const char *const content = strstr(access, "INST_MEM_CONTENT data=0x1234\n");
        const char *const close = strstr(access, " INST_32 ");
        assert_true(content && close && content < close);
        assert_null(strstr(text, "addr=0x77 size=4 attr=0x0 access=1\n"));
        assert_null(strstr(text, "addr=0x5008 size=4 attr=0x0 access=2\n"));
        assert_null(strstr(text, "data=0x99\n"));
        assert_true(!comments == !strstr(text, "A INST_MEM_ACCESS addr=0x77"));
        tl_buf_fini(&l.text);
        tl_stf_flow_free(flow);
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accesses_become_records),
        cmocka_unit_test(test_branch_flags_come_back),
        cmocka_unit_test(test_random_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
