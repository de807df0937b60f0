/* SPDX-License-Identifier: MIT */
/*
 * STF records: one struct for all record types, with encoding and decoding. Pure functions,
 * thread-safe.
 *
 * A record is a descriptor byte and its payload: little-endian, packed, without a length field. Two
 * header fields change the layout of later records (struct tl_stf_layout): the EVENT64 feature bit
 * and the vector length.
 *
 * Source: STF specification 1.3 ("Specification of Records"); types 10 to 13, 250, 251 and the
 * 64-bit events are from versions 1.4 to 1.6. docs/stf.md describes how they are read and written
 * here.
 */
#ifndef TL_STF_RECORD_H
#define TL_STF_RECORD_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

TL_C_BEGIN

enum tl_stf_type {
    TL_STF_RESERVED = 0,
    TL_STF_IDENTIFIER = 1,
    TL_STF_VERSION = 2,
    TL_STF_COMMENT = 3,
    TL_STF_ISA = 4,
    TL_STF_INST_IEM = 5,
    TL_STF_TRACE_INFO = 6,
    TL_STF_TRACE_INFO_FEATURE = 7,
    TL_STF_PROCESS_ID_EXT = 8,
    TL_STF_FORCE_PC = 9,
    TL_STF_VLEN_CONFIG = 10,  /* 1.4 */
    TL_STF_PROTOCOL_ID = 11,  /* 1.5, transaction traces */
    TL_STF_CLOCK_ID = 12,     /* 1.5, transaction traces */
    TL_STF_ISA_EXTENDED = 13, /* 1.6 */
    TL_STF_END_HEADER = 19,
    TL_STF_INST_PC_TARGET = 31,
    TL_STF_INST_REG = 40,
    TL_STF_INST_READY_REG = 41,
    TL_STF_PAGE_TABLE_WALK = 50,
    TL_STF_INST_MEM_ACCESS = 60,
    TL_STF_INST_MEM_CONTENT = 61,
    TL_STF_BUS_MASTER_ACCESS = 62,
    TL_STF_BUS_MASTER_CONTENT = 63,
    TL_STF_EVENT = 100,
    TL_STF_EVENT_PC_TARGET = 101,
    TL_STF_INST_MICROOP = 230,
    TL_STF_INST_32 = 240,
    TL_STF_INST_16 = 241,
    TL_STF_TRANSACTION = 250,            /* 1.5 */
    TL_STF_TRANSACTION_DEPENDENCY = 251, /* 1.5 */
    TL_STF_RESERVE_END = 255             /* 1.3 only */
};

/* Sizes in bytes of complete records that are read and written in place. TARGET: INST_PC_TARGET and
 * other records with one address; CLOSING: INST_32; CLOSING_16: INST_16. */
enum {
    TL_STF_TARGET_BYTES = 9,
    TL_STF_CLOSING_BYTES = 5,
    TL_STF_CLOSING_16_BYTES = 3,
    TL_STF_MICROOP_BYTES = 6,
    TL_STF_ACCESS_BYTES = 14,  /* INST_MEM_ACCESS */
    TL_STF_CONTENT_BYTES = 9,  /* INST_MEM_CONTENT */
    TL_STF_SCALAR_BYTES = 12,  /* INST_REG except vectors */
    TL_STF_PROCESS_BYTES = 13, /* PROCESS_ID_EXT */
    TL_STF_COMMENT_HEAD = 5    /* COMMENT up to its text */
};

/* ISA record. */
enum {
    TL_STF_ISA_OTHER = 0, /* "reserved": written for ISAs without a number (OpenRISC) */
    TL_STF_ISA_RISCV = 1,
    TL_STF_ISA_ARM = 2,
    TL_STF_ISA_X86 = 3,
    TL_STF_ISA_POWER = 4
};
/* INST_IEM record; 1 and 2 are also written for the 32- and 64-bit states of other ISAs. */
enum { TL_STF_IEM_32 = 1, TL_STF_IEM_64 = 2 };

