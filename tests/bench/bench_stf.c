/* SPDX-License-Identifier: MIT */
/*
 * STF: reading .zstf to records and to instructions, with and without all their fields, and writing
 * .zstf, compared with a plain reader and writer of single records (stf_plain.h) in the same run;
 * and zstd's share of the time. On the real traces of the data folder where available, and on three
 * generated here. One thread, by its processor time: nothing here waits.
 */
#include "bench/report.h"
#include "bench/stf_plain.h"
#include "stf/file.h"
#include "stf/operands.h"
#include "stf/writer.h"

#include <stdlib.h>
#include <unistd.h>

#define SECONDS 0.4 /* minimum processor time for each figure */
#define ROUNDS  5   /* minimum number of runs: short ones are more easily disturbed */

struct trace {
    struct tl_bytes file; /* .zstf */
    struct tl_buf plain;  /* its STF */
    size_t n;             /* records */
    uint64_t insns;
    uint64_t sum; /* of what was read: keeps the work from being optimised away */
    int level;
    size_t written;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_stf: %s\n", what);
    exit(1);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Processor time of the least disturbed call. */
static double best(void (*fn)(void *context), struct trace *t)
{
    double min = 1e9, sum = 0;
    for (int i = 0; i < ROUNDS || sum < SECONDS; i++) {
        const double begin = cpu_now();
        fn(t);
        const double took = cpu_now() - begin;
        min = took < min ? took : min;
        sum += took;
    }
    return min;
}

/* A sum over everything in an instruction. */
static uint64_t sum_fields(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn)
{
    uint64_t sum = 0;
    if (insn->flags & TL_STF_TAKEN)
        sum += tl_stf_insn_next(insns, insn);
    if (insn->flags & TL_STF_MEMORY) {
        struct tl_stf_group group = tl_stf_insn_group(insns, insn);
        struct tl_stf_access a;
        while (tl_stf_group_access(&group, &a) == TL_OK) {
            sum += a.address + a.size + a.type;
            for (uint32_t i = 0; i < a.n_data; i++)
                sum += tl_stf_access_data(&a, i);
        }
    }
    if (insn->flags & TL_STF_OTHERS) {
        struct tl_stf_group group = tl_stf_insn_group(insns, insn);
        struct tl_stf_operand o;
        while (tl_stf_group_operand(&group, &o) == TL_OK)
            sum += o.number + o.operand + tl_stf_word(o.value, 0);
    }
    return sum;
}

static void read_all_insns(struct trace *t, bool fields)
{
    struct tl_stf_file *file;
    struct tl_stf_insns *insns;
    static struct tl_stf_insn batch[512];
    if (tl_stf_file_bytes(&file, t->file, NULL) < 0)
        die("cannot open");
    const struct tl_stf_source source = tl_stf_file_source(file);
    if (tl_stf_insns_open(&insns, &source) < 0)
        die("out of memory");
    uint64_t count = 0, sum = 0;
    int n;
    while ((n = tl_stf_insns_read(insns, batch, 512, NULL)) > 0) {
        for (int i = 0; i < n; i++) {
            sum += batch[i].pc ^ batch[i].opcode;
            if (fields && batch[i].flags) /* otherwise it has nothing else */
                sum += sum_fields(insns, &batch[i]);
        }
        count += (uint64_t)n;
    }
    if (n != TL_EOF)
        die("damaged trace");
    t->insns = count;
    t->sum = sum;
    tl_stf_insns_free(insns);
    tl_stf_file_close(file);
}

static void read_insns(void *context)
{
    read_all_insns(context, false);
}

static void read_fields(void *context)
{
    read_all_insns(context, true);
}

static void unpack(void *context)
{
    struct trace *const t = context;
    struct tl_stf_file *file;
    if (tl_stf_file_bytes(&file, t->file, NULL) < 0)
        die("cannot open");
    const struct tl_stf_source source = tl_stf_file_source(file);
    struct tl_bytes piece;
    while (source.next(source.context, &piece, NULL) == TL_OK)
        t->sum += piece.p[piece.n / 2];
    tl_stf_file_close(file);
}

/* A sum over everything in a record. */
static uint64_t sum_record(const struct tl_stf_record *r)
{
    switch (r->type) {
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        return r->opcode;
    case TL_STF_INST_PC_TARGET:
        return r->target;
    case TL_STF_INST_MEM_ACCESS:
        return r->access.address + r->access.size + r->access.attr + r->access.type;
    case TL_STF_INST_MEM_CONTENT:
        return r->data;
    case TL_STF_INST_REG:
        return r->reg.number + r->reg.meta + tl_stf_word(r->reg.value, 0);
    default:
        return r->size;
    }
}

static uint64_t sum_records(struct tl_stf_reader *reader, bool fields)
{
    struct tl_stf_record record;
    uint64_t sum = 0;
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        sum += fields ? sum_record(&record) : record.size;
    return sum;
}

static void read_all_records(struct trace *t, bool fields)
{
    struct tl_stf_file *file;
    struct tl_stf_reader *reader;
    if (tl_stf_file_bytes(&file, t->file, NULL) < 0)
        die("cannot open");
    const struct tl_stf_source source = tl_stf_file_source(file);
    if (tl_stf_reader_open(&reader, &source) < 0)
        die("out of memory");
    t->sum += fields ? sum_records(reader, true) : sum_records(reader, false);
    tl_stf_reader_free(reader);
    tl_stf_file_close(file);
}

static void read_records(void *context)
{
    read_all_records(context, false);
}

static void read_record_fields(void *context)
{
    read_all_records(context, true);
}

static int count_bytes(void *context, const uint8_t *p, size_t n)
{
    struct trace *const t = context;
    (void)p;
    t->written += n;
    return TL_OK;
}

static int no_rewrite(void *context, const uint8_t *p, size_t n)
{
    (void)context;
    (void)p;
    (void)n;
    return TL_OK;
}

/* Read already unpacked bytes to records with all fields: what write_records() does besides
 * writing. */
static void parse_records(void *context)
{
    struct trace *const t = context;
    struct tl_stf_reader *reader;
    if (tl_stf_reader_new(&reader) < 0)
        die("out of memory");
    tl_stf_reader_push(reader, (struct tl_bytes){t->plain.p, t->plain.n});
    tl_stf_reader_finish(reader);
    t->sum += sum_records(reader, true);
    tl_stf_reader_free(reader);
}

/* Each record is written as it is read; an array of all of them would measure memory accesses. */
static void write_records(void *context)
{
    struct trace *const t = context;
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .level = t->level};
    const struct tl_stf_sink sink = {t, count_bytes, no_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    if (tl_stf_out_new(&out, &options, &sink) < 0 || tl_stf_reader_new(&reader) < 0)
        die("out of memory");
    tl_stf_reader_push(reader, (struct tl_bytes){t->plain.p, t->plain.n});
    tl_stf_reader_finish(reader);
    t->written = 0;
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK) {
        if (tl_stf_out_put(out, &record, NULL) < 0)
            die("cannot write");
    }
    if (tl_stf_out_finish(out, NULL) < 0)
        die("cannot write");
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
}

