/* SPDX-License-Identifier: MIT */
/*
 * What flow items mean in STF terms, one place for both directions. Private to the library.
 */
#ifndef TL_STF_FLOW_MAP_H
#define TL_STF_FLOW_MAP_H

#include "flow/item.h"
#include "stf/record.h"

/* ISA and INST_IEM records of an instruction set. */
uint16_t tl_stf_map_isa(enum tl_isa isa);
uint16_t tl_stf_map_iem(enum tl_isa isa);
/* The instruction set that these two records stand for where no mode says more. */
enum tl_isa tl_stf_unmap_isa(uint16_t isa, uint16_t iem);

/* MODE_CHANGE has the level in field 0, and our whole mode word in field 1. */
#define TL_STF_MODE_FIELDS 2
/* In field 1: only the instruction set is told anew; no mode item was there. */
#define TL_STF_MODE_ISA_ONLY (UINT64_C(1) << 63)
/* … : told again at a shard's begin. */
#define TL_STF_MODE_STATE (UINT64_C(1) << 62)
/* … : in force from the group's instruction on, not only behind it. */
#define TL_STF_MODE_BEFORE (UINT64_C(1) << 61)
#define TL_STF_MODE_FLAGS  (TL_STF_MODE_ISA_ONLY | TL_STF_MODE_STATE | TL_STF_MODE_BEFORE)
unsigned tl_stf_map_level(uint64_t mode);
/* A mode word for a trace that has only levels. */
uint64_t tl_stf_unmap_level(unsigned level, enum tl_isa isa);

/*
 * Exceptions: EVENT number in the 64-bit form, the nearest of STF's list. Fields: 0 preferred
 * return address; 1 the source's number, with the flags; 2… its name, 8 bytes in each.
 */
#define TL_STF_X_FIELDS  2
#define TL_STF_X_NO_PC   (UINT64_C(1) << 32)
#define TL_STF_X_BEFORE  (UINT64_C(1) << 33) /* happened before the group's instruction */
#define TL_STF_X_NOWHERE (UINT64_C(1) << 34) /* where it led is not known, whatever the target */
#define TL_STF_X_NAME    64                  /* bytes of a name that are kept */
uint64_t tl_stf_map_exception(enum tl_arch arch, unsigned level, unsigned number);

enum tl_arch tl_stf_arch(enum tl_isa isa);

/* Context ids: 64 bits in TGID and TID, the VMID in ASID; all ones: absent. */
#define TL_STF_ABSENT UINT32_MAX

/* TRACE_INFO's text of what we write begins like this; only then the fields above are read. */
#define TL_STF_GENERATOR_NAME "tracelake"

#endif
