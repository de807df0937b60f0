/* SPDX-License-Identifier: MIT */
/*
 * Private to the perf.data container: its AUX areas, each decoded as far as the sideband records
 * are final, and the resulting streams.
 *
 *   container.c     from bytes to areas and records
 *   perf_streams.c  streams and losses
 *   pt_area.c       an area of Intel PT is a stream
 *   pt_order.c      decodes areas of Intel PT concurrently, in order of the records' times
 *   thread.c        a stream per thread, across CPUs
 *   event.c         streams of the other events
 *   cs_area.c       areas of CoreSight contain the streams of all their trace IDs
 *   spe_area.c      an area of Arm SPE is a stream of samples
 *   stand.c         saved state for checkpoints
 */
#ifndef TL_PERF_CONTAINER_H
#define TL_PERF_CONTAINER_H

#include "decode/stream_out.h"
#include "perf/event.h"
#include "perf/info.h"
#include "perf/pt_scout.h"
#include "perf/sideband.h"
#include "perf/snapshot.h"

/* Limit of area bytes that wait for records; beyond it no earlier records are waited for. */
#define TL_PERF_HELD_MAX (UINT64_C(256) << 20)

/*
 * Limit of buffers, of CPUs or threads, up to file offset `offset`: each costs memory even if it
 * has no trace, so that there may be more only after more bytes: one for each page, the smallest
 * buffer of the kernel. The offset counts, not the file's size: a pipe gives the same result.
 */
static inline uint64_t tl_perf_areas_max(uint64_t offset)
{
    return 4096 + offset / 4096;
}

struct tl_perf_decode;

/* A stream, announced before its first item. */
struct tl_perf_stream {
    struct tl_stream_out out; /* must be the first member */
    struct tl_perf_decode *owner;
    struct tl_source source; /* from the file and the setup */
    char name[40];
    /* Thread streams: for a CPU's stream, that of the thread running on it, which receives the same
     * items; NULL: none. */
    struct tl_perf_stream *thread;
    struct tl_perf_stream *from; /* a thread's: the CPU whose items came last; NULL: none */
    /* After the items delivered so far: mode and context. */
    uint64_t mode, context, vmid;
    uint8_t context_flags; /* of the CONTEXT item; 0: none yet */
    int32_t reported_tid;  /* CoreSight: last thread reported; -1: none */
    bool has_mode;
    bool runs;           /* the last instruction is not followed by a gap */
    bool here;           /* code has run since the thread was last switched out */
    int32_t entered;     /* CPU streams: the thread that began to run last; 0: none, or idle */
    int32_t entered_pid; /* … its process; -1: reported */
};

/* Bytes of one AUXTRACE record. */
struct tl_perf_piece {
    uint64_t position; /* of its first byte, in the area's input order */
    uint64_t n;        /* bytes received so far */
    uint64_t at;       /* file offset */
    uint64_t offset;   /* in the ring buffer's running count */
    uint64_t size;     /* according to the record; leading bytes of a snapshot may be skipped */
    bool whole;
    bool begun;  /* the scout has started on it */
    bool copied; /* its bytes are not contiguous in the file */
};

/* A discontinuity of the trace, at `position`. */
struct tl_perf_break {
    uint64_t position;
    uint8_t gap;  /* enum tl_gap */
    bool is_anew; /* the decoder is restarted too */
};

/* Contents of an AUX record: what the kernel put into an area. */
struct tl_perf_filled {
    int64_t cpu, tid; /* from its trailer; -1: unknown */
    uint64_t offset, size, flags;
    uint64_t time;
    uint64_t record; /* file offset of the record */
    bool done;
};