/* ---- input ----------------------------------------------------------------------------------- */

static bool load_file(const char *name, struct tl_bytes *out)
{
    char path[512];
    const char *const data = getenv("TL_DATA");
    if (data)
        snprintf(path, sizeof path, "%s/stf/%s", data, name);
    else
        snprintf(path, sizeof path, "%s/../shared/data/stf/%s", TL_SOURCE_DIR, name);
    FILE *const f = fopen(path, "rb");
    if (!f)
        return false;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    uint8_t *const p = malloc(size > 0 ? (size_t)size : 1);
    out->n = p && size > 0 ? fread(p, 1, (size_t)size, f) : 0;
    out->p = p;
    fclose(f);
    return out->n > 0;
}

static int append(void *context, const uint8_t *p, size_t n)
{
    return tl_buf_add(context, p, n);
}

static int patch(void *context, const uint8_t *p, size_t n)
{
    struct tl_buf *const b = context;
    memcpy(b->p, p, n);
    return TL_OK;
}

static void must_put(struct tl_stf_out *out, const struct tl_stf_record *record)
{
    if (tl_stf_out_put(out, record, NULL) < 0)
        die("cannot write");
}

/* The registers read and written by the instruction at `pc`: always the same number. */
static void put_registers(struct tl_stf_out *out, uint64_t pc, uint64_t value)
{
    uint8_t bytes[8];
    tl_put_le64(bytes, value);
    for (uint64_t i = pc >> 1 & 1; i < 3; i++)
        must_put(out,
                 &(struct tl_stf_record){.type = TL_STF_INST_REG,
                                         .reg = {(uint16_t)(((pc >> 2) + i) & 31),
                                                 (uint8_t)(TL_STF_REG_INT | (i == 2 ? 3 : 2) << 4),
                                                 {bytes, 8}}});
}

