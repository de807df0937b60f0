/* SPDX-License-Identifier: MIT */
/*
 * Members are taken from the body one by one, with an error that sticks: a record that is too short
 * for its fields is recognised once, at its end. The trailer is read from the end of the record,
 * because the kernel's versions differ in the members before it.
 */
#include "perf/record.h"

/* The unread part of a record's body. */
struct rest {
    const uint8_t *p;
    size_t n;
    bool swap, bad;
};

static uint64_t take(struct rest *r, size_t size)
{
    if (r->n < size) {
        r->bad = true;
        r->n = 0;
        return 0;
    }
    const uint8_t *const p = r->p;
    r->p += size;
    r->n -= size;
    switch (size) {
    case 2:
        return tl_perf_u16(r->swap, p);
    case 4:
        return tl_perf_u32(r->swap, p);
    case 8:
        return tl_perf_u64(r->swap, p);
    default:
        return 0;
    }
}

static uint64_t u64(struct rest *r)
{
    return take(r, 8);
}

static uint32_t u32(struct rest *r)
{
    return (uint32_t)take(r, 4);
}

static int32_t i32(struct rest *r)
{
    return (int32_t)take(r, 4);
}

static struct tl_bytes bytes(struct rest *r, size_t n)
{
    const struct tl_bytes b = {r->p, n};
    if (r->n < n) {
        r->bad = true;
        return (struct tl_bytes){0};
    }
    r->p += n;
    r->n -= n;
    return b;
}

/* Read a name and its padding to a multiple of 8; names are aligned. */
static const char *name(struct rest *r)
{
    const uint8_t *const end = r->n ? memchr(r->p, 0, r->n) : NULL;
    const char *const text = (const char *)r->p;
    if (!end) {
        r->bad = true;
        return "";
    }
    const size_t n = (size_t)(end - r->p) / 8 * 8 + 8;
    bytes(r, n < r->n ? n : r->n);
    return text;
}

/* ---- the trailer ----------------------------------------------------------------------------- */

/* The attribute of a kernel record. If trailers differ, the event ID is the last member of each. */
static const struct tl_perf_attr *attr_of(const struct tl_perf_raw *raw, bool swap,
                                          const struct tl_perf_attrs *attrs)
{
    if (attrs->n == 0)
        return NULL;
    if (!attrs->alike && raw->body.n >= 8) {
        const uint64_t id = tl_perf_u64(swap, raw->body.p + raw->body.n - 8);
        const struct tl_perf_attr *const attr = tl_perf_attrs_by_id(attrs, id);
        if (attr && attr->sample_type & TL_PERF_SAMPLE_IDENTIFIER)
            return attr;
    }
    return attrs->v;
}

/* Without a CPU in the trailer, the event ID determines the CPU, if the event is bound to one. */
static void find_cpu(struct tl_perf_record *out, uint64_t id, const struct tl_perf_attrs *attrs)
{
    const int64_t cpu = tl_perf_map_get(&attrs->cpus, id);
    const struct tl_perf_vcpu *const guest = tl_perf_attrs_guest(attrs, id);
    out->has_cpu = cpu >= 0;
    out->cpu = cpu >= 0 ? (uint32_t)cpu : 0;
    if (guest) {
        out->machine = guest->machine;
        out->vcpu = guest->number;
    }
}