/* Contents of one ring buffer. */
struct tl_perf_area_state {
    struct tl_perf_decode *owner;
    uint32_t idx;
    int32_t cpu, tid; /* -1: per thread, per CPU */
    struct tl_buf bytes;
    uint64_t position; /* position of bytes.p[0] */
    struct tl_perf_piece *pieces;
    size_t n_pieces, cap_pieces;
    uint64_t begin, end; /* of all that came, in the ring buffer's running count */
    bool is_mixed;       /* the pieces are not in order of `offset` */
    /* Intel PT. */
    struct tl_perf_stream *stream; /* NULL: not started */
    struct tl_stream_decoder *decoder;
    struct tl_perf_scout scout;
    struct tl_perf_snapshot snapshot;
    bool timed, scouting;
    bool truncated;        /* CoreSight: trace was lost after the part decoded */
    size_t scanned_pieces; /* pieces completely read by the scout */
    uint64_t scanned;      /* position up to which the scout has read */
    uint64_t next;         /* position of the first byte not decoded yet */
    struct tl_perf_break *breaks;
    size_t n_breaks, cap_breaks, first_break;
    /* Position relative to the records (pt_order.c). */
    bool reported, left; /* anything was applied; the next change was reached, but not applied */
    uint64_t seen;       /* time up to which records were applied */
    uint64_t timeless;   /* number of records without a time at that point */
    uint64_t turn;       /* time at which to continue; UINT64_MAX: nothing left to apply */
    bool blocked;        /* the trace position for that time is not known yet */
    uint64_t changed;    /* time of the last memory change applied */
    int32_t reported_pid, reported_tid;
    char reported_name[TL_PERF_NAME];
    /* The same in the virtual machine that the thread runs; tid -1: none, or unknown. */
    int32_t guest_pid, guest_tid;
    char guest_name[TL_PERF_NAME];
};

struct tl_perf_decode {
    struct tl_decode base;
    const struct tl_setup *setup;
    const struct tl_image *image;
    struct tl_decode_sink sink;
    struct tl_perf_reader *reader;
    struct tl_perf_info info;
    struct tl_perf_sideband sideband;
    struct tl_perf_events events;
    struct tl_perf_map by_area; /* index in `areas` */
    struct tl_perf_area_state **areas;
    size_t n_areas, cap_areas;
    struct tl_perf_area_state *filling; /* the area whose bytes are being received */
    bool passes;                        /* they are of one beyond the limit, and skipped */
    bool left_out;                      /* that was reported */
    bool late;                          /* so were records that came too late for a limit */
    uint64_t received;                  /* bytes of all areas */
    uint64_t held_max;                  /* TL_PERF_HELD_MAX, or less in tests */
    uint64_t turned;    /* time up to which all areas took their turns (pt_order.c) */
    bool hastened;      /* an area was not waited for, since too much was held */
    bool overtaken;     /* one that came too late for that was reported */
    uint64_t looked_at; /* file offset when everything was last decoded */
    struct tl_perf_stream **streams;
    size_t n_streams, cap_streams;
    struct tl_perf_map by_tid;     /* index in `streams` of thread streams */
    size_t n_threads;              /* number of threads, including those beyond the limit */
    struct tl_perf_filled *filled; /* for Intel PT only records followed by lost trace */
    size_t n_filled, cap_filled;
    size_t n_truncated;               /* Intel PT: how many of them have no break yet */
    struct tl_perf_promise *promised; /* promised.c */
    size_t n_promised, cap_promised;
    struct tl_perf_map by_owner; /* index in `promised` */
    uint64_t records;            /* number of records */
    uint64_t reported_flags;     /* AUX record flags reported so far */
    bool hopeless;               /* unsupported kind of trace, which was reported */
    uint64_t trouble;            /* number of container losses reported */
};

/* ---- perf_streams.c -------------------------------------------------------------------------- */

/* Get the stream with this name, or create it. Its source must be filled in before it is announced.
 * NULL: out of memory. */
struct tl_perf_stream *tl_perf_stream_of(struct tl_perf_decode *d, const char *name);
/* Announce the stream to the sink, after applying the setup, which overrides the file. */
TL_MUST_USE int tl_perf_stream_announce(struct tl_perf_stream *s);

/* Complete a source by the one of the same name in the setup. */
void tl_perf_source_overlay(const struct tl_perf_decode *decode, struct tl_source *source);
/*
 * Create the stream's decoder. If the source cannot be decoded, that is reported and *out is NULL.
 */
TL_MUST_USE int tl_perf_stream_decoder(struct tl_perf_stream *s, struct tl_stream_decoder **out);

TL_MUST_USE int tl_perf_report_loss(struct tl_perf_decode *d, const struct tl_perf_stream *stream,
                                    const char *reason, uint64_t offset, uint64_t bytes,
                                    bool fault);

/* ---- container.c ----------------------------------------------------------------------------- */

/* Get or create the area of this CPU or thread. TL_LIMIT: there are `max` others; TL_NOMEM. */
TL_MUST_USE int tl_perf_area_of(struct tl_perf_decode *d, int32_t cpu, int32_t tid, uint32_t idx,
                                uint64_t max, struct tl_perf_area_state **out);

/* The clock of TIME items. */
struct tl_clock tl_perf_axis(const struct tl_perf_decode *d);