/* Bits of TRACE_INFO_FEATURE. Only EVENT64 affects parsing. */
#define TL_STF_FEATURE_PHYSICAL_ADDRESS (UINT64_C(1) << 0)
#define TL_STF_FEATURE_OPERAND_VALUE    (UINT64_C(1) << 2)
#define TL_STF_FEATURE_EVENT            (UINT64_C(1) << 3)
#define TL_STF_FEATURE_RV64             (UINT64_C(1) << 5)
#define TL_STF_FEATURE_PTE              (UINT64_C(1) << 8)
#define TL_STF_FEATURE_PROCESS_ID       (UINT64_C(1) << 10)
#define TL_STF_FEATURE_REG_STATE        (UINT64_C(1) << 13)
#define TL_STF_FEATURE_MICROOP          (UINT64_C(1) << 14)
#define TL_STF_FEATURE_VEC              (UINT64_C(1) << 18)
#define TL_STF_FEATURE_EVENT64          (UINT64_C(1) << 19)
#define TL_STF_FEATURE_TRANSACTIONS     (UINT64_C(1) << 20)

/* Event numbers are represented in 64-bit form, regardless of the file. */
#define TL_STF_EVENT_INTERRUPT   (UINT64_C(1) << 63)
#define TL_STF_EVENT_MODE_CHANGE (UINT64_C(1) << 62)

/* Register types and operands of INST_REG's meta byte (type | operand << 4). */
enum { TL_STF_REG_INT = 1, TL_STF_REG_FP = 2, TL_STF_REG_VECTOR = 3, TL_STF_REG_CSR = 4 };
enum { TL_STF_OPERAND_STATE = 1, TL_STF_OPERAND_SOURCE = 2, TL_STF_OPERAND_DEST = 3 };

enum { TL_STF_READ = 1, TL_STF_WRITE = 2 };

/* Maximum record size accepted; larger gives TL_LIMIT. */
#define TL_STF_RECORD_MAX (UINT32_C(16) << 20)
/* Minimum plausible VLEN_CONFIG; smaller gives TL_BAD. */
#define TL_STF_VLEN_MIN 64

/* Parameters of the record layout. All zero is correct for the first record. */
struct tl_stf_layout {
    bool event64;  /* EVENT numbers have 64 bits */
    uint32_t vlen; /* bits in a vector register; 0: not set, one 64-bit word as in 1.3 */
    /* Of transactions; 0 (not set) and 1 are TileLink, others cannot be decoded */
    uint8_t protocol;
};

struct tl_stf_record {
    uint8_t type;    /* enum tl_stf_type */
    uint32_t size;   /* bytes, including the descriptor (set by decoding) */
    uint64_t offset; /* of the descriptor in the plain stream (set by readers) */
    union {
        uint8_t magic[3]; /* IDENTIFIER */
        struct {
            uint32_t major, minor;
        } version;
        struct tl_bytes text; /* COMMENT, ISA_EXTENDED. Borrowed */
        uint16_t isa;
        uint16_t iem;
        struct {
            uint8_t generator, major, minor, patch;
            struct tl_bytes text; /* at most 65535 bytes. Borrowed */
        } info;                   /* TRACE_INFO */
        uint64_t features;
        struct {
            uint32_t tgid, tid, asid; /* 1.6 calls them hardware thread, process, thread */
        } process;
        uint64_t pc;     /* FORCE_PC */
        uint64_t target; /* INST_PC_TARGET, EVENT_PC_TARGET */
        uint32_t vlen;   /* bits */
        uint8_t protocol;
        struct {
            uint8_t id;
            struct tl_bytes name; /* at most 65535 bytes. Borrowed */
        } clock;
        struct {
            uint16_t number;
            uint8_t meta;
            struct tl_bytes value; /* little-endian words of 8 bytes, one if scalar. Borrowed */
        } reg;
        uint16_t ready_reg;
        struct {
            uint64_t va;
            uint64_t first_access; /* instruction index, from 1; 0: before the first instruction */
            uint32_t page_size;    /* bytes */
            struct tl_bytes entries; /* pairs of words: address and PTE, at most 255. Borrowed */
        } walk;
        struct {
            uint64_t address;
            uint16_t size; /* as written: bytes according to the specification, bits from some
                              producers */
            uint16_t attr;
            uint8_t type; /* TL_STF_READ, TL_STF_WRITE */
        } access;         /* INST_MEM_ACCESS */
        uint64_t data;    /* INST_MEM_CONTENT, BUS_MASTER_CONTENT */
        struct {
            uint64_t address;
            uint16_t size;
            uint8_t master;
            uint8_t index;
            uint32_t attr;
            uint8_t type;
        } bus; /* BUS_MASTER_ACCESS */
        struct {
            uint64_t number;        /* 64-bit form */
            struct tl_bytes fields; /* little-endian words, at most 255. Borrowed */
        } event;
        struct {
            uint8_t size;
            uint32_t op;
        } microop;
        uint32_t opcode; /* INST_32, INST_16 */
        struct {
            uint64_t id;
            uint64_t delta; /* cycles of its clock since the previous transaction */
            uint8_t clock;
            uint16_t n_metadata;
            struct tl_bytes metadata; /* n_metadata times { log2 of size, value }. Borrowed */
            struct tl_bytes data;     /* protocol data, channel byte first. Borrowed */
        } transaction;                /* DEPENDENCY: id, delta, clock only */
    };
};

