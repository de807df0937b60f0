/* SPDX-License-Identifier: MIT */
/*
 * Two tables state the fields of each message and their widths; one loop reads all of them. What
 * follows the last of them is a timestamp, since encoders may add one to any message; what has
 * still more fields is several messages, of which parts are missing.
 */
#include "riscv/nexus_message.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>

/* Name and width of each field in bits; 0: variable. */
static const struct {
    const char *name;
    uint8_t bits;
} fields[TL_NEXUS_FIELDS] = {
    [TL_NEXUS_PROCESS] = {"PROCESS", 0}, [TL_NEXUS_ICNT] = {"I-CNT", 0},
    [TL_NEXUS_BTYPE] = {"B-TYPE", 2},    [TL_NEXUS_UADDR] = {"U-ADDR", 0},
    [TL_NEXUS_FADDR] = {"F-ADDR", 0},    [TL_NEXUS_SYNC_REASON] = {"SYNC", 4},
    [TL_NEXUS_HISTORY] = {"HIST", 0},    [TL_NEXUS_RCODE] = {"RCODE", 4},
    [TL_NEXUS_RDATA] = {"RDATA", 0},     [TL_NEXUS_HREPEAT] = {"HREPEAT", 0},
    [TL_NEXUS_BCNT] = {"B-CNT", 0},      [TL_NEXUS_EVCODE] = {"EVCODE", 4},
    [TL_NEXUS_CDF] = {"CDF", 2},         [TL_NEXUS_ETYPE] = {"ETYPE", 4},
    [TL_NEXUS_ECODE] = {"ECODE", 0},     [TL_NEXUS_IDTAG] = {"IDTAG", 0},
    [TL_NEXUS_DQDATA] = {"DQDATA", 0},   [TL_NEXUS_ADDR] = {"ADDR", 0},
    [TL_NEXUS_DATA] = {"DATA", 0},       [TL_NEXUS_CKSRC] = {"CKSRC", 4},
    [TL_NEXUS_CKDF] = {"CKDF", 2},       [TL_NEXUS_CKDATA0] = {"CKDATA0", 0},
    [TL_NEXUS_CKDATA1] = {"CKDATA1", 0}, [TL_NEXUS_TSTAMP] = {"TSTAMP", 0},
};

#define NO_MORE TL_NEXUS_FIELDS

