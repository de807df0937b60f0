/* SPDX-License-Identifier: MIT */
/*
 * STF written record by record, with the rules checked that a reader (ours or stf_lib) relies
 * on: header complete and unique, group order, an end on a marker. No I/O.
 *
 * tl_stf_writer makes the plain stream; tl_stf_out is it plus the container: give records, take
 * the bytes of a .stf or .zstf file. Neither is thread-safe.
 *
 * Group order, as stf_lib's writer asserts it: the descriptor is not less than that of the record
 * before, except that COMMENT, PROCESS_ID_EXT and FORCE_PC may stand anywhere but between an access
 * and its content, and descriptors begin anew behind them; INST_MEM_CONTENT directly follows
 * INST_MEM_ACCESS or another INST_MEM_CONTENT, and each access has a content (BUS_MASTER_
 * likewise); accesses repeat; INST_REG may directly follow a content or PAGE_TABLE_WALK;
 * INST_PC_TARGET INST_REG or PAGE_TABLE_WALK; EVENT an EVENT_PC_TARGET that follows its EVENT.
 */
#ifndef TL_STF_WRITER_H
#define TL_STF_WRITER_H

#include "stf/reader.h"
#include "stf/record_hot.h"
#include "stf/zstf.h"

TL_C_BEGIN

/* ---- headers ----------------------------------------------------------------------------- */

#define TL_STF_VERSION_MAJOR 1
#define TL_STF_VERSION_MINOR 3
/* Generator code of our TRACE_INFO ("example": tools print it, unlisted ones make some throw). */
#define TL_STF_GENERATOR 0x40

/* What to write; a zeroed one plus isa, iem and pc gives a header that every reader takes. */
struct tl_stf_header_spec {
    const char *const *comments; /* NUL-terminated texts; may be NULL */
    size_t n_comments;
    uint16_t isa;
    uint16_t iem;
    const char *generator; /* TRACE_INFO's text, NULL: "libtracelake-stf" and its version */
    uint64_t features;     /* EVENT64 selects 64-bit events */
    uint64_t pc;
    uint32_t tgid, tid, asid;
    uint32_t vlen;            /* 0: no VLEN_CONFIG (which 1.3 does not have) */
    const char *isa_extended; /* NULL: no ISA_EXTENDED (which 1.3 does not have) */
    uint32_t version_minor;   /* 0: 3, or what vlen, isa_extended and features ask for */
};

/*
 * Append a whole header in the order of stf_lib: IDENTIFIER, VERSION, COMMENT…, ISA, INST_IEM,
 * TRACE_INFO, TRACE_INFO_FEATURE, PROCESS_ID_EXT, FORCE_PC, VLEN_CONFIG?, ISA_EXTENDED?,
 * END_HEADER. Without any comment it writes the generator's text as one, since 1.3 wants one.
 * `layout` (may be NULL) gets what it means for later records. TL_NOMEM, TL_USAGE.
 */
TL_MUST_USE int tl_stf_header_write(const struct tl_stf_header_spec *spec, struct tl_buf *out,
                                    struct tl_stf_layout *layout);

/* ---- records ------------------------------------------------------------------------------ */

/* Checks the order of records; used by the writer and by `tracelake check`. Zeroed is ready. */
struct tl_stf_order {
    struct tl_stf_header header;
    uint8_t prev; /* the record before this one, 0 at a group's begin */
    bool event;   /* the group has an EVENT that an EVENT_PC_TARGET may follow */
    bool aimed;   /* an EVENT_PC_TARGET was the last of the two, directly behind its EVENT */
};
/* The one rule whose breach stops stf_lib's writer, but no reader. */
#define TL_STF_DISORDER "the records of a group are not in the order of their descriptors"
/* TL_OK, or TL_BAD with the rule that `record` breaks in `*rule` (static storage). */
int tl_stf_order_add(struct tl_stf_order *order, const struct tl_stf_record *record,
                     const char **rule);

struct tl_stf_writer {
    struct tl_buf out; /* encoded and not yet taken; the caller may drop it */
    struct tl_stf_order order;
    struct tl_stf_layout layout;
    struct tl_stf_pc pc;
    uint64_t markers;
    bool unchecked; /* write whatever comes, as a copying tool must */
    /* Bytes free in `out` with which records may go in line; 0: none may yet. Private. */
    size_t hot_room;
};

/* Zeroed is ready. */
void tl_stf_writer_fini(struct tl_stf_writer *writer);

/*
 * Append a record to writer->out. TL_USAGE with the rule in `fail` if it must not stand here
 * (nothing is written then), or does not fit its layout. TL_NOMEM.
 */
TL_MUST_USE int tl_stf_writer_put(struct tl_stf_writer *writer, const struct tl_stf_record *record,
                                  struct tl_fail *fail);

/* ---- files --------------------------------------------------------------------------------- */

enum tl_stf_format { TL_STF_FILE_PLAIN, TL_STF_FILE_ZSTF };

