/* SPDX-License-Identifier: MIT */
/*
 * Members before the raw bytes and the trace are skipped by their sizes, which only the attribute
 * tells. A mistake in one of them would misplace all that follow, so each is checked against the
 * bytes left.
 */
#include "perf/sample.h"

struct rest {
    struct tl_bytes in;
    bool swap, bad;
};

static uint64_t u64(struct rest *r)
{
    if (r->in.n < 8) {
        r->bad = true;
        return 0;
    }
    const uint64_t v = tl_perf_u64(r->swap, r->in.p);
    r->in.p += 8;
    r->in.n -= 8;
    return v;
}

/* Read two 32-bit numbers. */
static void pair(struct rest *r, uint32_t *first, uint32_t *second)
{
    const uint8_t *const p = r->in.p;
    (void)u64(r);
    *first = r->bad ? 0 : tl_perf_u32(r->swap, p);
    *second = r->bad ? 0 : tl_perf_u32(r->swap, p + 4);
}

static void skip(struct rest *r, uint64_t n)
{
    if (n > r->in.n) {
        r->bad = true;
        n = r->in.n;
    }
    r->in.p += n;
    r->in.n -= (size_t)n;
}

/* Find the attribute by event ID, which is at the same position in all samples. */
static int find_attr(size_t *out, struct tl_bytes body, bool swap,
                     const struct tl_perf_attrs *attrs)
{
    enum {
        BEFORE = TL_PERF_SAMPLE_IP | TL_PERF_SAMPLE_TID | TL_PERF_SAMPLE_TIME | TL_PERF_SAMPLE_ADDR
    };
    if (attrs->n == 0)
        return TL_NOTFOUND;
    const uint64_t type = attrs->v[0].sample_type;
    size_t at = 0;
    *out = 0;
    if (attrs->n == 1)
        return TL_OK;
    if (!(type & TL_PERF_SAMPLE_IDENTIFIER)) {
        if (!(type & TL_PERF_SAMPLE_ID))
            return TL_OK;
        at = 8 * (size_t)__builtin_popcountll(type & BEFORE);
    }
    const struct tl_perf_attr *const attr =
        body.n >= at + 8 ? tl_perf_attrs_by_id(attrs, tl_perf_u64(swap, body.p + at)) : NULL;
    *out = attr ? (size_t)(attr - attrs->v) : 0;
    return TL_OK;
}

/* Skip a struct read_format. */
static void skip_read(struct rest *r, uint64_t format)
{
    enum { ENABLED = 1, RUNNING = 2, ID = 4, GROUP = 8, LOST = 16 };
    const unsigned times = !!(format & ENABLED) + !!(format & RUNNING);
    const unsigned each = 1 + !!(format & ID) + !!(format & LOST);
    const uint64_t n = format & GROUP ? u64(r) : 1;
    skip(r, n > UINT16_MAX ? UINT64_MAX : 8 * (times + n * each));
}

/* Read the members after the raw bytes, of which only the trace is used. */
static void read_rest(struct tl_perf_sample *out, struct rest *r, const struct tl_perf_attr *attr)
{
    enum { HW_INDEX = 1 << 17, COUNTERS = 1 << 19 };
    /* Members of eight bytes each. */
    static const uint64_t words = TL_PERF_SAMPLE_PHYS_ADDR | TL_PERF_SAMPLE_CGROUP |
                                  TL_PERF_SAMPLE_DATA_PAGE_SIZE | TL_PERF_SAMPLE_CODE_PAGE_SIZE;
    const uint64_t type = attr->sample_type;
    if (type & TL_PERF_SAMPLE_BRANCH_STACK) {
        const uint64_t n = u64(r), each = attr->branch_sample_type & COUNTERS ? 32 : 24;
        skip(r, n > UINT16_MAX ? UINT64_MAX
                               : n * each + (attr->branch_sample_type & HW_INDEX ? 8 : 0));
    }
    if (type & TL_PERF_SAMPLE_REGS_USER && u64(r) != 0)
        skip(r, 8 * (uint64_t)__builtin_popcountll(attr->regs_user));
    if (type & TL_PERF_SAMPLE_STACK_USER) {
        const uint64_t n = u64(r);
        skip(r, n > UINT16_MAX ? UINT64_MAX : n > 0 ? n + 8 : 0);
    }
    skip(r, type & (TL_PERF_SAMPLE_WEIGHT | TL_PERF_SAMPLE_WEIGHT_STRUCT) ? 8 : 0);
    skip(r, type & TL_PERF_SAMPLE_DATA_SRC ? 8 : 0);
    skip(r, type & TL_PERF_SAMPLE_TRANSACTION ? 8 : 0);
    if (type & TL_PERF_SAMPLE_REGS_INTR && u64(r) != 0)
        skip(r, 8 * (uint64_t)__builtin_popcountll(attr->regs_intr));
    skip(r, 8 * (uint64_t)__builtin_popcountll(type & words));
    const uint64_t n = u64(r);
    const uint8_t *const p = r->in.p;
    skip(r, n);
    out->aux = r->bad ? (struct tl_bytes){0} : (struct tl_bytes){p, (size_t)n};
}

