/* SPDX-License-Identifier: MIT */
/*
 * Packets of a record may come in any order, and each may be missing, so a record is collected
 * until the packet that ends it. What is no packet is skipped byte by byte: only an end or a
 * timestamp is certainly a boundary.
 */
#include "perf/spe.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { PADDING = 0x00, END = 0x01, TIMESTAMP = 0x71 };

static uint64_t number(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

/* ---- packets --------------------------------------------------------------------------------- */

/*
 * Addresses of instructions have the exception level in 62:61 and security in 63; of their upper
 * byte only its sign at EL1 and EL2 is meant. Those of data have a tag there.
 */
static uint64_t plain_address(unsigned index, uint64_t v)
{
    const uint64_t low = v & UINT64_C(0x00ffffffffffffff);
    const unsigned level = v >> 61 & 3;
    if (index == TL_SPE_PHYSICAL)
        return low;
    if (index == TL_SPE_DATA)
        return (low >> 52) == 0xf ? low | UINT64_C(0xff) << 56 : low;
    return v >> 63 && (level == 1 || level == 2) ? low | UINT64_C(0xff) << 56 : low;
}

static void take_address(struct tl_spe_record *r, unsigned index, uint64_t v)
{
    if (index >= TL_SPE_ADDRESSES)
        return;
    r->address[index] = plain_address(index, v);
    r->addresses |= (uint8_t)(1u << index);
}

static void take_counter(struct tl_spe_record *r, unsigned index, uint64_t v)
{
    if (index >= TL_SPE_COUNTERS)
        return;
    r->counter[index] = (uint16_t)v;
    r->counters |= (uint8_t)(1u << index);
}

/* Apply a packet by its header, `index` above its low three bits. Returns false: it is none. */
static bool take(struct tl_spe_record *r, uint8_t header, unsigned index, uint64_t v)
{
    index = index << 3 | (header & 7u);
    if ((header & 0xf8) == 0xb0) {
        take_address(r, index, v);
    } else if ((header & 0xf8) == 0x98) {
        take_counter(r, index, v);
    } else if ((header & 0xcf) == 0x42) {
        r->events = v;
        r->has_events = true;
    } else if ((header & 0xcf) == 0x43) {
        r->source = v;
        r->has_source = true;
    } else if ((header & 0xfc) == 0x64) {
        r->context = r->has_context && r->context ? r->context : (uint32_t)v;
        r->has_context = true;
    } else if (header >= 0x48 && header <= 0x4a) {
        r->class = (uint8_t)(header - 0x48);
        r->op = (uint8_t)v;
        r->has_class = true;
    } else if (header == TIMESTAMP) {
        r->time = v;
        r->has_time = true;
    } else {
        return false;
    }
    return true;
}

/* Bytes to the next multiple of 2^(n+1). */
static size_t up_to_multiple(uint64_t at, unsigned n)
{
    const uint64_t size = UINT64_C(1) << (n + 1);
    return (size_t)((size - at % size) % size);
}

size_t tl_spe_parse(struct tl_bytes in, uint64_t at, struct tl_spe_record *out, uint64_t *bad)
{
    *out = (struct tl_spe_record){0};
    uint64_t wrong = 0;
    for (size_t i = 0; i < in.n;) {
        uint8_t header = in.p[i];
        unsigned index = 0, prefix = 0;
        if (header == PADDING) {
            i++;
            continue;
        }
        if (header == END) {
            *bad += wrong;
            return i + 1;
        }
        if ((header & 0xf0) == 0x20) {
            if (in.n - i < 2)
                return 0;
            if (in.p[i + 1] == 0) {
                i += 2 + up_to_multiple(at + i + 2, header & 15u);
                continue;
            }
            index = header & 3u;
            header = in.p[i + 1];
            prefix = 1;
        }
        const size_t n = (size_t)1 << (header >> 4 & 3);
        const bool whole = in.n - i > prefix + n;
        if (!take(out, header, index, whole ? number(in.p + i + prefix + 1, n) : 0)) {
            wrong++;
            i++;
            continue;
        }
        if (!whole)
            return 0;
        i += prefix + 1 + n;
        if (header == TIMESTAMP) {
            *bad += wrong;
            return i;
        }
    }
    return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

TL_PRINTF(3, 4)
static void add(char *out, size_t *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int more = vsnprintf(out + *n, TL_SPE_TEXT - *n, format, args);
    va_end(args);
    *n = more < 0 || (size_t)more >= TL_SPE_TEXT - *n ? TL_SPE_TEXT - 1 : *n + (size_t)more;
}

static void add_class(const struct tl_spe_record *r, char *out, size_t *n)
{
    const unsigned op = r->op;
    if (!r->has_class || r->class == TL_SPE_OTHER) {
        add(out, n, "operation");
    } else if (r->class == TL_SPE_BRANCH) {
        add(out, n, "branch%s%s", op & 1 ? " conditional" : "", op & 2 ? " indirect" : "");
        add(out, n, "%s", (op >> 3 & 3) == 1 ? " call" : (op >> 3 & 3) == 2 ? " return" : "");
        if (!tl_spe_is_taken(r))
            add(out, n, " not-taken");
    } else {
        const bool ordered = (op & 0xe2) == 2;
        add(out, n, "%s%s%s%s", op & 1 ? "store" : "load", ordered && op & 4 ? " atomic" : "",
            ordered && op & 8 ? " exclusive" : "", ordered && op & 16 ? " ordered" : "");
    }
}

static void add_events(const struct tl_spe_record *r, char *out, size_t *n)
{
    static const char *const names[] = {
        [0] = "exception", [2] = "l1d",          [3] = "l1d-refill",   [4] = "tlb",
        [5] = "tlb-walk",  [7] = "mispredicted", [8] = "llc",          [9] = "llc-miss",
        [10] = "remote",   [11] = "misaligned",  [16] = "transaction", [17] = "partial",
        [18] = "empty",    [19] = "l2d",         [20] = "l2d-miss",    [21] = "modified",
        [22] = "recent",   [23] = "snooped"};
    for (unsigned i = 0; r->has_events && i < sizeof names / sizeof *names; i++)
        if (r->events >> i & 1 && names[i])
            add(out, n, " %s", names[i]);
}

char *tl_spe_text(const struct tl_spe_record *r, char out[static TL_SPE_TEXT])
{
    static const char *const counters[] = {"cycles", "issue", "translation"};
    size_t n = 0;
    add_class(r, out, &n);
    add_events(r, out, &n);
    for (unsigned i = 0; i < TL_SPE_COUNTERS; i++)
        if (r->counters >> i & 1)
            add(out, &n, " %s %u", counters[i], r->counter[i]);
    if (r->addresses >> TL_SPE_DATA & 1)
        add(out, &n, " data %016" PRIx64, r->address[TL_SPE_DATA]);
    if (r->addresses >> TL_SPE_PHYSICAL & 1)
        add(out, &n, " physical %016" PRIx64, r->address[TL_SPE_PHYSICAL]);
    if (r->has_source)
        add(out, &n, " source 0x%" PRIx64, r->source);
    return out;
}
