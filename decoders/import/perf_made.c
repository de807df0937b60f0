/* SPDX-License-Identifier: MIT */
/*
 * Finds code that is in no file: BPF programs, kernel symbols, patched kernel text. perf records it
 * while it exists, with the times between which an address has it.
 */
#include "import/jitdump.h"
#include "import/perf_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JITTED_MAX ((size_t)1 << 30) /* maximum bytes of a jitdump file */
#define POKES_MAX  4096 /* maximum changes of the kernel's text: each changes the memory view */

#define SYMBOLS_MAX 16384 /* maximum names of generated kernel code, and of BPF functions */

/* ---- kernel code ----------------------------------------------------------------------------- */

enum { OF_BPF = 1, UNREGISTERED = 1 }; /* kind and flags of a KSYMBOL */

/* More than SYMBOLS_MAX of them: say so once. */
static void report_symbols(struct tl_perf_import *im, enum tl_perf_limits limit, const char *what)
{
    if (!(im->limits & limit))
        tl_perf_import_report(im, "it has more than %d %s; the rest is left out", SYMBOLS_MAX,
                              what);
    im->limits |= limit;
}

static int add_ksymbol(struct tl_perf_import *im, const char *name, uint64_t address, bool is_bpf)
{
    char *const copy = strdup(name);
    if (!copy ||
        tl_grow(&im->ksymbols, &im->cap_ksymbols, im->n_ksymbols + 1, sizeof *im->ksymbols) < 0) {
        free(copy);
        return TL_NOMEM;
    }
    im->ksymbols[im->n_ksymbols++] =
        (struct tl_perf_ksymbol){.name = copy, .address = address, .is_bpf = is_bpf};
    return TL_OK;
}

int tl_perf_import_ksymbol(struct tl_perf_import *im, const struct tl_perf_record *r)
{
    const struct tl_perf_event e = {
        .time = r->time,
        .type = TL_PERF_KSYMBOL,
        .exec = r->symbol.flags & UNREGISTERED,
        .pid = TL_PERF_KERNEL_PID,
        .address = r->symbol.address,
        .length = r->symbol.length,
        .dso = TL_PERF_NO_FILE,
        .symbol = im->n_ksymbols,
    };
    if (im->n_ksymbols >= SYMBOLS_MAX) {
        report_symbols(im, TL_PERF_LIMIT_SYMBOLS, "symbols of generated kernel code");
        return TL_OK;
    }
    const int rc = add_ksymbol(im, r->symbol.name, r->symbol.address, r->symbol.kind == OF_BPF);
    im->number += rc == TL_OK && r->symbol.kind == OF_BPF;
    return rc < 0 ? rc : tl_perf_import_event(im, e);
}

/* Name of the last symbol reported at this address. */
static const char *name_at(const struct tl_perf_import *im, uint64_t address)
{
    for (size_t i = im->n_ksymbols; i-- > 0;)
        if (im->ksymbols[i].address == address)
            return im->ksymbols[i].name;
    return "";
}

/* Add kernel code that is present from `time` on. */
static int add_poked(struct tl_perf_import *im, const struct tl_perf_record *r,
                     struct tl_bytes code, uint64_t time)
{
    struct tl_perf_event e = {
        .time = time,
        .type = TL_PERF_TEXT_POKE,
        .pid = TL_PERF_KERNEL_PID,
        .address = r->poke.address,
        .length = code.n,
        .dso = TL_PERF_MADE,
    };
    const char *const name = r->poke.before.n ? "" : name_at(im, r->poke.address);
    if (code.n == 0) { /* removed */
        e.length = r->poke.before.n;
        e.dso = TL_PERF_NO_FILE;
        return tl_perf_import_event(im, e);
    }
    const int rc = tl_made_code_add(&im->made, code, name, &e.offset);
    return rc < 0 ? rc : tl_perf_import_event(im, e);
}

int tl_perf_import_poke(struct tl_perf_import *im, const struct tl_perf_record *r)
{
    const bool first = tl_perf_map_get(&im->poked, r->poke.address) < 0;
    int rc = TL_OK;
    if (im->n_pokes++ >= POKES_MAX) {
        im->limits |= TL_PERF_LIMIT_POKES;
        if (im->n_pokes == POKES_MAX + 1)
            tl_perf_import_report(im,
                                  "the kernel changed its code more than %d times; what it "
                                  "changed later is left out",
                                  POKES_MAX);
        return TL_OK;
    }
    if (first)
        rc = tl_perf_map_set(&im->poked, r->poke.address, 0);
    if (rc == TL_OK && first && r->poke.before.n > 0) /* overrides the kernel's file */
        rc = add_poked(im, r, r->poke.before, 0);
    if (rc == TL_OK)
        rc = add_poked(im, r, r->poke.after, r->time);
    im->number++;
    return rc;
}

