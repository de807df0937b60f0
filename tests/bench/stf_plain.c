/* SPDX-License-Identifier: MIT */
#include "bench/stf_plain.h"

#include "stf/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MARKERS 100000
#define WINDOW  4096 /* instructions read ahead */

static void die(const char *what)
{
    fprintf(stderr, "bench_stf: plain reader: %s\n", what);
    exit(1);
}

static void *must(void *p)
{
    if (!p)
        die("out of memory");
    return p;
}

/* ---- bytes in ------------------------------------------------------------------------------ */

/* A stream of bytes as an object, with a buffer that `fill` refills. */
struct stream {
    bool (*fill)(struct stream *stream); /* false: no more bytes */
    uint8_t *plain;                      /* a chunk, unpacked */
    size_t n, at;
    struct tl_bytes file;
    uint64_t chunk, chunks, index;
    ZSTD_DCtx *zstd;
};

static bool next_chunk(struct stream *s)
{
    if (s->chunk == s->chunks)
        return false;
    const uint8_t *const entry = s->file.p + s->index + 8 + 24 * s->chunk++;
    const uint64_t from = tl_le64(entry);
    const uint64_t to = s->chunk < s->chunks ? tl_le64(entry + 24) : s->index;
    s->n = (size_t)tl_le64(entry + 16);
    s->plain = must(realloc(s->plain, s->n));
    ZSTD_outBuffer out = {s->plain, s->n, 0};
    ZSTD_inBuffer in = {s->file.p + from, (size_t)(to - from), 0};
    while (in.pos < in.size || out.pos < out.size)
        if (ZSTD_isError(ZSTD_decompressStream(s->zstd, &out, &in)))
            die("cannot unpack");
    s->at = 0;
    return true;
}

static bool no_more(struct stream *s)
{
    (void)s;
    return false;
}

static struct stream *open_chunks(struct tl_bytes file)
{
    struct stream *const s = must(calloc(1, sizeof *s));
    s->fill = next_chunk;
    s->file = file;
    s->index = tl_le64(file.p + 12);
    s->chunks = tl_le64(file.p + s->index);
    s->zstd = must(ZSTD_createDCtx());
    return s;
}

static void close_stream(struct stream *s)
{
    if (s->zstd)
        free(s->plain);
    ZSTD_freeDCtx(s->zstd);
    free(s);
}

static inline bool get(struct stream *s, void *p, size_t n)
{
    if (s->n - s->at < n && (s->at < s->n || !s->fill(s) || s->n < n))
        return false;
    memcpy(p, s->plain + s->at, n);
    s->at += n;
    return true;
}

static inline void must_get(struct stream *s, void *p, size_t n)
{
    if (!get(s, p, n))
        die("a record is cut");
}

/* ---- bytes out ----------------------------------------------------------------------------- */

struct sink {
    void (*write)(struct sink *sink, const void *p, size_t n);
    struct tl_buf chunk;
    struct tl_buf *out;
    uint64_t markers;
    ZSTD_CCtx *zstd;
};

static void write_chunk(struct sink *s, const void *p, size_t n)
{
    if (tl_buf_add(&s->chunk, p, n) < 0)
        die("out of memory");
}

static void end_chunk(struct sink *s)
{
    const size_t bound = ZSTD_compressBound(s->chunk.n);
    if (tl_buf_reserve(s->out, bound) < 0)
        die("out of memory");
    ZSTD_outBuffer out = {s->out->p + s->out->n, bound, 0};
    ZSTD_inBuffer in = {s->chunk.p, s->chunk.n, 0};
    while (ZSTD_compressStream2(s->zstd, &out, &in, ZSTD_e_end) != 0)
        ;
    s->out->n += out.pos;
    tl_buf_reset(&s->chunk);
    s->markers = 0;
}

/* ---- records ------------------------------------------------------------------------------- */

struct record;

struct class
{
    void (*unpack)(struct record *record, struct stream *in);
    void (*pack)(const struct record *record, struct sink *out);
};