/* Functions of about fifty instructions, called in an irregular order; every third instruction is a
 * memory access. */
enum kind { NO_REGISTERS, REGISTERS, RANDOM_REGISTERS };

static void make_trace(struct tl_buf *file, enum kind kind)
{
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF};
    const struct tl_stf_sink sink = {file, append, patch};
    struct tl_stf_out *out;
    struct tl_buf header = {0};
    const struct tl_stf_header_spec spec = {.isa = TL_STF_ISA_RISCV, .iem = 2, .pc = 0x10000};
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    if (tl_stf_out_new(&out, &options, &sink) < 0 || tl_stf_reader_new(&reader) < 0 ||
        tl_stf_header_write(&spec, &header, NULL) < 0)
        die("out of memory");
    tl_stf_reader_push(reader, (struct tl_bytes){header.p, header.n});
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK)
        must_put(out, &r);
    tl_stf_reader_free(reader);
    tl_buf_fini(&header);
    uint64_t seed = 88172645463325252u;
    for (uint64_t pc = 0x10000, i = 0; i < 2000000; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        const uint32_t opcode = (uint32_t)(pc * 2654435761u);
        const bool wide = opcode >> 31;
        const bool jump = pc % 256 > 240;
        const uint64_t target = 0x10000 + (seed & 0xff) * 256;
        if (jump)
            must_put(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = target});
        if (kind != NO_REGISTERS)
            put_registers(out, pc, kind == RANDOM_REGISTERS ? seed * pc : i / 64);
        if (!jump && (opcode >> 8 & 1)) {
            must_put(out, &(struct tl_stf_record){
                              .type = TL_STF_INST_MEM_ACCESS,
                              .access = {0x3fff0000 + (seed >> 40) % 4096 * 8, 8, 0, TL_STF_READ}});
            must_put(out,
                     &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = seed >> 56});
        }
        if (wide)
            must_put(out, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = opcode});
        else
            must_put(out,
                     &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = opcode & 0xffff});
        pc = jump ? target : pc + (wide ? 4 : 2);
    }
    if (tl_stf_out_finish(out, NULL) < 0)
        die("cannot write");
    tl_stf_out_free(out);
}