/*
 * ---- BPF programs -----------------------------------------------------------------------------
 */

/* struct bpf_prog_info; array addresses in it are offsets in the data that follows. */
enum {
    INFO_TAG = 8,
    INFO_N_CODE = 16,
    INFO_CODE = 24,
    INFO_NAME = 64,
    INFO_N_SYMBOLS = 104,
    INFO_N_LENGTHS = 108,
    INFO_SYMBOLS = 112,
    INFO_LENGTHS = 120,
    INFO_MIN = 128
};

static uint64_t count_at(const struct tl_perf_import *im, struct tl_bytes info, size_t at)
{
    return tl_perf_u32(tl_perf_reader_swaps(im->reader), info.p + at);
}

/* An array of the program, with `n` members of `size` bytes. NULL: out of range. */
static const uint8_t *array_at(const struct tl_perf_import *im, struct tl_bytes info, size_t at,
                               struct tl_bytes data, uint64_t n, size_t size)
{
    const uint64_t from = tl_perf_u64(tl_perf_reader_swaps(im->reader), info.p + at);
    return from <= data.n && n <= (data.n - from) / size ? data.p + from : NULL;
}

static int add_bpf(struct tl_perf_import *im, struct tl_bytes info, uint64_t address,
                   struct tl_bytes code)
{
    struct tl_perf_bpf f = {.address = address, .length = code.n};
    char own[64];
    for (size_t i = 0; i < 8; i++)
        snprintf(f.tag + 2 * i, 3, "%02x", info.p[INFO_TAG + i]);
    const char *const called = (const char *)info.p + INFO_NAME;
    snprintf(own, sizeof own, "bpf_prog_%s_%.*s", f.tag, (int)strnlen(called, 16), called);
    const char *const reported = name_at(im, address);
    int rc = tl_made_code_add(&im->made, code, reported[0] ? reported : own, &f.offset);
    if (rc == TL_OK)
        rc = tl_grow(&im->bpf, &im->cap_bpf, im->n_bpf + 1, sizeof f);
    if (rc == TL_OK)
        im->bpf[im->n_bpf++] = f;
    im->number += rc == TL_OK;
    return rc;
}

/* A program's functions are at separate addresses; their code is contiguous in the file. */
static int take_program(struct tl_perf_import *im, struct tl_bytes info, struct tl_bytes data)
{
    const bool swap = tl_perf_reader_swaps(im->reader);
    const uint64_t n_code = count_at(im, info, INFO_N_CODE), n = count_at(im, info, INFO_N_SYMBOLS);
    const uint8_t *const code = array_at(im, info, INFO_CODE, data, n_code, 1);
    const uint8_t *const addresses = array_at(im, info, INFO_SYMBOLS, data, n, 8);
    const uint8_t *const lengths = array_at(im, info, INFO_LENGTHS, data, n, 4);
    int rc = TL_OK;
    if (!code || !addresses || !lengths || count_at(im, info, INFO_N_LENGTHS) != n)
        return TL_OK;
    for (uint64_t i = 0, at = 0; rc == TL_OK && i < n; i++) {
        const uint64_t length = tl_perf_u32(swap, lengths + 4 * i);
        const uint64_t address = tl_perf_u64(swap, addresses + 8 * i);
        if (length > n_code - at)
            break;
        /* All zeros: the kernel did not disclose it. */
        const struct tl_bytes one = {code + at, (size_t)length};
        at += length;
        const bool is_code =
            length > 0 && address != 0 && (one.p[0] || memcmp(one.p, one.p + 1, one.n - 1) != 0);
        if (is_code && im->n_bpf < SYMBOLS_MAX)
            rc = add_bpf(im, info, address, one);
        else if (is_code)
            report_symbols(im, TL_PERF_LIMIT_BPF, "functions of BPF programs");
    }
    return rc;
}