/* The fields of each message behind TCODE and SRC, in order; a timestamp may follow. */
static const struct {
    const char *name;
    uint8_t fields[6];
} messages[TL_NEXUS_TCODES] = {
    [TL_NEXUS_OWNERSHIP] = {"Ownership", {TL_NEXUS_PROCESS, NO_MORE}},
    [TL_NEXUS_DIRECT] = {"DirectBranch", {TL_NEXUS_ICNT, NO_MORE}},
    [TL_NEXUS_INDIRECT] = {"IndirectBranch",
                           {TL_NEXUS_BTYPE, TL_NEXUS_ICNT, TL_NEXUS_UADDR, NO_MORE}},
    [TL_NEXUS_DATA_ACQUISITION] = {"DataAcquisition", {TL_NEXUS_IDTAG, TL_NEXUS_DQDATA, NO_MORE}},
    [TL_NEXUS_ERROR] = {"Error", {TL_NEXUS_ETYPE, TL_NEXUS_ECODE, NO_MORE}},
    [TL_NEXUS_SYNC] = {"ProgTraceSync",
                       {TL_NEXUS_SYNC_REASON, TL_NEXUS_ICNT, TL_NEXUS_FADDR, NO_MORE}},
    [TL_NEXUS_DIRECT_SYNC] = {"DirectBranchSync",
                              {TL_NEXUS_SYNC_REASON, TL_NEXUS_ICNT, TL_NEXUS_FADDR, NO_MORE}},
    [TL_NEXUS_INDIRECT_SYNC] = {"IndirectBranchSync",
                                {TL_NEXUS_SYNC_REASON, TL_NEXUS_BTYPE, TL_NEXUS_ICNT,
                                 TL_NEXUS_FADDR, NO_MORE}},
    [TL_NEXUS_AUXILIARY_WRITE] = {"AuxiliaryAccessWrite", {TL_NEXUS_ADDR, TL_NEXUS_DATA, NO_MORE}},
    [TL_NEXUS_RESOURCE_FULL] = {"ResourceFull",
                                {TL_NEXUS_RCODE, TL_NEXUS_RDATA, TL_NEXUS_HREPEAT, NO_MORE}},
    [TL_NEXUS_HIST] = {"IndirectBranchHist",
                       {TL_NEXUS_BTYPE, TL_NEXUS_ICNT, TL_NEXUS_UADDR, TL_NEXUS_HISTORY, NO_MORE}},
    [TL_NEXUS_HIST_SYNC] = {"IndirectBranchHistSync",
                            {TL_NEXUS_SYNC_REASON, TL_NEXUS_BTYPE, TL_NEXUS_ICNT, TL_NEXUS_FADDR,
                             TL_NEXUS_HISTORY, NO_MORE}},
    [TL_NEXUS_REPEAT] = {"RepeatBranch", {TL_NEXUS_BCNT, NO_MORE}},
    [TL_NEXUS_CORRELATION] = {"ProgTraceCorrelation",
                              {TL_NEXUS_EVCODE, TL_NEXUS_CDF, TL_NEXUS_ICNT, TL_NEXUS_HISTORY,
                               NO_MORE}},
    [TL_NEXUS_CIRCUIT] = {"InCircuitTrace",
                          {TL_NEXUS_CKSRC, TL_NEXUS_CKDF, TL_NEXUS_CKDATA0, TL_NEXUS_CKDATA1,
                           NO_MORE}},
    [TL_NEXUS_CIRCUIT_SYNC] = {"InCircuitTraceSync",
                               {TL_NEXUS_CKSRC, TL_NEXUS_CKDF, TL_NEXUS_CKDATA0, TL_NEXUS_CKDATA1,
                                NO_MORE}},
};

/* ---- bits ---------------------------------------------------------------------------------- */

/* Words are read behind the end of a message: there must be room for one. */
#define WORD 8u

struct reader {
    const uint8_t *p;
    size_t n;
    size_t byte;  /* of the next bit */
    unsigned bit; /* of its six */
    size_t ended; /* bytes up to the last field end that was used */
};

/* Does the byte in front end a field that was not used yet? */
static inline bool is_behind_end(const struct reader *r)
{
    return r->bit == 0 && r->byte > r->ended &&
           TL_NEXUS_MSEO(r->p[r->byte - 1]) != TL_NEXUS_GOES_ON;
}

/* The next bits of a byte, up to `most`. Returns how many. */
static inline unsigned take_bits(struct reader *r, unsigned most, uint64_t *out)
{
    const unsigned n = most < 6 - r->bit ? most : 6 - r->bit;
    *out = (uint64_t)(r->p[r->byte] >> (2 + r->bit)) & ((1u << n) - 1);
    r->bit += n;
    if (r->bit == 6) {
        r->bit = 0;
        r->byte++;
    }
    return n;
}

/* MSEO of 8 bytes: not 0 where a field ends. */
#define ENDS UINT64_C(0x0303030303030303)

/* The data bits of 8 bytes, joined. */
static uint64_t join(uint64_t bytes)
{
    uint64_t x = bytes >> 2 & UINT64_C(0x3f3f3f3f3f3f3f3f);
    x = (x & UINT64_C(0x003f003f003f003f)) | (x & UINT64_C(0x3f003f003f003f00)) >> 2;
    x = (x & UINT64_C(0x00000fff00000fff)) | (x & UINT64_C(0x0fff00000fff0000)) >> 4;
    return (x & 0xffffff) | x >> 32 << 24;
}

