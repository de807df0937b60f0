/* SPDX-License-Identifier: MIT */
/*
 * Packets of ETMv3 and PTM, decompressed: what one says does not depend on those before it.
 *
 * Source: Arm IHI0014Q chapter 7 (ETMv3); IHI0035B chapter 4 (PFT).
 */
#ifndef TL_ETM3_PACKET_H
#define TL_ETM3_PACKET_H

#include "etm3/config.h"
#include "isa/isa.h"

#define TL_ETM3_PACKET_MAX 24u /* bytes of any packet but A-sync, which has any number of zeros */
#define TL_ETM3_SYNC_ZEROS 5u  /* zero bytes of an A-sync, at least */

enum tl_etm3_type {
    TL_ETM3_ASYNC,
    TL_ETM3_NOT_SYNC, /* bytes before the first A-sync, or after one that is bad; never parsed */
    TL_ETM3_BAD,      /* reserved or malformed */
    TL_ETM3_ATOMS,    /* ETMv3: P-header. PTM: atoms */
    TL_ETM3_BRANCH,
    TL_ETM3_ISYNC,
    TL_ETM3_WAYPOINT, /* PTM: waypoint update */
    TL_ETM3_CYCLES,
    TL_ETM3_TIMESTAMP,
    TL_ETM3_CONTEXT,
    TL_ETM3_VMID,
    TL_ETM3_EXCEPTION_EXIT,
    TL_ETM3_EXCEPTION_ENTRY,
    TL_ETM3_TRIGGER,
    TL_ETM3_IGNORE,
    TL_ETM3_DATA /* data trace: enum tl_etm3_data */
};

/* What a packet of data trace says of an access of the load or store traced last. */
enum tl_etm3_data {
    TL_ETM3_NORMAL,
    TL_ETM3_PENDING,      /* the value follows later, under `tag` */
    TL_ETM3_LATE,         /* the value of a pending one */
    TL_ETM3_STORE_FAILED, /* of a store exclusive, which did not write */
    TL_ETM3_SUPPRESSED,   /* accesses were left out, since there was no room */
    TL_ETM3_NOT_TRACED    /* an access that is not traced, so that the next ones can be counted */
};

/* What executes at an address. */
enum tl_etm3_isa { TL_ETM3_ARM, TL_ETM3_THUMB, TL_ETM3_THUMBEE, TL_ETM3_JAZELLE };

/* Why a trace unit sends an I-sync. */
enum tl_etm3_reason { TL_ETM3_PERIODIC, TL_ETM3_TRACE_ON, TL_ETM3_OVERFLOWED, TL_ETM3_DEBUG_EXIT };

struct tl_etm3_packet {
    uint8_t type; /* enum tl_etm3_type */
    uint8_t size; /* bytes */
    /* ATOMS: `n` outcomes, the oldest in bit 0, 1 = passed (E) */
    uint8_t n;
    uint16_t atoms;
    uint8_t lead; /* ATOMS of a cycle-accurate ETMv3: cycles before the first outcome, */
    bool each;    /* and one before each other */
    /* BRANCH, ISYNC, WAYPOINT: an address, in the state that it is executed in */
    uint32_t address; /* DATA: of memory, if `has_address` */
    uint8_t isa;      /* enum tl_etm3_isa */
    bool ns, hyp;
    uint8_t data;     /* DATA: enum tl_etm3_data */
    uint8_t tag;      /* PENDING, LATE: 1 to 3 */
    bool first;       /* DATA: of its instruction */
    bool has_address; /* DATA */
    bool has_value; /* DATA: `value_size` bytes were sent, which may be fewer than the access has */
    uint8_t value_size;
    uint32_t value;
    bool has_exception; /* BRANCH: it is an exception's */
    bool cancelled;     /* the instruction traced last was not completed */
    uint16_t exception; /* as traced */
    uint8_t reason;     /* ISYNC: enum tl_etm3_reason */
    bool has_load;      /* ISYNC: the load or store at `load` was executed, then `address` */
    uint32_t load;
    bool has_context; /* ISYNC, CONTEXT */
    uint32_t context; /* CONTEXT, ISYNC: the context ID; VMID: the VMID */
    bool has_cycles;  /* a count, which `cycles` is */
    uint32_t cycles;  /* CYCLES, too */
    bool has_time;    /* TIMESTAMP: `time` is known; it is not if only its low bits were sent */
    uint64_t time;    /* binary */
    uint64_t offset;  /* of the first byte in the trace */
};