struct record {
    const struct class *class;
    struct record *next; /* in its pool or list */
    uint8_t type;
    union {
        uint64_t word; /* address, data, features */
        uint32_t opcode;
        uint16_t half; /* ISA, INST_IEM */
        struct {
            uint32_t a, b, c;
        } words;
        struct {
            uint64_t address;
            uint16_t size, attr;
            uint8_t type;
        } access;
        struct {
            uint16_t number;
            uint8_t meta;
            uint64_t value;
        } reg;
        struct {
            uint32_t n;
            uint8_t version[4];
            char *p;
        } text;
    };
};

#define PUT(field) out->write(out, &record->field, sizeof record->field)
#define GET(field) must_get(in, &record->field, sizeof record->field)

static void unpack_word(struct record *record, struct stream *in)
{
    GET(word);
}

static void pack_word(const struct record *record, struct sink *out)
{
    PUT(word);
}

static void unpack_opcode(struct record *record, struct stream *in)
{
    GET(opcode);
}

static void pack_opcode(const struct record *record, struct sink *out)
{
    PUT(opcode);
}

static void unpack_half(struct record *record, struct stream *in)
{
    uint16_t half;
    must_get(in, &half, sizeof half);
    record->opcode = half;
}

static void pack_half(const struct record *record, struct sink *out)
{
    PUT(half);
}

static void unpack_words(struct record *record, struct stream *in)
{
    GET(words.a);
    GET(words.b);
    if (record->type == TL_STF_PROCESS_ID_EXT)
        GET(words.c);
}

static void pack_words(const struct record *record, struct sink *out)
{
    PUT(words.a);
    PUT(words.b);
    if (record->type == TL_STF_PROCESS_ID_EXT)
        PUT(words.c);
}

static void unpack_access(struct record *record, struct stream *in)
{
    GET(access.address);
    GET(access.size);
    GET(access.attr);
    GET(access.type);
}

static void pack_access(const struct record *record, struct sink *out)
{
    PUT(access.address);
    PUT(access.size);
    PUT(access.attr);
    PUT(access.type);
}

static void unpack_reg(struct record *record, struct stream *in)
{
    GET(reg.number);
    GET(reg.meta);
    GET(reg.value);
}

static void pack_reg(const struct record *record, struct sink *out)
{
    PUT(reg.number);
    PUT(reg.meta);
    PUT(reg.value);
}

static void unpack_text(struct record *record, struct stream *in)
{
    if (record->type == TL_STF_TRACE_INFO) {
        uint16_t n;
        GET(text.version);
        must_get(in, &n, sizeof n);
        record->text.n = n;
    } else {
        GET(text.n);
    }
    record->text.p = must(malloc(record->text.n + (size_t)1));
    must_get(in, record->text.p, record->text.n);
}

static void pack_text(const struct record *record, struct sink *out)
{
    const uint16_t n = (uint16_t)record->text.n;
    if (record->type == TL_STF_TRACE_INFO) {
        PUT(text.version);
        out->write(out, &n, sizeof n);
    } else {
        PUT(text.n);
    }
    out->write(out, record->text.p, record->text.n);
}

static void unpack_magic(struct record *record, struct stream *in)
{
    must_get(in, &record->opcode, 3);
}

static void pack_magic(const struct record *record, struct sink *out)
{
    out->write(out, &record->opcode, 3);
}

static void unpack_nothing(struct record *record, struct stream *in)
{
    (void)record;
    (void)in;
}

static void pack_nothing(const struct record *record, struct sink *out)
{
    (void)record;
    (void)out;
}

static const struct class of_word = {unpack_word, pack_word},
                          of_opcode = {unpack_opcode, pack_opcode},
                          of_half = {unpack_half, pack_half}, of_words = {unpack_words, pack_words},
                          of_access = {unpack_access, pack_access}, of_reg = {unpack_reg, pack_reg},
                          of_text = {unpack_text, pack_text}, of_magic = {unpack_magic, pack_magic},
                          of_nothing = {unpack_nothing, pack_nothing};

static const struct class *const classes[256] = {
    [TL_STF_IDENTIFIER] = &of_magic,
    [TL_STF_VERSION] = &of_words,
    [TL_STF_COMMENT] = &of_text,
    [TL_STF_ISA] = &of_half,
    [TL_STF_INST_IEM] = &of_half,
    [TL_STF_TRACE_INFO] = &of_text,
    [TL_STF_TRACE_INFO_FEATURE] = &of_word,
    [TL_STF_PROCESS_ID_EXT] = &of_words,
    [TL_STF_FORCE_PC] = &of_word,
    [TL_STF_END_HEADER] = &of_nothing,
    [TL_STF_INST_PC_TARGET] = &of_word,
    [TL_STF_INST_REG] = &of_reg,
    [TL_STF_INST_MEM_ACCESS] = &of_access,
    [TL_STF_INST_MEM_CONTENT] = &of_word,
    [TL_STF_INST_32] = &of_opcode,
    [TL_STF_INST_16] = &of_half,
};

