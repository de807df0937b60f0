/* SPDX-License-Identifier: MIT */
/*
 * Attributes are found by event ID with a hash, since each record asks and a file may have millions
 * of IDs. Members beyond the size that a file states are taken as 0, as the kernel does for older
 * versions of the structure.
 */
#include "perf/attr.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_ATTRS 65536u
#define MAX_IDS   (1u << 22)
#define MAX_VCPUS 512u /* which are looked through for each ID */

/* Bits of sample_type whose members are in the trailer. */
#define TRAILER                                                                                    \
    (TL_PERF_SAMPLE_TID | TL_PERF_SAMPLE_TIME | TL_PERF_SAMPLE_ID | TL_PERF_SAMPLE_STREAM_ID |     \
     TL_PERF_SAMPLE_CPU | TL_PERF_SAMPLE_IDENTIFIER)

/* On machines of the other byte order, bit fields start at the other end of each byte. */
static uint64_t mirrored(const uint8_t *p)
{
    uint64_t v = tl_le64(p);
    v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
    v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
    return (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
}

int tl_perf_attr_read(struct tl_perf_attr *attr, bool swap, struct tl_bytes bytes)
{
    if (bytes.n < TL_PERF_ATTR_MIN)
        return TL_BAD;
    const uint8_t *const p = bytes.p;
    uint32_t size = tl_perf_u32(swap, p + 4);
    size = size == 0 ? TL_PERF_ATTR_MIN : size; /* as written by the first versions */
    if (size < TL_PERF_ATTR_MIN || size > bytes.n)
        return TL_BAD;
    *attr = (struct tl_perf_attr){
        .type = tl_perf_u32(swap, p),
        .size = size,
        .config = tl_perf_u64(swap, p + 8),
        .sample_type = tl_perf_u64(swap, p + 24),
        .read_format = tl_perf_u64(swap, p + 32),
        .flags = swap ? mirrored(p + 40) : tl_le64(p + 40),
        .config2 = size >= 72 ? tl_perf_u64(swap, p + 64) : 0,
        .branch_sample_type = size >= 80 ? tl_perf_u64(swap, p + 72) : 0,
        .regs_user = size >= 96 ? tl_perf_u64(swap, p + 80) : 0,
        .regs_intr = size >= 104 ? tl_perf_u64(swap, p + 96) : 0,
    };
    return TL_OK;
}

void tl_perf_attrs_fini(struct tl_perf_attrs *attrs)
{
    free(attrs->v);
    tl_perf_map_fini(&attrs->ids);
    tl_perf_map_fini(&attrs->types);
    tl_perf_map_fini(&attrs->cpus);
    tl_perf_map_fini(&attrs->guests);
    free(attrs->vcpus);
    *attrs = (struct tl_perf_attrs){0};
}

int tl_perf_attrs_add(struct tl_perf_attrs *attrs, const struct tl_perf_attr *attr, bool swap,
                      struct tl_bytes ids)
{
    const size_t n = ids.n / 8;
    if (attrs->n >= MAX_ATTRS || n > MAX_IDS - attrs->ids.keys.n)
        return TL_LIMIT;
    if (tl_grow(&attrs->v, &attrs->cap, attrs->n + 1, sizeof *attrs->v) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < n; i++)
        if (tl_perf_map_set(&attrs->ids, tl_perf_u64(swap, ids.p + 8 * i), attrs->n) < 0)
            return TL_NOMEM;
    if (tl_perf_map_get(&attrs->types, attr->type) < 0 &&
        tl_perf_map_set(&attrs->types, attr->type, attrs->n) < 0)
        return TL_NOMEM;
    const struct tl_perf_attr *const first = attrs->v;
    attrs->alike =
        attrs->n == 0 ||
        (attrs->alike && (first->sample_type & TRAILER) == (attr->sample_type & TRAILER) &&
         tl_perf_attr_trailer(first) == tl_perf_attr_trailer(attr));
    attrs->aux_samples |= (attr->sample_type & TL_PERF_SAMPLE_AUX) != 0;
    attrs->v[attrs->n++] = *attr;
    return TL_OK;
}

static int add_guest(struct tl_perf_attrs *attrs, uint64_t id, struct tl_perf_vcpu vcpu)
{
    size_t i = 0;
    while (i < attrs->n_vcpus &&
           (attrs->vcpus[i].machine != vcpu.machine || attrs->vcpus[i].number != vcpu.number))
        i++;
    if (i == MAX_VCPUS || attrs->guests.keys.n >= MAX_IDS)
        return TL_LIMIT;
    if (i == attrs->n_vcpus) {
        if (tl_grow(&attrs->vcpus, &attrs->cap_vcpus, i + 1, sizeof *attrs->vcpus) < 0)
            return TL_NOMEM;
        attrs->vcpus[attrs->n_vcpus++] = vcpu;
    }
    if (attrs->vcpus[i].tid < 0)
        attrs->vcpus[i].tid = vcpu.tid;
    return tl_perf_map_set(&attrs->guests, id, i);
}

/* Behind the entries, {u64 machine, vcpu} for each, if virtual machines' records were merged in. */
static int index_guests(struct tl_perf_attrs *attrs, bool swap, struct tl_bytes body, uint64_t n)
{
    enum { ENTRY = 32, TID = 24, GUEST = 16 };
    int rc = TL_OK;
    if (n > (body.n - 8) / (ENTRY + GUEST))
        return TL_OK;
    for (uint64_t i = 0; rc == TL_OK && i < n; i++) {
        const uint8_t *const entry = body.p + 8 + ENTRY * i;
        const uint8_t *const guest = body.p + 8 + ENTRY * n + GUEST * i;
        const uint64_t machine = tl_perf_u64(swap, guest), tid = tl_perf_u64(swap, entry + TID);
        if (machine == 0 || machine > INT32_MAX)
            continue;
        rc = add_guest(attrs, tl_perf_u64(swap, entry),
                       (struct tl_perf_vcpu){.machine = (int32_t)machine,
                                             .tid = tid > 0 && tid <= INT32_MAX ? (int32_t)tid : -1,
                                             .number = (uint32_t)tl_perf_u64(swap, guest + 8)});
    }
    return rc;
}

/* {u64 id, idx, cpu, tid} per event; CPU -1: the event follows a thread. */
int tl_perf_attrs_index(struct tl_perf_attrs *attrs, bool swap, struct tl_bytes body)
{
    enum { ENTRY = 32, CPU = 16 };
    const uint64_t n = body.n < 8 ? 0 : tl_perf_u64(swap, body.p), there = (body.n - 8) / ENTRY;
    for (uint64_t i = 0; i < n && i < there; i++) {
        const uint8_t *const p = body.p + 8 + ENTRY * i;
        const uint64_t cpu = tl_perf_u64(swap, p + CPU);
        if (cpu > INT32_MAX)
            continue;
        if (attrs->cpus.keys.n >= MAX_IDS)
            return TL_LIMIT;
        if (tl_perf_map_set(&attrs->cpus, tl_perf_u64(swap, p), (size_t)cpu) < 0)
            return TL_NOMEM;
    }
    return body.n < 8 ? TL_OK : index_guests(attrs, swap, body, n);
}

const struct tl_perf_vcpu *tl_perf_attrs_guest(const struct tl_perf_attrs *attrs, uint64_t id)
{
    const int64_t i = tl_perf_map_get(&attrs->guests, id);
    return i < 0 ? NULL : &attrs->vcpus[i];
}

const struct tl_perf_vcpu *tl_perf_attrs_vcpu(const struct tl_perf_attrs *attrs, int32_t pid,
                                              int32_t tid, const char *name)
{
    unsigned number;
    const bool named = sscanf(name, "CPU %u/KVM", &number) == 1; /* as QEMU calls its threads */
    for (size_t i = 0; i < attrs->n_vcpus; i++) {
        const struct tl_perf_vcpu *const v = &attrs->vcpus[i];
        if (v->machine == pid && (v->tid == tid || (named && v->tid < 0 && v->number == number)))
            return v;
    }
    return NULL;
}

void tl_perf_attrs_state(struct tl_perf_attrs *attrs, struct tl_state *s)
{
    tl_state_array(s, &attrs->v, &attrs->n, &attrs->cap, sizeof *attrs->v);
    tl_state_check(s, attrs->n <= MAX_ATTRS);
    tl_perf_map_state(&attrs->ids, s, attrs->n);
    tl_perf_map_state(&attrs->types, s, attrs->n);
    tl_perf_map_state(&attrs->cpus, s, (size_t)INT32_MAX + 1);
    tl_state_array(s, &attrs->vcpus, &attrs->n_vcpus, &attrs->cap_vcpus, sizeof *attrs->vcpus);
    tl_perf_map_state(&attrs->guests, s, attrs->n_vcpus);
    tl_state_bool(s, &attrs->alike);
    tl_state_bool(s, &attrs->aux_samples);
}

const struct tl_perf_attr *tl_perf_attrs_by_id(const struct tl_perf_attrs *attrs, uint64_t id)
{
    const int64_t i = tl_perf_map_get(&attrs->ids, id);
    return i < 0 ? NULL : &attrs->v[i];
}

const struct tl_perf_attr *tl_perf_attrs_by_type(const struct tl_perf_attrs *attrs, uint32_t type)
{
    const int64_t i = tl_perf_map_get(&attrs->types, type);
    return i < 0 ? NULL : &attrs->v[i];
}

size_t tl_perf_attr_trailer(const struct tl_perf_attr *attr)
{
    if (!tl_perf_attr_has(attr, TL_PERF_SAMPLE_ID_ALL))
        return 0;
    return 8 * (size_t)__builtin_popcountll(attr->sample_type & TRAILER);
}
