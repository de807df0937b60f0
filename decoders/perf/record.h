/* SPDX-License-Identifier: MIT */
/*
 * Sideband records of perf.data: which thread ran where and when, what was mapped, which bytes of
 * an AUX area the kernel filled. A record's trailer has its time, CPU and thread, if its event is
 * configured so. Pure functions; thread-safe.
 *
 * Source: Linux perf_event_open(2), "MMAP layout"; include/uapi/linux/perf_event.h.
 */
#ifndef TL_PERF_RECORD_H
#define TL_PERF_RECORD_H

#include "perf/reader.h"

#define TL_PERF_BUILD_ID_MAX   20
#define TL_PERF_KERNEL_PID     -1
#define TL_PERF_NAMESPACES_MAX 7

enum tl_perf_aux_flag {
    TL_PERF_AUX_TRUNCATED = 1, /* the buffer was full: trace is lost after this piece */
    TL_PERF_AUX_OVERWRITE = 2, /* snapshot */
    TL_PERF_AUX_PARTIAL = 4,   /* there may be gaps inside */
    TL_PERF_AUX_COLLISION = 8, /* the sink was also used by others */
    TL_PERF_AUX_RAW = 0x100    /* CoreSight: a single source, without formatter frames */
};

struct tl_perf_mapping {
    int32_t pid, tid;
    uint64_t address, length, offset;
    const char *name; /* borrowed from the record */
    uint8_t build_id[TL_PERF_BUILD_ID_MAX];
    uint8_t n_build_id;  /* 0: unknown */
    uint32_t protection; /* PROT_…; MMAP: read and execute */
};

struct tl_perf_record {
    uint32_t type; /* enum tl_perf_type */
    uint16_t misc;
    uint64_t offset; /* in the file */
    /* From the trailer. */
    bool has_time, has_cpu, has_tid;
    uint64_t time; /* ns */
    uint32_t cpu;
    int32_t pid, tid;
    /* Of a virtual machine: its process in the host, and the number of its processor. All pid and
     * tid are the machine's own, and pid -1 its kernel. 0: of the host. */
    int32_t machine;
    uint32_t vcpu;
    union {
        struct tl_perf_mapping mapping; /* MMAP, MMAP2 */
        struct {
            int32_t pid, tid;
            const char *name; /* borrowed */
        } comm;
        struct {
            int32_t pid, ppid, tid, ptid;
        } task; /* EXIT, FORK */
        struct {
            uint64_t offset, size, flags;
        } aux;
        struct {
            int32_t pid, tid;
        } who; /* ITRACE_START, SWITCH_CPU_WIDE (the other thread) */
        struct {
            int32_t pid, tid;
            size_t n;
            uint64_t inodes[TL_PERF_NAMESPACES_MAX]; /* net, uts, ipc, pid, user, mnt, cgroup */
        } spaces;                                    /* NAMESPACES */
        struct {
            uint64_t address;
            uint32_t length;
            uint16_t kind, flags;
            const char *name; /* borrowed */
        } symbol;             /* KSYMBOL */
        struct {
            uint64_t address;
            struct tl_bytes before, after; /* borrowed */
        } poke;                            /* TEXT_POKE */
        uint64_t hw_id;                    /* AUX_OUTPUT_HW_ID */
        uint64_t lost;                     /* LOST, LOST_SAMPLES: number of records */
    };
};

/* Is a record with this `misc` from a virtual machine's kernel or programs? */
bool tl_perf_is_guest(uint16_t misc);

/*
 * Parse a record. Returns TL_NOTFOUND: of a kind that is not used here, or memory of a virtual
 * machine that is not known; TL_BAD: too short for its contents.
 */
TL_MUST_USE int tl_perf_record_read(struct tl_perf_record *out, const struct tl_perf_raw *raw,
                                    bool swap, const struct tl_perf_attrs *attrs);

#endif