/* ---- the reader of records ----------------------------------------------------------------- */

struct reader {
    struct stream *in;
    struct record *pools[256]; /* records that are free, by type */
    uint64_t pc, target, records, insns;
    bool has_target, header_done;
    unsigned header; /* the header's records so far */
};

static struct record *make(struct reader *r, uint8_t type)
{
    struct record *record = r->pools[type];
    if (record) {
        r->pools[type] = record->next;
    } else {
        record = must(malloc(sizeof *record));
        record->type = type;
        record->class = classes[type];
    }
    return record;
}

static void give_back(struct reader *r, struct record *record)
{
    if (record->class == &of_text)
        free(record->text.p);
    record->next = r->pools[record->type];
    r->pools[record->type] = record;
}

static void look_at_header(struct reader *r, const struct record *record)
{
    if (record->type >= 32 || (r->records == 0 && record->type != TL_STF_IDENTIFIER))
        die("a record that is none of the header");
    r->header |= 1u << record->type;
    r->header_done = record->type == TL_STF_END_HEADER;
}

/* Read the next record, which the caller owns. Returns NULL at the end. */
static struct record *next_record(struct reader *r)
{
    uint8_t type;
    if (!get(r->in, &type, 1))
        return NULL;
    if (!classes[type])
        die("a descriptor that is not known");
    struct record *const record = make(r, type);
    record->class->unpack(record, r->in);
    if (!r->header_done)
        look_at_header(r, record);
    switch (type) {
    case TL_STF_FORCE_PC:
        r->pc = record->word;
        break;
    case TL_STF_INST_PC_TARGET:
        r->target = record->word;
        r->has_target = true;
        break;
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        r->pc = r->has_target ? r->target : r->pc + (type == TL_STF_INST_32 ? 4 : 2);
        r->has_target = false;
        r->insns++;
        break;
    default:
        break;
    }
    r->records++;
    return record;
}

static void free_pools(struct reader *r)
{
    for (size_t i = 0; i < 256; i++) {
        while (r->pools[i]) {
            struct record *const record = r->pools[i];
            r->pools[i] = record->next;
            free(record);
        }
    }
    close_stream(r->in);
}

static uint64_t count_records(struct reader *r)
{
    struct record *record;
    while ((record = next_record(r)))
        give_back(r, record);
    const uint64_t n = r->records;
    free_pools(r);
    return n;
}

uint64_t plain_read_records(struct tl_bytes file)
{
    struct reader r = {.in = open_chunks(file)};
    return count_records(&r);
}

static struct stream *open_memory(struct tl_bytes stf)
{
    struct stream *const s = must(calloc(1, sizeof *s));
    s->fill = no_more;
    s->plain = (uint8_t *)(uintptr_t)stf.p;
    s->n = stf.n;
    return s;
}

uint64_t plain_parse_records(struct tl_bytes stf)
{
    struct reader r = {.in = open_memory(stf)};
    return count_records(&r);
}

/* ---- the reader of instructions ------------------------------------------------------------ */

/* Records in the order of the trace, in memory that is reused for the next instruction. */
struct list {
    struct record **p;
    size_t n, cap;
};

struct insn {
    uint64_t pc, target, index;
    uint32_t opcode;
    uint8_t size;
    bool taken;
    struct list accesses, contents, registers, others;
};

static void append(struct list *list, struct record *record)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 4;
        list->p = must(realloc(list->p, list->cap * sizeof *list->p));
    }
    list->p[list->n++] = record;
}

static void empty(struct reader *r, struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        give_back(r, list->p[i]);
    list->n = 0;
}

static void empty_insn(struct reader *r, struct insn *insn)
{
    empty(r, &insn->accesses);
    empty(r, &insn->contents);
    empty(r, &insn->registers);
    empty(r, &insn->others);
    insn->taken = false;
    insn->target = 0;
}