struct tl_stf_out_options {
    uint8_t format;   /* enum tl_stf_format */
    uint64_t markers; /* per chunk, 0: default */
    int level;        /* zstd level, 0: default */
    bool reserve_end; /* end a plain file with descriptor 255, as 1.3 wants and stf_lib cannot read
                       */
    bool unchecked;   /* as tl_stf_writer.unchecked */
};

/* Where the bytes of the file go. */
struct tl_stf_sink {
    void *context;
    int (*write)(void *context, const uint8_t *p, size_t n);
    /* Overwrite from the file's first byte on, at the very end. Not called for plain files. */
    int (*rewrite)(void *context, const uint8_t *p, size_t n);
};

struct tl_stf_out;
TL_MUST_USE int tl_stf_out_new(struct tl_stf_out **out, const struct tl_stf_out_options *options,
                               const struct tl_stf_sink *sink);
void tl_stf_out_free(struct tl_stf_out *out);
TL_MUST_USE static inline int
tl_stf_out_put(struct tl_stf_out *out, const struct tl_stf_record *record, struct tl_fail *fail);
/*
 * End the file. A .zstf wants at least a header; records behind the last marker go into its last
 * chunk. The sink's errors, TL_USAGE, TL_NOMEM.
 */
TL_MUST_USE int tl_stf_out_finish(struct tl_stf_out *out, struct tl_fail *fail);

/* The enum tl_stf_format that a file's name asks for: .zstf, or plain. */
uint8_t tl_stf_format_of(const char *path);

/* Into a file; options NULL: by its name. "-" is standard output (for .zstf a file only). */
struct tl_stf_save;
TL_MUST_USE int tl_stf_save_new(struct tl_stf_save **out, const char *path,
                                const struct tl_stf_out_options *options, struct tl_fail *fail);
/* The writer's bytes. NULL options choose by the name. */
struct tl_stf_out *tl_stf_save_out(struct tl_stf_save *save);
/* End and close; the file is there under its name only if this returns TL_OK. */
TL_MUST_USE int tl_stf_save_finish(struct tl_stf_save *save, struct tl_fail *fail);
/* Free; without a finish before, nothing is left of the file. */
void tl_stf_save_free(struct tl_stf_save *save);

/* ---- in line --------------------------------------------------------------------------------- */

/*
 * The records that a trace mostly consists of are checked and written in line, where they are
 * surely in order: descriptors that do not decrease, INST_MEM_CONTENT behind INST_MEM_ACCESS. All
 * else is left to the functions called _any. All this is private to the library.
 */

/* Any record, anywhere; as tl_stf_writer_put(). */
TL_MUST_USE int tl_stf_writer_put_any(struct tl_stf_writer *writer,
                                      const struct tl_stf_record *record, struct tl_fail *fail);

/*
 * False if it is not such a record, or not such a place; nothing is written then. Always inlined:
 * a call for each record would cost as much as the writing.
 */
static inline __attribute__((always_inline)) bool
tl_stf_writer_put_hot(struct tl_stf_writer *writer, const struct tl_stf_record *record)
{
    struct tl_buf *const out = &writer->out;
    const uint8_t type = record->type, prev = writer->order.prev;
    /* An access, of the core (60) or of a bus master (62), wants its content. */
    const bool pair = ((prev | 2) == TL_STF_BUS_MASTER_ACCESS) == (type == TL_STF_INST_MEM_CONTENT);
    if (out->cap - out->n <= writer->hot_room - 1 || !(pair & (type >= prev)))
        return false;
    const int size = tl_stf_encode_hot(record, out->p + out->n);
    if (size <= 0)
        return false;
    out->n += (size_t)size;
    struct tl_stf_pc *const pc = &writer->pc;
    if (type >= TL_STF_INST_32) {
        pc->next = pc->has_target ? pc->target : pc->next + (uint32_t)size - 1;
        pc->has_target = false;
        writer->markers++;
        writer->order.prev = 0;
        writer->order.event = false;
        return true;
    }
    if (type == TL_STF_INST_PC_TARGET) {
        pc->target = record->target;
        pc->has_target = true;
    }
    writer->order.prev = type;
    return true;
}

/* What a struct tl_stf_out begins with. */
struct tl_stf_out_front {
    struct tl_stf_writer writer;
    uint64_t chunk_end; /* markers at which the chunk is full */
};
int tl_stf_out_put_any(struct tl_stf_out *out, const struct tl_stf_record *record,
                       struct tl_fail *fail);
int tl_stf_out_end_chunk(struct tl_stf_out *out, struct tl_fail *fail);

static inline __attribute__((always_inline)) int
tl_stf_out_put(struct tl_stf_out *out, const struct tl_stf_record *record, struct tl_fail *fail)
{
    struct tl_stf_out_front *const front = (struct tl_stf_out_front *)(void *)out;
    if (!tl_stf_writer_put_hot(&front->writer, record)) {
        const struct tl_stf_record any = *record; /* the caller's can stay in registers */
        return tl_stf_out_put_any(out, &any, fail);
    }
    if (record->type < TL_STF_INST_32 || front->writer.markers != front->chunk_end)
        return TL_OK;
    return tl_stf_out_end_chunk(out, fail);
}

TL_C_END

#endif