static void read_trailer(struct tl_perf_record *out, const struct tl_perf_attr *attr, bool swap,
                         const uint8_t *p, const struct tl_perf_attrs *attrs)
{
    const uint64_t type = attr->sample_type;
    const uint8_t *const end = p + tl_perf_attr_trailer(attr);
    if (type & TL_PERF_SAMPLE_TID) {
        out->has_tid = true;
        out->pid = (int32_t)tl_perf_u32(swap, p);
        out->tid = (int32_t)tl_perf_u32(swap, p + 4);
        p += 8;
    }
    if (type & TL_PERF_SAMPLE_TIME) {
        out->time = tl_perf_u64(swap, p);
        out->has_time = out->time > 0; /* 0 in records synthesised by perf */
        p += 8;
    }
    if (type & TL_PERF_SAMPLE_ID) {
        find_cpu(out, tl_perf_u64(swap, p), attrs);
        p += 8;
    }
    p += type & TL_PERF_SAMPLE_STREAM_ID ? 8 : 0;
    if (type & TL_PERF_SAMPLE_IDENTIFIER)
        find_cpu(out, tl_perf_u64(swap, end - 8), attrs);
    if (type & TL_PERF_SAMPLE_CPU) {
        out->has_cpu = true;
        out->cpu = tl_perf_u32(swap, p);
    }
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void read_mapping(struct tl_perf_record *out, struct rest *r)
{
    struct tl_perf_mapping *const m = &out->mapping;
    *m = (struct tl_perf_mapping){.pid = i32(r), .protection = 5};
    m->tid = i32(r);
    m->address = u64(r);
    m->length = u64(r);
    m->offset = u64(r);
    if (out->type == TL_PERF_MMAP2) {
        const struct tl_bytes id = bytes(r, 24);
        if (id.p && out->misc & TL_PERF_MISC_BUILD_ID && id.p[0] <= TL_PERF_BUILD_ID_MAX) {
            m->n_build_id = id.p[0];
            memcpy(m->build_id, id.p + 4, m->n_build_id);
        }
        m->protection = u32(r);
        u32(r);
    }
    m->name = name(r);
}

static void read_poke(struct tl_perf_record *out, struct rest *r)
{
    out->poke.address = u64(r);
    const size_t before = (size_t)take(r, 2), after = (size_t)take(r, 2);
    out->poke.before = bytes(r, before);
    out->poke.after = bytes(r, after);
    const size_t used = 12 + before + after; /* padded to a multiple of 8 */
    bytes(r, (8 - used % 8) % 8);
}

/* {u64 device, u64 inode} per kind of namespace. */
static void read_spaces(struct tl_perf_record *out, struct rest *r)
{
    out->spaces.pid = i32(r);
    out->spaces.tid = i32(r);
    const uint64_t n = u64(r);
    out->spaces.n = 0;
    for (uint64_t i = 0; i < n && !r->bad; i++) {
        u64(r);
        const uint64_t inode = u64(r);
        if (i < TL_PERF_NAMESPACES_MAX)
            out->spaces.inodes[out->spaces.n++] = inode;
    }
}

bool tl_perf_is_guest(uint16_t misc)
{
    const unsigned mode = misc & TL_PERF_MISC_MODE;
    return mode == TL_PERF_MODE_GUEST_KERNEL || mode == TL_PERF_MODE_GUEST_USER;
}

static int read_body(struct tl_perf_record *out, struct rest *r)
{
    switch (out->type) {
    case TL_PERF_MMAP:
    case TL_PERF_MMAP2:
        read_mapping(out, r);
        break;
    case TL_PERF_LOST_SAMPLES:
        out->lost = u64(r);
        break;
    case TL_PERF_LOST:
        u64(r);
        out->lost = u64(r);
        break;
    case TL_PERF_COMM:
        out->comm.pid = i32(r);
        out->comm.tid = i32(r);
        out->comm.name = name(r);
        break;
    case TL_PERF_EXIT:
    case TL_PERF_FORK:
        out->task.pid = i32(r);
        out->task.ppid = i32(r);
        out->task.tid = i32(r);
        out->task.ptid = i32(r);
        out->time = u64(r);
        out->has_time = out->time > 0;
        break;
    case TL_PERF_AUX:
        out->aux.offset = u64(r);
        out->aux.size = u64(r);
        out->aux.flags = u64(r);
        break;
    case TL_PERF_ITRACE_START:
    case TL_PERF_SWITCH_CPU_WIDE:
        out->who.pid = i32(r);
        out->who.tid = i32(r);
        break;
    case TL_PERF_SWITCH:
        break;
    case TL_PERF_NAMESPACES:
        read_spaces(out, r);
        break;
    case TL_PERF_KSYMBOL:
        out->symbol.address = u64(r);
        out->symbol.length = u32(r);
        out->symbol.kind = (uint16_t)take(r, 2);
        out->symbol.flags = (uint16_t)take(r, 2);
        out->symbol.name = name(r);
        break;
    case TL_PERF_TEXT_POKE:
        read_poke(out, r);
        break;
    case TL_PERF_AUX_OUTPUT_HW_ID:
        out->hw_id = u64(r);
        break;
    default:
        return TL_NOTFOUND;
    }
    return r->bad ? TL_BAD : TL_OK;
}

/*
 * Memory of a machine's kernel without records of its own is recorded by the host, under the
 * process that the machine is.
 */
static int find_machine(struct tl_perf_record *out)
{
    if (!tl_perf_is_guest(out->misc) || out->machine)
        return TL_OK;
    if ((out->misc & TL_PERF_MISC_MODE) != TL_PERF_MODE_GUEST_KERNEL || out->mapping.pid <= 0)
        return TL_NOTFOUND;
    out->machine = out->mapping.pid;
    out->mapping.pid = TL_PERF_KERNEL_PID;
    return TL_OK;
}

int tl_perf_record_read(struct tl_perf_record *out, const struct tl_perf_raw *raw, bool swap,
                        const struct tl_perf_attrs *attrs)
{
    *out = (struct tl_perf_record){.type = raw->type, .misc = raw->misc, .offset = raw->offset};
    struct rest r = {raw->body.p, raw->body.n, swap, false};
    const int rc = read_body(out, &r);
    if (rc < 0)
        return rc;
    const struct tl_perf_attr *const attr = attr_of(raw, swap, attrs);
    const size_t n = attr ? tl_perf_attr_trailer(attr) : 0;
    /* Records synthesised by perf may have no trailer. */
    if (n > 0 && r.n >= n)
        read_trailer(out, attr, swap, raw->body.p + raw->body.n - n, attrs);
    return out->type == TL_PERF_MMAP || out->type == TL_PERF_MMAP2 ? find_machine(out) : TL_OK;
}
