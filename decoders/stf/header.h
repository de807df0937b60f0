/* SPDX-License-Identifier: MIT */
/*
 * The header of an STF stream: contents of its records, and faults. Not thread-safe; no allocation.
 *
 * Faults do not stop a reader: most traces with a faulty header can still be read. Strict callers
 * check `faults`.
 */
#ifndef TL_STF_HEADER_H
#define TL_STF_HEADER_H

#include "stf/record.h"

TL_C_BEGIN

/* Faults of a header, a bit set. Those marked [R] stop current stf_lib readers. */
enum tl_stf_header_fault {
    TL_STF_NO_VERSION = 1 << 0,    /* [R] the second record is not VERSION */
    TL_STF_NO_ISA = 1 << 1,        /* [R] */
    TL_STF_NO_IEM = 1 << 2,        /* [R] */
    TL_STF_NO_FORCE_PC = 1 << 3,   /* [R] */
    TL_STF_NO_FEATURE = 1 << 4,    /* [R] */
    TL_STF_NO_TRACE_INFO = 1 << 5, /* [R] */
    TL_STF_NO_COMMENT = 1 << 6,    /* mandatory in 1.3 only */
    TL_STF_NO_PROCESS_ID = 1 << 7, /* mandatory in 1.3 only */
    TL_STF_REPEATED = 1 << 8,      /* [R] a record that must not be repeated occurs again */
    TL_STF_FOREIGN = 1 << 9,       /* [R] a record that is not allowed in a header */
    TL_STF_NO_END = 1 << 10,       /* [R] END_HEADER is missing */
    TL_STF_ORDER = 1 << 11,        /* ISA after INST_IEM */
    TL_STF_MIXED = 1 << 12         /* [R] instruction records in a transaction trace's header */
};
/* The faults that stop stf_lib. */
#define TL_STF_FAULTS_HARD                                                                         \
    (TL_STF_NO_VERSION | TL_STF_NO_ISA | TL_STF_NO_IEM | TL_STF_NO_FORCE_PC | TL_STF_NO_FEATURE |  \
     TL_STF_NO_TRACE_INFO | TL_STF_REPEATED | TL_STF_FOREIGN | TL_STF_NO_END | TL_STF_MIXED)

struct tl_stf_header {
    uint32_t major, minor;
    uint16_t isa;
    uint16_t iem;
    uint64_t features;
    uint64_t pc; /* FORCE_PC */
    uint32_t tgid, tid, asid;
    uint32_t vlen;
    uint8_t generator, gen_major, gen_minor, gen_patch; /* from the last TRACE_INFO */
    uint8_t protocol;
    bool has_version, has_isa, has_iem, has_features, has_pc, has_process, has_vlen, has_comment,
        has_trace_info, has_isa_extended, has_protocol, has_clock;
    bool transactions; /* the FEATURE bit or a PROTOCOL_ID marks it as a transaction trace */
    bool complete;     /* END_HEADER was read, or a record that ends the header without it */
    uint32_t records;  /* records read so far */
    uint32_t size;     /* bytes up to and including END_HEADER */
    /* tl_stf_header_fault bits; the NO_ ones are set when the header is complete. */
    unsigned faults;
    uint64_t fault_offset; /* of the first fault */
};

/* Add a record; a zeroed header is ready to use. Returns TL_BAD if the first record is not
 * IDENTIFIER, else TL_OK. */
TL_MUST_USE int tl_stf_header_add(struct tl_stf_header *header, const struct tl_stf_record *record);

/* Description of one fault bit, e.g. "TRACE_INFO_FEATURE is missing". Static storage. */
const char *tl_stf_header_fault_text(unsigned fault);

/*
 * Fill `fail` for a record that cannot be decoded, at `offset` (TL_NO_OFFSET: unknown), with this
 * descriptor, after the header state `header`. Returns `code`.
 */
int tl_stf_fail_record(struct tl_fail *fail, int code, uint64_t offset,
                       const struct tl_stf_header *header, uint8_t descriptor);
/* Fill `fail` for an end of input with `left` bytes of a record at `offset`. Returns TL_EOF if a
 * trace may end like this, or TL_BAD. */
int tl_stf_fail_end(struct tl_fail *fail, uint64_t offset, const struct tl_stf_header *header,
                    struct tl_bytes left);

TL_C_END

#endif