/* The same as take_fixed() and take_variable(), for fields of any length. */
static bool take_long_fixed(struct reader *r, unsigned bits, uint64_t *out)
{
    uint64_t some;
    *out = 0;
    for (unsigned i = 0; i < bits;) {
        if (r->byte >= r->n || is_behind_end(r))
            return false;
        const unsigned n = take_bits(r, bits - i, &some);
        *out |= some << i;
        i += n;
    }
    return true;
}

static bool take_long_variable(struct reader *r, uint64_t *out, unsigned *bits)
{
    uint64_t some;
    *out = 0;
    *bits = 0;
    for (bool goes_on = true; goes_on;) {
        if (r->byte >= r->n)
            return false;
        goes_on = TL_NEXUS_MSEO(r->p[r->byte]) == TL_NEXUS_GOES_ON;
        const unsigned n = take_bits(r, 6, &some);
        *out |= *bits < 64 ? some << *bits : 0;
        *bits += n;
    }
    r->ended = r->byte;
    return true;
}

/* A fixed field; false: the message, or the field it belongs to, ends before. */
static inline bool take_fixed(struct reader *r, unsigned bits, uint64_t *out)
{
    if (bits + r->bit > 6 || r->byte >= r->n || is_behind_end(r))
        return take_long_fixed(r, bits, out);
    (void)take_bits(r, bits, out);
    return true;
}