static bool next_insn(struct reader *r, struct insn *insn)
{
    struct record *record;
    empty_insn(r, insn);
    for (;;) {
        const uint64_t pc = r->pc;
        record = next_record(r);
        if (!record)
            return false;
        switch (record->type) {
        case TL_STF_INST_MEM_ACCESS:
            append(&insn->accesses, record);
            break;
        case TL_STF_INST_MEM_CONTENT:
            append(&insn->contents, record);
            break;
        case TL_STF_INST_REG:
            append(&insn->registers, record);
            break;
        case TL_STF_INST_PC_TARGET:
            insn->taken = true;
            insn->target = record->word;
            append(&insn->others, record);
            break;
        case TL_STF_INST_32:
        case TL_STF_INST_16:
            insn->pc = pc;
            insn->index = r->insns;
            insn->opcode = record->opcode;
            insn->size = record->type == TL_STF_INST_32 ? 4 : 2;
            append(&insn->others, record);
            return true;
        default:
            append(&insn->others, record);
            break;
        }
    }
}

static uint64_t sum_fields(const struct insn *insn)
{
    uint64_t sum = insn->target;
    for (size_t i = 0; i < insn->accesses.n; i++) {
        const struct record *const a = insn->accesses.p[i];
        sum += a->access.address + a->access.size + a->access.type;
        if (i < insn->contents.n)
            sum += insn->contents.p[i]->word;
    }
    for (size_t i = 0; i < insn->registers.n; i++) {
        const struct record *const reg = insn->registers.p[i];
        sum += reg->reg.number + (uint32_t)(reg->reg.meta >> 4) + reg->reg.value;
    }
    return sum;
}

uint64_t plain_read_insns(struct tl_bytes file, bool fields)
{
    struct reader r = {.in = open_chunks(file)};
    struct insn *const window = must(calloc(WINDOW, sizeof *window));
    uint64_t sum = 0;
    for (size_t n = WINDOW; n == WINDOW;) {
        for (n = 0; n < WINDOW && next_insn(&r, &window[n]); n++)
            ;
        for (size_t i = 0; i < n; i++) {
            sum += window[i].pc ^ window[i].opcode;
            if (fields)
                sum += sum_fields(&window[i]);
        }
    }
    for (size_t i = 0; i < WINDOW; i++) {
        empty_insn(&r, &window[i]);
        free(window[i].accesses.p);
        free(window[i].contents.p);
        free(window[i].registers.p);
        free(window[i].others.p);
    }
    free(window);
    free_pools(&r);
    return sum;
}

/* ---- the writer ---------------------------------------------------------------------------- */

struct order {
    uint8_t before;
    bool header_done;
};

/* Check that this record may follow the previous one. */
static void check_order(struct order *order, uint8_t type)
{
    if (!order->header_done) {
        order->header_done = type == TL_STF_END_HEADER;
        return;
    }
    if ((type == TL_STF_INST_MEM_CONTENT) != (order->before == TL_STF_INST_MEM_ACCESS))
        die("an access without content");
    const bool again = order->before == TL_STF_INST_MEM_CONTENT ||
                       (type == TL_STF_INST_PC_TARGET && order->before == TL_STF_INST_REG);
    if (type < order->before && !again)
        die("records out of order");
    order->before = tl_stf_is_marker(type) ? 0 : type;
}

void plain_write(struct tl_bytes stf, int level, struct tl_buf *out)
{
    struct reader r = {.in = open_memory(stf)};
    struct sink sink = {write_chunk, .out = out, .zstd = must(ZSTD_createCCtx())};
    struct order order = {0};
    struct record *record;
    ZSTD_CCtx_setParameter(sink.zstd, ZSTD_c_compressionLevel, level);
    while ((record = next_record(&r))) {
        check_order(&order, record->type);
        sink.write(&sink, &record->type, 1);
        record->class->pack(record, &sink);
        if (tl_stf_is_marker(record->type) && ++sink.markers == MARKERS)
            end_chunk(&sink);
        give_back(&r, record);
    }
    if (sink.chunk.n)
        end_chunk(&sink);
    tl_buf_fini(&sink.chunk);
    ZSTD_freeCCtx(sink.zstd);
    free_pools(&r);
}