/* u32 number of programs; for each: u32 size of its info, u32 size of data, u64 arrays present. */
int tl_perf_import_bpf(struct tl_perf_import *im, struct tl_bytes body)
{
    enum { HEADER = 16 };
    const bool swap = tl_perf_reader_swaps(im->reader);
    const uint32_t n = body.n < 4 ? 0 : tl_perf_u32(swap, body.p);
    size_t at = 4;
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < n && body.n - at >= HEADER; i++) {
        const uint64_t n_info = tl_perf_u32(swap, body.p + at);
        const uint64_t n_data = tl_perf_u32(swap, body.p + at + 4);
        at += HEADER;
        if (n_info > body.n - at || n_data > body.n - at - n_info)
            break;
        const struct tl_bytes info = {body.p + at, (size_t)n_info};
        const struct tl_bytes data = {info.p + info.n, (size_t)n_data};
        if (info.n >= INFO_MIN)
            rc = take_program(im, info, data);
        at += (size_t)(n_info + n_data);
    }
    return rc == TL_LIMIT ? TL_OK : rc;
}

bool tl_perf_import_has_kernel(const struct tl_perf_import *im)
{
    const struct tl_perf_attr *const attr =
        tl_perf_attrs_by_type(tl_perf_reader_attrs(im->reader), im->info.pmu);
    return !attr || !tl_perf_attr_has(attr, TL_PERF_EXCLUDE_KERNEL);
}

struct tl_perf_bpf *tl_perf_import_bpf_of(struct tl_perf_import *im, const struct tl_perf_event *e)
{
    struct tl_perf_ksymbol *const symbol = &im->ksymbols[e->symbol];
    struct tl_perf_bpf *found = NULL;
    /* Distinguish several programs at the same address over time by the program's tag. */
    for (size_t i = 0; i < im->n_bpf; i++)
        if (im->bpf[i].address == e->address && (!found || strstr(symbol->name, im->bpf[i].tag)))
            found = &im->bpf[i];
    if (!found && !symbol->reported && symbol->is_bpf && tl_perf_import_has_kernel(im))
        tl_perf_import_report(im,
                              "no code of the BPF program %s at 0x%" PRIx64
                              "; perf record takes it along for root",
                              symbol->name, e->address);
    symbol->reported = true;
    return found;
}

/*
 * ---- just-in-time compilers ---------------------------------------------------------------------
 */

struct jitted {
    struct tl_perf_import *im;
    struct tl_bytes file;
    bool in_ticks;
};

static int on_jitted(void *context, const struct tl_jit_code *code)
{
    const struct jitted *const j = context;
    struct tl_perf_import *const im = j->im;
    struct tl_perf_event e = {
        .time = j->in_ticks ? tl_clock_ns(&im->info.clock, code->time) : code->time,
        .type = TL_PERF_MMAP2,
        .pid = code->pid,
        .tid = code->tid,
        .address = code->address,
        .length = code->length,
        .dso = TL_PERF_MADE,
    };
    const struct tl_bytes bytes = {j->file.p + code->offset, (size_t)code->length};
    const int rc = tl_made_code_add(&im->made, bytes, code->name, &e.offset);
    return rc < 0 ? rc : tl_perf_import_event(im, e);
}

int tl_perf_import_jitted(struct tl_perf_import *im)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < im->n_dsos; i++) {
        struct tl_perf_dso *const d = im->dsos[i];
        struct tl_buf bytes = {0};
        if (!tl_jitdump_is(d->name))
            continue;
        if (d->found == 1)
            rc = tl_perf_import_find(im, d);
        const int there =
            d->found == TL_OK ? tl_buf_read_file(&bytes, d->file->path, JITTED_MAX, NULL) : TL_IO;
        if (there == TL_LIMIT) {
            im->limits |= TL_PERF_LIMIT_FILE;
            tl_perf_import_report(im, "%s: has more than %zu bytes; its code is left out",
                                  d->file->path, JITTED_MAX);
        }
        if (there == TL_OK) {
            struct jitted j = {im, {bytes.p, bytes.n}, false};
            rc = tl_jitdump_read(j.file, &d->reported, &j.in_ticks, on_jitted, &j);
        }
        if (rc == TL_BAD || rc == TL_LIMIT) {
            tl_perf_import_report(im,
                                  "%s: makes no sense as code of a compiler at offset 0x%" PRIx64,
                                  d->file->path, d->reported);
            rc = TL_OK;
        }
        tl_buf_fini(&bytes);
    }
    return rc;
}
