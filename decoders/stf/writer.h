/* SPDX-License-Identifier: MIT */
/*
 * Writes STF record by record and checks the rules that readers (ours or stf_lib) rely on: complete
 * and unique header, group order, end on a marker. No I/O.
 *
 * tl_stf_writer produces the plain stream; tl_stf_out adds the container: records in, bytes of a
 * .stf or .zstf file out. Neither is thread-safe.
 *
 * Group order, as asserted by stf_lib's writer: descriptors must not decrease, except that COMMENT,
 * PROCESS_ID_EXT and FORCE_PC may occur anywhere except between an access and its content, and
 * descriptors start again after them; INST_MEM_CONTENT must directly follow INST_MEM_ACCESS or
 * another INST_MEM_CONTENT, and each access must have a content (BUS_MASTER_ likewise); accesses
 * may repeat; INST_REG may directly follow a content or PAGE_TABLE_WALK; INST_PC_TARGET may
 * directly follow INST_REG or PAGE_TABLE_WALK; EVENT may directly follow an EVENT_PC_TARGET that
 * follows its EVENT.
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
/* Generator code of our TRACE_INFO ("example": printed by tools; unlisted codes make some of them
 * throw). */
#define TL_STF_GENERATOR 0x40

/* Header contents; all zero plus isa, iem and pc gives a header that every reader accepts. */
struct tl_stf_header_spec {
    const char *const *comments; /* NUL-terminated texts; may be NULL */
    size_t n_comments;
    uint16_t isa;
    uint16_t iem;
    const char *generator; /* TRACE_INFO's text, NULL: "libtracelake-stf" and its version */
    uint64_t features;     /* EVENT64 selects 64-bit events */
    uint64_t pc;
    uint32_t tgid, tid, asid;
    uint32_t vlen;            /* 0: no VLEN_CONFIG (not in 1.3) */
    const char *isa_extended; /* NULL: no ISA_EXTENDED (not in 1.3) */
    uint32_t version_minor;   /* 0: 3, or the version required by vlen, isa_extended and features */
};

/*
 * Append a complete header in stf_lib's order: IDENTIFIER, VERSION, COMMENT…, ISA, INST_IEM,
 * TRACE_INFO, TRACE_INFO_FEATURE, PROCESS_ID_EXT, FORCE_PC, VLEN_CONFIG?, ISA_EXTENDED?,
 * END_HEADER. Without comments the generator's text is written as one, since 1.3 requires one.
 * `layout` (may be NULL) is set to the layout of later records. Returns TL_NOMEM, TL_USAGE.
 */
TL_MUST_USE int tl_stf_header_write(const struct tl_stf_header_spec *spec, struct tl_buf *out,
                                    struct tl_stf_layout *layout);

/* ---- records ------------------------------------------------------------------------------ */

/*
 * Checks the order of records; used by the writer and by `tracelake check`. All zero: ready to use.
 */
struct tl_stf_order {
    struct tl_stf_header header;
    uint8_t prev; /* type of the previous record, 0 at the beginning of a group */
    bool event;   /* the group has an EVENT that an EVENT_PC_TARGET may follow */
    bool aimed;   /* the last of the two was an EVENT_PC_TARGET, directly after its EVENT */
};
/* The only rule whose violation stops stf_lib's writer but no reader. */
#define TL_STF_DISORDER "the records of a group are not in the order of their descriptors"
/* Returns TL_OK, or TL_BAD with `*rule` set to the rule that `record` violates (static storage). */
int tl_stf_order_add(struct tl_stf_order *order, const struct tl_stf_record *record,
                     const char **rule);

struct tl_stf_writer {
    struct tl_buf out; /* encoded, not taken yet; the caller may empty it */
    struct tl_stf_order order;
    struct tl_stf_layout layout;
    struct tl_stf_pc pc;
    uint64_t markers;
    bool unchecked; /* write any record without checks, as needed by a copying tool */
    /* Free bytes in `out` needed for inline writing; 0: not allowed yet. Private. */
    size_t hot_room;
};

/* Free the memory. A zeroed writer is ready to use. */
void tl_stf_writer_fini(struct tl_stf_writer *writer);

/*
 * Append a record to writer->out. Returns TL_USAGE with the rule in `fail` if it is not allowed
 * here (nothing is written) or does not fit its layout; TL_NOMEM.
 */
TL_MUST_USE int tl_stf_writer_put(struct tl_stf_writer *writer, const struct tl_stf_record *record,
                                  struct tl_fail *fail);

