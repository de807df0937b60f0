/* SPDX-License-Identifier: MIT */
/* Mapping between flow items and STF, for both directions. Private to the library. */
#ifndef TL_STF_FLOW_MAP_H
#define TL_STF_FLOW_MAP_H

#include "flow/item.h"
#include "stf/record.h"

/* Values of the ISA and INST_IEM records for an instruction set. */
uint16_t tl_stf_map_isa(enum tl_isa isa);
uint16_t tl_stf_map_iem(enum tl_isa isa);
/* Instruction set for these two records, if no mode is more specific. */
enum tl_isa tl_stf_unmap_isa(uint16_t isa, uint16_t iem);
/* Instruction set that readers assume after an INST_IEM: `isa`, or its architecture's of the other
 * width. */
enum tl_isa tl_stf_isa_by_iem(enum tl_isa isa, uint16_t iem);

/* MODE_CHANGE has the level in field 0 and, as our extension, the complete mode word in field 1. */
#define TL_STF_MODE_FIELDS 2
/* Flag in field 1: only a change of instruction set; there was no mode item. */
#define TL_STF_MODE_ISA_ONLY (UINT64_C(1) << 63)
/* Flag in field 1: repeated at the beginning of a shard. */
#define TL_STF_MODE_STATE (UINT64_C(1) << 62)
/* Flag in field 1: in force already for the group's own instruction, not only after it. */
#define TL_STF_MODE_BEFORE (UINT64_C(1) << 61)
#define TL_STF_MODE_FLAGS  (TL_STF_MODE_ISA_ONLY | TL_STF_MODE_STATE | TL_STF_MODE_BEFORE)
unsigned tl_stf_map_level(uint64_t mode);
/* Mode word for a trace that has only privilege levels. */
uint64_t tl_stf_unmap_level(unsigned level, enum tl_isa isa);

/*
 * Exceptions: EVENT number in the 64-bit form, the closest in STF's list. Fields: 0 preferred
 * return address; 1 the source's number, with these flags; 2… its name, 8 bytes per field.
 */
#define TL_STF_X_FIELDS 2
#define TL_STF_X_NO_PC  (UINT64_C(1) << 32)
/* Occurred before the group's instruction; written up to version 6 of the decoders */
#define TL_STF_X_BEFORE (UINT64_C(1) << 33)
/* The handler's address is unknown, regardless of the target */
#define TL_STF_X_NOWHERE (UINT64_C(1) << 34)
#define TL_STF_X_NAME    64 /* maximum bytes of a name */
uint64_t tl_stf_map_exception(enum tl_arch arch, unsigned level, unsigned number);

enum tl_arch tl_stf_arch(enum tl_isa isa);

/*
 * Addresses without a closing record: what the FORCE_PC records of a group mean, until a COMMENT "J
 * n" says otherwise. The last one before an instruction is where that is. Each group begins with
 * TL_STF_POINTS_ALONE.
 */
enum tl_stf_points {
    TL_STF_POINTS_ALONE,   /* an instruction with unknown encoding each */
    TL_STF_POINTS_TARGETS, /* a branch from an unknown address each */
    TL_STF_POINTS_PAIRS,   /* a branch from the first to the second of two */
    TL_STF_POINTS_UNSAID   /* at the beginning of a shard */
};

/* COMMENT in the group of an instruction that changed the flow, but is no branch. */
#define TL_STF_LEAVES 'L'

/* Context ids: 64 bits in TGID and TID, the VMID in ASID; all ones: absent. */
#define TL_STF_ABSENT UINT32_MAX

/* Prefix of TRACE_INFO's text in our own traces; the extension fields above are read only if it is
 * present. */
#define TL_STF_GENERATOR_NAME "tracelake"

#endif
