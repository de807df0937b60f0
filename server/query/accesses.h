/* SPDX-License-Identifier: MIT */
/*
 * Accesses to memory, wherever a stream tells them: notes of an ETMv3's data trace, events of a
 * DWT, records of pushed STF. All three become one struct. Pure functions.
 */
#ifndef TL_QUERY_ACCESSES_H
#define TL_QUERY_ACCESSES_H

#include "image/variables.h"
#include "shard/walk.h"
#include "stf/operands.h"

enum tl_told_kind {
    TL_TOLD_ACCESS, /* reading or writing is not told */
    TL_TOLD_READ,
    TL_TOLD_WRITE,
    TL_TOLD_LATE,      /* a value that comes long after its access: its instruction is unknown */
    TL_TOLD_NOT_TRACED /* the trace unit was told not to trace it */
};

#define TL_TOLD_NAME 160

struct tl_told_access {
    enum tl_told_kind kind;
    uint64_t address; /* if `has_address` */
    uint64_t bytes;   /* 0: unknown */
    uint64_t value;   /* if `has_value` */
    uint64_t pc;      /* of the instruction, if `has_pc` */
    bool has_address, has_value, has_pc;
    bool bus;                /* by another bus master than the core */
    char part[16];           /* of an address that is not completely known; "": nothing of it */
    char name[TL_TOLD_NAME]; /* of what was accessed, and its typed value, if the source knows it */
};

/* Read a note of data trace (docs/flow-text.md), and the one behind it, "" or its contents. False:
 * it is no such note. Its instruction, except of a LATE one, is tl_told_last(). */
bool tl_told_note(const char *note, const char *next, struct tl_told_access *out);
/* Read an event of a DWT. False: it is of another kind. */
bool tl_told_event(const struct tl_item *item, struct tl_told_access *out);
/* Read a record of the instruction at `pc`. */
struct tl_told_access tl_told_record(const struct tl_stf_access *record, uint64_t pc);

/* The instruction of a note, or of any other item of a walk, is the last one in front of it: 1;
 * TL_OK: it is in front of the walk; TL_NOTFOUND: a gap is in between; TL_BAD: the shard is
 * damaged. */
TL_MUST_USE int tl_told_last(const struct tl_walk *walk, size_t i, uint64_t *pc);

/* Write what was accessed, "buf[3].mode", and its value by its type, if that is known, "RUN (enum
 * mode)", as in a line of flow text: "buf[3].mode = RUN (enum mode)". False: nothing is known. */
bool tl_told_name(const struct tl_told_access *access, const struct tl_image *image,
                  char out[static TL_TOLD_NAME]);

#endif
