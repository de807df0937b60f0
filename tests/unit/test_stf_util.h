/* SPDX-License-Identifier: MIT */
/* Shared by the STF tests: bytes of records, files, data, random numbers. */
#ifndef TEST_STF_UTIL_H
#define TEST_STF_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stf/file.h"
#include "stf/insns.h"
#include "stf/writer.h"

static inline struct tl_bytes bytes_of(const struct tl_buf *b)
{
    return (struct tl_bytes){b->p, b->n};
}

static inline struct tl_bytes text_bytes(const char *text)
{
    return (struct tl_bytes){(const uint8_t *)text, strlen(text)};
}

static inline uint64_t rng_next(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t z = *seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The seed of a property test: from the environment, otherwise fixed; it is printed. */
static inline uint64_t rng_seed(const char *test)
{
    const char *const text = getenv("TL_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 0) : 20240607;
    printf("%s: TL_SEED=%llu\n", test, (unsigned long long)seed);
    return seed;
}

/* A header that every reader accepts: RISC-V, RV64, at 0x1000. */
static inline void put_header(struct tl_buf *out)
{
    const struct tl_stf_header_spec spec = {
        .isa = TL_STF_ISA_RISCV, .iem = TL_STF_IEM_64, .pc = 0x1000};
    assert_int_equal(tl_stf_header_write(&spec, out, NULL), TL_OK);
}

static inline void put_record(struct tl_buf *out, const struct tl_stf_record *record)
{
    const struct tl_stf_layout layout = {0};
    assert_int_equal(tl_stf_record_encode(&layout, record, out), TL_OK);
}

static inline void put_insn(struct tl_buf *out, uint32_t opcode)
{
    put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = opcode});
}

/* The listing of all records, one per line, and how reading ended. */
struct listing {
    struct tl_buf text;
    uint64_t records, insns;
    int result; /* TL_EOF: normally */
    struct tl_fail fail;
    unsigned faults;
};

static inline void list_source(const struct tl_stf_source *source, struct listing *l)
{
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    struct tl_stf_pc pc = {0};
    *l = (struct listing){0};
    assert_int_equal(tl_stf_reader_open(&reader, source), TL_OK);
    while ((l->result = tl_stf_reader_next(reader, &record, &l->fail)) == TL_OK) {
        const uint64_t at = tl_stf_pc_add(&pc, &record);
        const bool insn = record.type == TL_STF_INST_32 || record.type == TL_STF_INST_16;
        l->insns += insn;
        assert_int_equal(tl_stf_listing_line(l->records++, &record, at, l->insns, &l->text), TL_OK);
    }
    l->faults = tl_stf_reader_header(reader)->faults;
    tl_stf_reader_free(reader);
}

static inline void list_bytes(struct tl_bytes bytes, struct listing *l)
{
    struct tl_stf_file *file;
    *l = (struct listing){0};
    l->result = tl_stf_file_bytes(&file, bytes, &l->fail);
    if (l->result < 0)
        return;
    const struct tl_stf_source source = tl_stf_file_source(file);
    list_source(&source, l);
    tl_stf_file_close(file);
}

/* A source that returns `bytes` in pieces of 1 to `most` bytes. */
struct pieces {
    struct tl_bytes rest;
    size_t most;
    uint64_t seed;
    struct tl_buf copy; /* detects readers that access bytes after a piece */
};

static inline int pieces_next(void *context, struct tl_bytes *out, struct tl_fail *fail)
{
    struct pieces *const p = context;
    (void)fail;
    if (p->rest.n == 0)
        return TL_EOF;
    size_t n = 1 + (p->most > 1 ? rng_next(&p->seed) % p->most : 0);
    n = n < p->rest.n ? n : p->rest.n;
    tl_buf_fini(&p->copy);
    assert_int_equal(tl_buf_reserve(&p->copy, n), TL_OK);
    uint8_t *const exact = malloc(n); /* of exactly this size, for the address sanitizer */
    assert_non_null(exact);
    free(p->copy.p);
    p->copy = (struct tl_buf){exact, n, n};
    memcpy(exact, p->rest.p, n);
    *out = (struct tl_bytes){exact, n};
    p->rest.p += n;
    p->rest.n -= n;
    return TL_OK;
}

/* A path in the data folder; NULL if it does not exist. */
static inline const char *data_path(const char *name, char out[static 512])
{
    const char *const data = getenv("TL_DATA");
    if (data)
        snprintf(out, 512, "%s/stf/%s", data, name);
    else
        snprintf(out, 512, "%s/../shared/data/stf/%s", TL_SOURCE_DIR, name);
    FILE *const f = fopen(out, "rb");
    if (!f)
        return NULL;
    fclose(f);
    return out;
}

static inline bool load(const char *name, struct tl_buf *out)
{
    char path[512];
    if (!data_path(name, path))
        return false;
    FILE *const f = fopen(path, "rb");
    uint8_t block[65536];
    size_t n;
    tl_buf_reset(out);
    while (f && (n = fread(block, 1, sizeof block, f)) > 0)
        assert_int_equal(tl_buf_add(out, block, n), TL_OK);
    if (f)
        fclose(f);
    return true;
}

/* A sink that keeps a file in a tl_buf. */
static inline int buf_write(void *context, const uint8_t *p, size_t n)
{
    return tl_buf_add(context, p, n);
}

static inline int buf_rewrite(void *context, const uint8_t *p, size_t n)
{
    struct tl_buf *const b = context;
    assert_true(n <= b->n);
    memcpy(b->p, p, n);
    return TL_OK;
}

#endif