/* Unpack the trace and count its records. */
static void prepare(struct trace *t)
{
    struct tl_stf_file *file;
    struct tl_stf_reader *reader;
    if (tl_stf_file_bytes(&file, t->file, NULL) < 0)
        die("cannot open");
    const struct tl_stf_source source = tl_stf_file_source(file);
    struct tl_bytes piece;
    while (source.next(source.context, &piece, NULL) == TL_OK) {
        if (tl_buf_add(&t->plain, piece.p, piece.n) < 0)
            die("out of memory");
    }
    tl_stf_file_close(file);
    if (tl_stf_reader_new(&reader) < 0)
        die("out of memory");
    tl_stf_reader_push(reader, (struct tl_bytes){t->plain.p, t->plain.n});
    tl_stf_reader_finish(reader);
    struct tl_stf_record record;
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        t->n++;
    tl_stf_reader_free(reader);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void plain_records(void *context)
{
    struct trace *const t = context;
    if (plain_read_records(t->file) != t->n)
        die("the plain reader reads otherwise");
}

static void plain_insns(void *context)
{
    struct trace *const t = context;
    if (plain_read_insns(t->file, false) != t->sum)
        die("the plain reader reads otherwise");
}

static void plain_fields(void *context)
{
    struct trace *const t = context;
    if (plain_read_insns(t->file, true) != t->sum)
        die("the plain reader reads otherwise");
}

static void plain_parse(void *context)
{
    struct trace *const t = context;
    if (plain_parse_records((struct tl_bytes){t->plain.p, t->plain.n}) != t->n)
        die("the plain reader reads otherwise");
}

static void plain_writing(void *context)
{
    struct trace *const t = context;
    struct tl_buf out = {0};
    plain_write((struct tl_bytes){t->plain.p, t->plain.n}, t->level, &out);
    tl_buf_fini(&out);
}

/* Report a rate and the plain reader's or writer's, in millions. */
static void report(const char *name, const char *what, double n, double ours, double plain)
{
    char input[128];
    snprintf(input, sizeof input, "%s: %s", name, what);
    bench_report("stf", input, n / 1e6 / ours, "M/s", "one record at a time", n / 1e6 / plain);
}

static void measure(const char *name, struct trace *t)
{
    char what[64];
    prepare(t);
    const double unpacking = best(unpack, t), records = (double)t->n;
    const double plain_reading = best(plain_records, t);
    report(name, "to records", records, best(read_records, t), plain_reading);
    report(name, "to records with all fields", records, best(read_record_fields, t), plain_reading);
    report(name, "to records, if they took no time: zstd alone", records, unpacking, plain_reading);
    const double ours_pc = best(read_insns, t), insns = (double)t->insns;
    report(name, "to instructions", insns, ours_pc, best(plain_insns, t));
    const double ours_fields = best(read_fields, t), plain_all = best(plain_fields, t);
    report(name, "to instructions with all fields", insns, ours_fields, plain_all);
    report(name, "to instructions, if they took no time: zstd alone", insns, unpacking, plain_all);
    /* Records are written as they are read, so the cost of reading is subtracted. */
    const double parsing = best(parse_records, t), plain_parsing = best(plain_parse, t);
    for (t->level = 1; t->level <= 3; t->level += 2) {
        const double ours = best(write_records, t) - parsing;
        snprintf(what, sizeof what, "records to .zstf, zstd level %d, %.2f bits/insn", t->level,
                 8.0 * (double)t->written / insns);
        report(name, what, records, ours, best(plain_writing, t) - plain_parsing);
    }
    tl_buf_fini(&t->plain);
}

int main(void)
{
    static const char *const names[] = {"dhry_riscv.zstf", "dhrystone_opt1.zstf"};
    static const char *const made[] = {"made", "made, registers", "made, random registers"};
    for (size_t i = 0; i < 2; i++) {
        struct trace t = {0};
        if (load_file(names[i], &t.file))
            measure(names[i], &t);
        free((void *)(uintptr_t)t.file.p);
    }
    for (int kind = NO_REGISTERS; kind <= RANDOM_REGISTERS; kind++) {
        struct tl_buf file = {0};
        make_trace(&file, (enum kind)kind);
        struct trace t = {.file = {file.p, file.n}};
        measure(made[kind], &t);
        tl_buf_fini(&file);
    }
    return 0;
}