/* A variable field, with the number of bits sent; false: the message ends before. */
static inline bool take_variable(struct reader *r, uint64_t *out, unsigned *bits)
{
    if (is_behind_end(r)) { /* fixed fields filled the byte that ends it */
        r->ended = r->byte;
        *out = *bits = 0;
        return true;
    }
    if (r->byte >= r->n)
        return false;
    const uint64_t word = tl_le64(r->p + r->byte), ends = word & ENDS;
    if (!ends) /* it is longer than 8 bytes, or the message ends */
        return take_long_variable(r, out, bits);
    const unsigned bytes = (unsigned)__builtin_ctzll(ends) / 8 + 1;
    *bits = 6 * bytes - r->bit;
    *out = join(word) >> r->bit & ((UINT64_C(1) << *bits) - 1);
    r->bit = 0;
    r->ended = r->byte += bytes;
    return true;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Does this message have the field, considering those before it? */
static bool is_present(const struct tl_nexus_message *m, enum tl_nexus_field field)
{
    switch (field) {
    case TL_NEXUS_HREPEAT:
        return m->field[TL_NEXUS_RCODE] == 2;
    case TL_NEXUS_HISTORY:
        return m->tcode != TL_NEXUS_CORRELATION || m->field[TL_NEXUS_CDF] == 1;
    case TL_NEXUS_CKDATA1:
        return m->field[TL_NEXUS_CKDF] == 1;
    default:
        return true;
    }
}

/* Inline, since a message has several, which are most of its cost. */
static inline __attribute__((always_inline)) bool
take_field(struct reader *r, struct tl_nexus_message *m, enum tl_nexus_field field)
{
    unsigned bits = fields[field].bits;
    uint64_t value;
    if (bits ? !take_fixed(r, bits, &value) : !take_variable(r, &value, &bits))
        return false;
    m->field[field] = value;
    m->has |= UINT32_C(1) << field;
    if (field == TL_NEXUS_UADDR || field == TL_NEXUS_FADDR)
        m->addr_bits = (uint8_t)bits;
    return true;
}

/* RDATA is a count, not a history. */
static bool is_count(const struct tl_nexus_message *m)
{
    const uint64_t rcode = m->field[TL_NEXUS_RCODE];
    return rcode == TL_NEXUS_FULL_ICNT || rcode == TL_NEXUS_FULL_NOT_TAKEN ||
           rcode == TL_NEXUS_FULL_TAKEN;
}

static bool are_counts_small(const struct tl_nexus_message *m)
{
    return m->field[TL_NEXUS_ICNT] <= TL_NEXUS_COUNT_MAX &&
           (!is_count(m) || m->field[TL_NEXUS_RDATA] <= TL_NEXUS_COUNT_MAX) &&
           m->field[TL_NEXUS_HREPEAT] <= TL_NEXUS_REPEAT_MAX &&
           m->field[TL_NEXUS_BCNT] <= TL_NEXUS_REPEAT_MAX;
}

/* ---- the most frequent ones ------------------------------------------------------------------ */

#define HAS(field) (UINT32_C(1) << TL_NEXUS_##field)

/* Fields that are in one word. */
struct word {
    uint64_t bits; /* data bits, joined */
    uint64_t ends; /* the lowest bit of each byte that ends a field */
    unsigned at;   /* bits that were read */
};

static inline bool take_short(struct word *w, uint64_t *out, unsigned *bits)
{
    if (!w->ends)
        return false;
    const unsigned byte = (unsigned)__builtin_ctzll(w->ends) / 8, end = 6 * byte + 6;
    w->ends &= w->ends - 1;
    *bits = end - w->at;
    *out = w->bits >> w->at & ((UINT64_C(1) << *bits) - 1);
    w->at = end;
    return true;
}

/*
 * Nearly all messages are of three kinds, and fit in a word. The same as read_any() for them,
 * without asking tables. False: read_any() must read it. Inline, for each kind has its own code.
 */
static inline __attribute__((always_inline)) bool read_short(struct tl_nexus_message *m,
                                                             const uint8_t *p, size_t n,
                                                             unsigned src_bits,
                                                             enum tl_nexus_tcode tcode)
{
    const bool direct = tcode == TL_NEXUS_DIRECT, history = tcode == TL_NEXUS_HIST;
    const unsigned head_bits = direct ? src_bits : src_bits + 2;
    if (head_bits > 5 || n < 2 || n > 9)
        return false;
    const uint64_t bytes = tl_le64(p + 1);
    const unsigned all = 6 * ((unsigned)n - 1);
    struct word w = {join(bytes), bytes & UINT64_C(0x0101010101010101), head_bits};
    uint64_t count, address = 0, outcomes = 0, time = 0;
    unsigned bits, address_bits = 0;
    bool good = take_short(&w, &count, &bits);
    if (!direct)
        good = good && w.at < all && take_short(&w, &address, &address_bits);
    if (history)
        good = good && w.at < all && take_short(&w, &outcomes, &bits);
    const bool timed = w.at < all;
    if (!good || count > TL_NEXUS_COUNT_MAX || (timed && !take_short(&w, &time, &bits)) ||
        w.at < all)
        return false;
    const uint32_t has = HAS(ICNT) | (direct ? 0 : HAS(BTYPE) | HAS(UADDR)) |
                         (history ? HAS(HISTORY) : 0) | (timed ? HAS(TSTAMP) : 0);
    for (uint32_t old = m->has & ~has; old; old &= old - 1)
        m->field[__builtin_ctz(old)] = 0;
    const unsigned head = p[1] >> 2;
    m->has = has;
    m->bytes = (uint32_t)n;
    m->tcode = (uint8_t)tcode;
    m->src = src_bits ? (uint16_t)(head & ((1u << src_bits) - 1)) : 0;
    m->addr_bits = (uint8_t)address_bits;
    m->field[TL_NEXUS_ICNT] = count;
    m->field[TL_NEXUS_BTYPE] = direct ? 0 : head >> src_bits & 3;
    m->field[TL_NEXUS_UADDR] = address;
    m->field[TL_NEXUS_HISTORY] = outcomes;
    m->field[TL_NEXUS_TSTAMP] = time;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static __attribute__((noinline)) int read_any(struct tl_nexus_message *m, const uint8_t *p,
                                              size_t n, unsigned src_bits)
{
    struct reader r = {.p = p, .n = n < TL_NEXUS_BYTES ? n : TL_NEXUS_BYTES};
    uint64_t src = 0;
    for (; m->has; m->has &= m->has - 1) /* what the last message had */
        m->field[__builtin_ctz(m->has)] = 0;
    m->bytes = (uint32_t)n;
    m->addr_bits = 0;
    const uint8_t tcode = m->tcode = r.n ? p[0] >> 2 : 0;
    r.byte = 1;
    if (r.n == 0 || (src_bits && !take_fixed(&r, src_bits, &src)))
        return TL_BAD;
    m->src = (uint16_t)src;
    if (!messages[tcode].name)
        return tcode == 0 && n > 1 && p[1] == 0 ? TL_BAD : TL_OK;
    for (const uint8_t *field = messages[tcode].fields; *field != NO_MORE; field++)
        if (is_present(m, *field) && !take_field(&r, m, *field))
            return TL_BAD;
    if (r.ended < n)
        (void)take_field(&r, m, TL_NEXUS_TSTAMP);
    return r.ended >= r.n && are_counts_small(m) ? TL_OK : TL_BAD;
}

static __attribute__((noinline)) int read_copy(struct tl_nexus_message *m, struct tl_bytes bytes,
                                               unsigned src_bits)
{
    uint8_t copy[TL_NEXUS_BYTES + WORD] = {0};
    memcpy(copy, bytes.p, bytes.n < TL_NEXUS_BYTES ? bytes.n : TL_NEXUS_BYTES);
    return read_any(m, copy, bytes.n, src_bits);
}

int tl_nexus_read(struct tl_nexus_message *m, struct tl_bytes bytes, size_t room, unsigned src_bits)
{
    const uint8_t *const p = bytes.p;
    const size_t n = bytes.n;
    bool done = false;
    if (room < n + WORD)
        return read_copy(m, bytes, src_bits);
    if (p[0] >> 2 == TL_NEXUS_HIST)
        done = read_short(m, p, n, src_bits, TL_NEXUS_HIST);
    else if (p[0] >> 2 == TL_NEXUS_DIRECT)
        done = read_short(m, p, n, src_bits, TL_NEXUS_DIRECT);
    else if (p[0] >> 2 == TL_NEXUS_INDIRECT)
        done = read_short(m, p, n, src_bits, TL_NEXUS_INDIRECT);
    return done ? TL_OK : read_any(m, p, n, src_bits);
}

unsigned tl_nexus_source(struct tl_bytes bytes, unsigned src_bits)
{
    unsigned src = 0;
    for (unsigned i = 1, bits = 0; bits < src_bits && i < bytes.n; i++, bits += 6)
        src |= (unsigned)bytes.p[i] >> 2 << bits;
    return src & ((1u << src_bits) - 1);
}

bool tl_nexus_is_reserved(uint8_t tcode)
{
    return !messages[tcode].name && (tcode < TL_NEXUS_VENDOR || tcode == TL_NEXUS_TCODES - 1);
}

const char *tl_nexus_name(uint8_t tcode)
{
    return messages[tcode].name          ? messages[tcode].name
           : tl_nexus_is_reserved(tcode) ? "Reserved"
                                         : "Vendor";
}

void tl_nexus_text(const struct tl_nexus_message *m, char *out, size_t size)
{
    int n = 0;
    out[0] = '\0';
    if (!messages[m->tcode].name)
        n = snprintf(out, size, "TCODE=%u", m->tcode);
    const uint8_t *field = messages[m->tcode].fields;
    for (unsigned i = 0; i < 7 && messages[m->tcode].name && n >= 0 && (size_t)n < size; i++) {
        const enum tl_nexus_field f = *field == NO_MORE ? TL_NEXUS_TSTAMP : *field;
        const bool is_address = f == TL_NEXUS_UADDR || f == TL_NEXUS_FADDR;
        if (tl_nexus_has(m, f))
            n += snprintf(out + n, size - (size_t)n, "%s%s=0x%" PRIx64, n ? " " : "",
                          fields[f].name, m->field[f] << is_address);
        if (f == TL_NEXUS_TSTAMP)
            break;
        field++;
    }
}