/* ---- files --------------------------------------------------------------------------------- */

enum tl_stf_format { TL_STF_FILE_PLAIN, TL_STF_FILE_ZSTF };

struct tl_stf_out_options {
    uint8_t format;   /* enum tl_stf_format */
    uint64_t markers; /* per chunk, 0: default */
    int level;        /* zstd level, 0: default */
    /* End a plain file with descriptor 255, as 1.3 requires and stf_lib cannot read. */
    bool reserve_end;
    bool unchecked; /* as tl_stf_writer.unchecked */
};

/* Where the file's bytes are written. */
struct tl_stf_sink {
    void *context;
    int (*write)(void *context, const uint8_t *p, size_t n);
    /* Overwrite the file from its first byte on, at the very end. Not called for plain files. */
    int (*rewrite)(void *context, const uint8_t *p, size_t n);
};

struct tl_stf_out;
TL_MUST_USE int tl_stf_out_new(struct tl_stf_out **out, const struct tl_stf_out_options *options,
                               const struct tl_stf_sink *sink);
void tl_stf_out_free(struct tl_stf_out *out);
TL_MUST_USE static inline int
tl_stf_out_put(struct tl_stf_out *out, const struct tl_stf_record *record, struct tl_fail *fail);
/*
 * End the file. A .zstf needs at least a header; records after the last marker go into its last
 * chunk. Returns the sink's errors, TL_USAGE, TL_NOMEM.
 */
TL_MUST_USE int tl_stf_out_finish(struct tl_stf_out *out, struct tl_fail *fail);

/* The enum tl_stf_format for a file name: .zstf, or plain. */
uint8_t tl_stf_format_of(const char *path);

/* Writes to a file; options NULL: chosen by its name. "-" is standard output (not for .zstf). */
struct tl_stf_save;
TL_MUST_USE int tl_stf_save_new(struct tl_stf_save **out, const char *path,
                                const struct tl_stf_out_options *options, struct tl_fail *fail);
/* The writer to put records into. */
struct tl_stf_out *tl_stf_save_out(struct tl_stf_save *save);
/* Finish and close; the file appears under its name only if this returns TL_OK. */
TL_MUST_USE int tl_stf_save_finish(struct tl_stf_save *save, struct tl_fail *fail);
/* Free; without tl_stf_save_finish() the file is removed. */
void tl_stf_save_free(struct tl_stf_save *save);

/*
 * ---- inline -------------------------------------------------------------------------------------
 */

/*
 * The most frequent records are checked and written inline if their order is trivially correct:
 * descriptors that do not decrease, INST_MEM_CONTENT after INST_MEM_ACCESS. Everything else is left
 * to the functions with suffix _any. All of this is private to the library.
 */

/* Put any record; as tl_stf_writer_put(). */
TL_MUST_USE int tl_stf_writer_put_any(struct tl_stf_writer *writer,
                                      const struct tl_stf_record *record, struct tl_fail *fail);

/*
 * Returns false without writing if it is not such a record or not such a position. Always inlined:
 * a call per record would cost as much as the writing.
 */
static inline __attribute__((always_inline)) bool
tl_stf_writer_put_hot(struct tl_stf_writer *writer, const struct tl_stf_record *record)
{
    struct tl_buf *const out = &writer->out;
    const uint8_t type = record->type, prev = writer->order.prev;
    /* An access, by the core (60) or a bus master (62), must be followed by its content. */
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

/* Common initial part of struct tl_stf_out. */
struct tl_stf_out_front {
    struct tl_stf_writer writer;
    uint64_t chunk_end; /* number of markers at which the chunk is full */
};
int tl_stf_out_put_any(struct tl_stf_out *out, const struct tl_stf_record *record,
                       struct tl_fail *fail);
int tl_stf_out_end_chunk(struct tl_stf_out *out, struct tl_fail *fail);

static inline __attribute__((always_inline)) int
tl_stf_out_put(struct tl_stf_out *out, const struct tl_stf_record *record, struct tl_fail *fail)
{
    struct tl_stf_out_front *const front = (struct tl_stf_out_front *)(void *)out;
    if (!tl_stf_writer_put_hot(&front->writer, record)) {
        /* Allows the caller's record to stay in registers */
        const struct tl_stf_record any = *record;
        return tl_stf_out_put_any(out, &any, fail);
    }
    if (record->type < TL_STF_INST_32 || front->writer.markers != front->chunk_end)
        return TL_OK;
    return tl_stf_out_end_chunk(out, fail);
}

TL_C_END

#endif