/* Does the area contain snapshots of a ring buffer? */
bool tl_perf_area_overwrites(const struct tl_perf_area_state *a);
/* Does the AUX record belong to this area? */
bool tl_perf_area_has(const struct tl_perf_area_state *a, const struct tl_perf_filled *f);
/* Index of the piece at `position`, of at least one piece. */
size_t tl_perf_area_piece(const struct tl_perf_area_state *a, uint64_t position);
/* Find the piece that contains these bytes of the ring buffer; NULL: none. */
const struct tl_perf_piece *tl_perf_area_find(const struct tl_perf_area_state *a, uint64_t offset);
/* Bytes of all areas not decoded yet. */
uint64_t tl_perf_held(const struct tl_perf_decode *d);
/* Drop bytes before `position`. */
void tl_perf_area_drop(struct tl_perf_area_state *a, uint64_t position);

/* ---- promised.c: Intel PT and SPE ------------------------------------------------------------ */

/* An AUX record tells of trace. TL_NOMEM. */
TL_MUST_USE int tl_perf_promise(struct tl_perf_decode *d, const struct tl_perf_filled *f);
/* The last piece begins: report what is missing in front of it. */
TL_MUST_USE int tl_perf_promised_hole(struct tl_perf_area_state *a,
                                      const struct tl_perf_piece *piece);
/* There will be no more: report what is missing at the ends. */
TL_MUST_USE int tl_perf_promised_check(struct tl_perf_decode *d);
void tl_perf_promised_fini(struct tl_perf_decode *d);
size_t tl_perf_promised_bytes(const struct tl_perf_decode *d);
void tl_perf_promised_state(struct tl_perf_decode *d, struct tl_state *s);

/* ---- stand.c --------------------------------------------------------------------------------- */

void tl_perf_state(struct tl_decode *decode, struct tl_state *state);

/* ---- pt_area.c ------------------------------------------------------------------------------- */

/* Process the bytes received since the last call; `last`: there will be no more. */
TL_MUST_USE int tl_perf_pt_look(struct tl_perf_area_state *a, bool last);
/* Decode up to this position. */
TL_MUST_USE int tl_perf_pt_decode(struct tl_perf_area_state *a, uint64_t position);
/* The thread running there at `time`; tid -1: unknown. */
struct tl_perf_run tl_perf_pt_run(const struct tl_perf_area_state *a, uint64_t time);
/* Apply records up to `time` to the decoder, if there is anything new. */
TL_MUST_USE int tl_perf_pt_report(struct tl_perf_area_state *a, uint64_t time);
/* Finish after everything has been decoded. */
TL_MUST_USE int tl_perf_pt_finish(struct tl_perf_area_state *a);
void tl_perf_pt_fini(struct tl_perf_area_state *a);

/* ---- pt_order.c, cs_area.c, spe_area.c ------------------------------------------------------- */

/* Decode as much as possible; `last`: everything. */
TL_MUST_USE int tl_perf_pt_continue(struct tl_perf_decode *d, bool last);
TL_MUST_USE int tl_perf_cs_continue(struct tl_perf_decode *d, bool last);
TL_MUST_USE int tl_perf_spe_continue(struct tl_perf_decode *d, bool last);

/* ---- thread.c -------------------------------------------------------------------------------- */

/* From now on thread `run.tid`, named `name`, runs on the CPU of stream `cpu`, at file offset
 * `offset`; 0, -1: none of interest. `run.pid`: its process, which the CPU's stream will report if
 * it changes; -1: the CPU's stream has reported it. `was_out`: it was switched out since it was
 * there last, even if no other ran there meanwhile. */
TL_MUST_USE int tl_perf_thread_enter(struct tl_perf_stream *cpu, const struct tl_perf_run *run,
                                     const char *name, bool was_out, uint64_t offset);
/* Items of this CPU come, the first at `offset`. By the records a thread may begin to run on a CPU
 * before it has left another, whose last items come later: it is switched out between these. */
TL_MUST_USE int tl_perf_thread_alternate(struct tl_perf_stream *cpu, uint64_t offset);
/* The thread whose stream this is was switched out and is back. */
TL_MUST_USE int tl_perf_thread_return(struct tl_perf_stream *stream, uint64_t offset);
/* Record from items about to be delivered what must be repeated for another thread. */
void tl_perf_thread_keep(struct tl_perf_stream *stream, const struct tl_item *items, size_t n);

#endif