/* The i-th little-endian 64-bit word of a record's array. */
static inline uint64_t tl_stf_word(struct tl_bytes array, size_t i)
{
    return tl_le64(array.p + 8 * i);
}

/* Does this record type end a group (an instruction or transaction)? */
static inline bool tl_stf_is_marker(uint8_t type)
{
    return type == TL_STF_INST_32 || type == TL_STF_INST_16 || type == TL_STF_TRANSACTION;
}

/* Is this a defined record type? */
bool tl_stf_type_known(uint8_t type);
/*
 * Name as in the specification without STF_, e.g. "INST_PC_TARGET"; "?" if unknown. Static storage.
 */
const char *tl_stf_type_name(uint8_t type);
/* "INT_MACHINE_TIMER", "MODE_CHANGE"; NULL if unknown. `number` in 64-bit form. */
const char *tl_stf_event_name(uint64_t number);

/*
 * Size in bytes of the record at the start of `in`, including the descriptor. Returns TL_AGAIN:
 * `in` is too short to tell; TL_BAD: unknown descriptor, or invalid length field; TL_LIMIT: larger
 * than TL_STF_RECORD_MAX. The record itself may be longer than `in`.
 */
int tl_stf_record_size(const struct tl_stf_layout *layout, struct tl_bytes in);

/*
 * Decode the record at the start of `in`. Returns its size in bytes, or TL_AGAIN if it is
 * truncated, TL_BAD or TL_LIMIT as tl_stf_record_size(). Arrays and texts in `out` point into `in`.
 * out->offset is not changed.
 */
int tl_stf_record_decode(const struct tl_stf_layout *layout, struct tl_bytes in,
                         struct tl_stf_record *out);

/* Update the layout for a header record (FEATURE, VLEN_CONFIG). */
void tl_stf_layout_apply(struct tl_stf_layout *layout, const struct tl_stf_record *record);

/*
 * Append a record's bytes. Returns TL_USAGE: its fields cannot be encoded in this layout (an array
 * too long or of the wrong size, an event number that does not fit); TL_NOMEM.
 */
TL_MUST_USE int tl_stf_record_encode(const struct tl_stf_layout *layout,
                                     const struct tl_stf_record *record, struct tl_buf *out);

/*
 * Append the record's listing without its number and line end: "offset size TYPE field=value …".
 * Hexadecimal fields have 0x, text is quoted with bytes outside ASCII as \xHH. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_stf_record_text(const struct tl_stf_record *record, struct tl_buf *out);

/* The same without offset and size. Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_record_fields(const struct tl_stf_record *record, struct tl_buf *out);

/*
 * Append a complete listing line: record number (from 0) first; INST_32 and INST_16 are followed by
 * their address and instruction number (from 1).
 */
TL_MUST_USE int tl_stf_listing_line(uint64_t index, const struct tl_stf_record *record, uint64_t pc,
                                    uint64_t insn, struct tl_buf *out);

#define TL_STF_REG_NAME 32 /* bytes */

/*
 * Write the name of a register as stf_lib prints it, e.g. "REG_5", "REG_F0", "REG_V31", "PC",
 * "REG_CSR_MSTATUS", "REG_CSR_UNK_7e", to `out`; "" for a reserved type. Returns `out`.
 */
char *tl_stf_reg_name(uint16_t number, uint8_t meta, char out[TL_AT_LEAST(TL_STF_REG_NAME)]);

TL_C_END

#endif
