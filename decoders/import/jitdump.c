/* SPDX-License-Identifier: MIT */
/*
 * Records are read as far as they are complete, and the caller's position moves with them, since
 * the compiler still appends to the file. Sizes are compared with the bytes there before anything
 * is read.
 */
#include "import/jitdump.h"

#include "perf/attr.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0x4a695444u /* "JiTD" */

enum {
    HEADER = 40,    /* magic, version, size, machine, 0, pid; u64 time, flags */
    RECORD = 16,    /* id, size; u64 time */
    LOAD = 0,       /* i32 pid, tid; u64 vma, address, size, index; name; code */
    LOAD_BODY = 40, /* size before the name */
    FLAG_TICKS = 1  /* in the header */
};

bool tl_jitdump_is(const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    char *end;
    if (strncmp(name, "jit-", 4) != 0)
        return false;
    (void)strtoul(name + 4, &end, 10);
    return end > name + 4 && !strcmp(end, ".dump");
}

/* Parse a LOAD record, including its header, at file offset `offset`. */
static bool read_load(struct tl_jit_code *out, bool swap, struct tl_bytes record, uint64_t offset)
{
    const uint8_t *const p = record.p;
    if (record.n < RECORD + LOAD_BODY)
        return false;
    const size_t at = RECORD + LOAD_BODY, n = strnlen((const char *)p + at, record.n - at);
    *out = (struct tl_jit_code){
        .pid = (int32_t)tl_perf_u32(swap, p + 16),
        .tid = (int32_t)tl_perf_u32(swap, p + 20),
        .time = tl_perf_u64(swap, p + 8),
        .address = tl_perf_u64(swap, p + 32),
        .length = tl_perf_u64(swap, p + 40),
        .offset = offset + at + n + 1,
        .name = (const char *)p + at,
    };
    return n < record.n - at && out->length <= record.n - at - n - 1;
}

int tl_jitdump_read(struct tl_bytes in, uint64_t *at, bool *in_ticks,
                    int (*take)(void *context, const struct tl_jit_code *code), void *context)
{
    if (in.n < HEADER)
        return *at == 0 && in.n == 0 ? TL_OK : TL_BAD;
    const bool swap = tl_perf_u32(true, in.p) == MAGIC;
    const uint32_t size = tl_perf_u32(swap, in.p + 8);
    if ((!swap && tl_le32(in.p) != MAGIC) || tl_perf_u32(swap, in.p + 4) != 1 || size < HEADER ||
        size > in.n)
        return TL_BAD;
    *in_ticks = tl_perf_u64(swap, in.p + 32) & FLAG_TICKS;
    *at = *at < size ? size : *at;
    while (*at <= in.n && in.n - *at >= RECORD) {
        const uint8_t *const p = in.p + *at;
        const uint32_t id = tl_perf_u32(swap, p), n = tl_perf_u32(swap, p + 4);
        struct tl_jit_code code;
        if (n < RECORD)
            return TL_BAD;
        if (n > in.n - *at)
            break; /* still being written */
        if (id == LOAD) {
            if (!read_load(&code, swap, (struct tl_bytes){p, n}, *at))
                return TL_BAD;
            const int rc = take(context, &code);
            if (rc < 0)
                return rc;
        }
        *at += n;
    }
    return TL_OK;
}