/* What later packets are compressed against. Zero: nothing is known. */
struct tl_etm3_known {
    uint32_t address;
    uint32_t data; /* address of the last data access */
    bool vague;    /* packets of data may be missing: `data` holds only with a whole address */
    uint8_t isa;
    bool ns, hyp;
    bool has_time; /* all bits of `time` are known */
    uint64_t time; /* as sent: maybe Gray-coded */
};

/*
 * Read the packet that begins at `p`, of which `n` bytes are there; its header is not zero
 * (A-sync). `known` changes with a complete packet. Returns its size in bytes, or TL_AGAIN if more
 * bytes are needed (never with `n` >= TL_ETM3_PACKET_MAX). Pure functions, thread-safe. `offset` of
 * `out` is the caller's.
 */
int tl_etm3_parse(const struct tl_etm3_config *config, struct tl_etm3_known *known,
                  const uint8_t *p, size_t n, struct tl_etm3_packet *out);

/* The parts: of each format, its own packets; and what both have (implemented in parse.c). */
struct tl_etm3_reader {
    const struct tl_etm3_config *config;
    const uint8_t *p;
    size_t n, at;
    bool ends; /* a byte was read behind the last */
    struct tl_etm3_known known;
    struct tl_etm3_packet *out;
};

void tl_etm3_read_etm(struct tl_etm3_reader *r, uint8_t header);
void tl_etm3_read_ptm(struct tl_etm3_reader *r, uint8_t header);

/* The next byte; 0 behind the last. */
static inline uint8_t tl_etm3_next(struct tl_etm3_reader *r)
{
    if (r->at < r->n)
        return r->p[r->at++];
    r->ends = true;
    return 0;
}

/* `bytes` bytes, little-endian. */
uint32_t tl_etm3_read_word(struct tl_etm3_reader *r, unsigned bytes);
/* Groups of seven bits, bit 7 = more, 32 bits at most. */
uint32_t tl_etm3_read_groups(struct tl_etm3_reader *r);
/* A packet that both formats have: trigger, VMID, timestamp (without a count of cycles), ignore,
 * context ID, exception exit. False: `header` is of none of them. */
bool tl_etm3_read_common(struct tl_etm3_reader *r, uint8_t header);
/* The context ID: as many bytes as are traced. */
void tl_etm3_read_context(struct tl_etm3_reader *r);
/* The exception bytes behind the address of a branch. */
void tl_etm3_read_exception(struct tl_etm3_reader *r);
/* The information byte of an I-sync. */
void tl_etm3_read_info(struct tl_etm3_reader *r, uint8_t info);
/* Set instruction set and address of an I-sync from the address that was sent. */
void tl_etm3_take_sync_address(struct tl_etm3_reader *r, uint32_t address, bool jazelle,
                               bool alternative);

/* How the bytes of a branch address end. */
enum tl_etm3_branch_end {
    TL_ETM3_ADDRESS_ONLY,
    TL_ETM3_MORE_BYTES,   /* exception bytes follow */
    TL_ETM3_OLD_EXCEPTION /* the fifth byte of the original encoding, bit 7 set: it has an exception
                           */
};

/*
 * Address bytes of a branch, from `first` on. `alternative`: bit 6 of the last of two to four bytes
 * tells of exception bytes. Sets address and instruction set of the packet; `*fifth`: the fifth
 * byte, or 0.
 */
enum tl_etm3_branch_end tl_etm3_read_address(struct tl_etm3_reader *r, uint8_t first,
                                             bool alternative, uint8_t *fifth);

#endif
