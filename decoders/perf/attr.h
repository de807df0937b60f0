/* SPDX-License-Identifier: MIT */
/*
 * Events of a perf.data file: the relevant part of struct perf_event_attr, and numbers in the byte
 * order of the machine that wrote the file.
 *
 * Plain data; not thread-safe while being built.
 *
 * Source: Linux include/uapi/linux/perf_event.h;
 * tools/perf/Documentation/perf.data-file-format.txt.
 */
#ifndef TL_PERF_ATTR_H
#define TL_PERF_ATTR_H

#include "base/buf.h"
#include "base/bytes.h"
#include "perf/map.h"

#include <stdbool.h>

/* ---- byte order ------------------------------------------------------------------------------ */

static inline uint16_t tl_perf_u16(bool swap, const uint8_t *p)
{
    const uint16_t v = tl_le16(p);
    return swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t tl_perf_u32(bool swap, const uint8_t *p)
{
    const uint32_t v = tl_le32(p);
    return swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t tl_perf_u64(bool swap, const uint8_t *p)
{
    const uint64_t v = tl_le64(p);
    return swap ? __builtin_bswap64(v) : v;
}

/* ---- attributes ------------------------------------------------------------------------------ */

enum tl_perf_sample_bit { /* bits of sample_type */
                          TL_PERF_SAMPLE_IP = 1 << 0,
                          TL_PERF_SAMPLE_TID = 1 << 1,
                          TL_PERF_SAMPLE_TIME = 1 << 2,
                          TL_PERF_SAMPLE_ADDR = 1 << 3,
                          TL_PERF_SAMPLE_READ = 1 << 4,
                          TL_PERF_SAMPLE_CALLCHAIN = 1 << 5,
                          TL_PERF_SAMPLE_ID = 1 << 6,
                          TL_PERF_SAMPLE_CPU = 1 << 7,
                          TL_PERF_SAMPLE_PERIOD = 1 << 8,
                          TL_PERF_SAMPLE_STREAM_ID = 1 << 9,
                          TL_PERF_SAMPLE_RAW = 1 << 10,
                          TL_PERF_SAMPLE_BRANCH_STACK = 1 << 11,
                          TL_PERF_SAMPLE_REGS_USER = 1 << 12,
                          TL_PERF_SAMPLE_STACK_USER = 1 << 13,
                          TL_PERF_SAMPLE_WEIGHT = 1 << 14,
                          TL_PERF_SAMPLE_DATA_SRC = 1 << 15,
                          TL_PERF_SAMPLE_IDENTIFIER = 1 << 16,
                          TL_PERF_SAMPLE_TRANSACTION = 1 << 17,
                          TL_PERF_SAMPLE_REGS_INTR = 1 << 18,
                          TL_PERF_SAMPLE_PHYS_ADDR = 1 << 19,
                          TL_PERF_SAMPLE_AUX = 1 << 20,
                          TL_PERF_SAMPLE_CGROUP = 1 << 21,
                          TL_PERF_SAMPLE_DATA_PAGE_SIZE = 1 << 22,
                          TL_PERF_SAMPLE_CODE_PAGE_SIZE = 1 << 23,
                          TL_PERF_SAMPLE_WEIGHT_STRUCT = 1 << 24
};

enum tl_perf_attr_flag { /* bit numbers in flags */
                         TL_PERF_EXCLUDE_USER = 4,
                         TL_PERF_EXCLUDE_KERNEL = 5,
                         TL_PERF_SAMPLE_ID_ALL = 18
};

#define TL_PERF_ATTR_MIN 64 /* bytes of the oldest version */

struct tl_perf_attr {
    uint32_t type;   /* of the PMU */
    uint32_t size;   /* bytes, in the writer's version */
    uint64_t config; /* of the PMU */
    uint64_t config2;
    uint64_t sample_type; /* bits of enum tl_perf_sample_bit */
    uint64_t read_format;
    uint64_t flags; /* bits 1 << enum tl_perf_attr_flag */
    uint64_t branch_sample_type;
    uint64_t regs_user, regs_intr; /* bit sets of registers in samples */
};

static inline bool tl_perf_attr_has(const struct tl_perf_attr *attr, enum tl_perf_attr_flag flag)
{
    return attr->flags >> flag & 1;
}

/* Parse an attribute: its own `size`, at least 64, is its length in `bytes`. Returns TL_BAD. */
TL_MUST_USE int tl_perf_attr_read(struct tl_perf_attr *attr, bool swap, struct tl_bytes bytes);

/* A virtual processor whose own records were merged into the file. */
struct tl_perf_vcpu {
    int32_t machine; /* the machine's process in the host */
    int32_t tid;     /* the processor's thread in the host; -1: unknown */
    uint32_t number;
};

/* All attributes of a file, and their event IDs. */
struct tl_perf_attrs {
    struct tl_perf_attr *v;
    size_t n, cap;
    struct tl_perf_map ids;
    struct tl_perf_map types;  /* the first attribute of each PMU */
    struct tl_perf_map cpus;   /* event ID to CPU, from ID_INDEX records */
    struct tl_perf_map guests; /* event ID of a virtual machine to the index in `vcpus` */
    struct tl_perf_vcpu *vcpus;
    size_t n_vcpus, cap_vcpus;
    bool alike;       /* all have the same record trailer */
    bool aux_samples; /* samples of some of them contain trace */
};

void tl_perf_attrs_fini(struct tl_perf_attrs *attrs);

/* Add an attribute; `ids` are its event IDs, as in the file. Returns TL_NOMEM, TL_LIMIT. */
TL_MUST_USE int tl_perf_attrs_add(struct tl_perf_attrs *attrs, const struct tl_perf_attr *attr,
                                  bool swap, struct tl_bytes ids);

/* Process an ID_INDEX record's body: the CPU of each event ID. Returns TL_NOMEM, TL_LIMIT. */
TL_MUST_USE int tl_perf_attrs_index(struct tl_perf_attrs *attrs, bool swap, struct tl_bytes body);
void tl_perf_attrs_state(struct tl_perf_attrs *attrs, struct tl_state *state);

/* The virtual processor that this event ID belongs to; NULL: the host's. */
const struct tl_perf_vcpu *tl_perf_attrs_guest(const struct tl_perf_attrs *attrs, uint64_t id);
/* The virtual processor that the host's thread runs; NULL: none that is known. */
const struct tl_perf_vcpu *tl_perf_attrs_vcpu(const struct tl_perf_attrs *attrs, int32_t pid,
                                              int32_t tid, const char *name);

/* The attribute of this event ID; NULL: unknown ID. */
const struct tl_perf_attr *tl_perf_attrs_by_id(const struct tl_perf_attrs *attrs, uint64_t id);

/* The attribute of this PMU; NULL: none. */
const struct tl_perf_attr *tl_perf_attrs_by_type(const struct tl_perf_attrs *attrs, uint32_t type);

/* Size in bytes of the trailer of this attribute's records. */
size_t tl_perf_attr_trailer(const struct tl_perf_attr *attr);

#endif