int tl_perf_sample_read(struct tl_perf_sample *out, const struct tl_perf_raw *record, bool swap,
                        const struct tl_perf_attrs *attrs)
{
    struct rest r = {record->body, swap, false};
    uint32_t a, b;
    *out = (struct tl_perf_sample){.pid = -1, .tid = -1};
    const int rc = find_attr(&out->attr, record->body, swap, attrs);
    if (rc < 0)
        return rc;
    const struct tl_perf_attr *const attr = &attrs->v[out->attr];
    const uint64_t type = attr->sample_type;
    if (type & TL_PERF_SAMPLE_IDENTIFIER)
        (void)u64(&r);
    out->has_ip = type & TL_PERF_SAMPLE_IP;
    if (out->has_ip)
        out->ip = u64(&r);
    if (type & TL_PERF_SAMPLE_TID) {
        pair(&r, &a, &b);
        out->pid = (int32_t)a;
        out->tid = (int32_t)b;
    }
    if (type & TL_PERF_SAMPLE_TIME)
        out->time = u64(&r);
    out->has_address = type & TL_PERF_SAMPLE_ADDR;
    if (out->has_address)
        out->address = u64(&r);
    if (type & TL_PERF_SAMPLE_ID)
        (void)u64(&r);
    if (type & TL_PERF_SAMPLE_STREAM_ID)
        (void)u64(&r);
    out->has_cpu = type & TL_PERF_SAMPLE_CPU;
    if (out->has_cpu)
        pair(&r, &out->cpu, &b);
    out->has_period = type & TL_PERF_SAMPLE_PERIOD;
    if (out->has_period)
        out->period = u64(&r);
    if (type & TL_PERF_SAMPLE_READ)
        skip_read(&r, attr->read_format);
    if (type & TL_PERF_SAMPLE_CALLCHAIN) {
        const uint64_t n = u64(&r);
        skip(&r, n > UINT16_MAX ? UINT64_MAX : 8 * n);
    }
    if (type & TL_PERF_SAMPLE_RAW && r.in.n >= 4) {
        const uint32_t n = tl_perf_u32(swap, r.in.p);
        skip(&r, 4);
        out->raw = (struct tl_bytes){r.in.p, n};
        skip(&r, n);
    }
    if (type & TL_PERF_SAMPLE_AUX)
        read_rest(out, &r, attr);
    return r.bad ? TL_BAD : TL_OK;
}

bool tl_perf_sched_switch_read(struct tl_perf_sched_switch *out, struct tl_bytes raw, bool swap,
                               int32_t tid)
{
    /* common fields, char prev_comm[16], i32 prev_pid, prev_prio, i64 prev_state, char
     * next_comm[16], i32 next_pid, next_prio */
    enum { PREV_PID = 24, NEXT_COMM = 40, NEXT_PID = 56, ALL = 64 };
    if (raw.n < ALL || !memchr(raw.p + NEXT_COMM, 0, NEXT_PID - NEXT_COMM))
        return false;
    *out = (struct tl_perf_sched_switch){
        .from = (int32_t)tl_perf_u32(swap, raw.p + PREV_PID),
        .to = (int32_t)tl_perf_u32(swap, raw.p + NEXT_PID),
        .to_name = (const char *)raw.p + NEXT_COMM,
    };
    return out->from == tid && out->to >= 0;
}
