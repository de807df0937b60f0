/* SPDX-License-Identifier: MIT */
/*
 * Private to the container of perf.data: its AUX areas, each decoded as far as what the records say
 * is final, and the streams that come of them.
 *
 *   container.c   from bytes to areas and records; streams
 *   pt_area.c     an area of Intel PT is a stream
 *   pt_order.c    areas of Intel PT side by side, in the order of the records' times
 *   thread.c      what each thread did, whichever CPUs it ran on, is a stream, too
 *   event.c       streams of the other events
 *   cs_area.c     areas of CoreSight have the streams of all their trace IDs
 *   stand.c       where all of it stands, for checkpoints
 */
#ifndef TL_PERF_CONTAINER_H
#define TL_PERF_CONTAINER_H

#include "decode/stream_out.h"
#include "perf/event.h"
#include "perf/info.h"
#include "perf/pt_scout.h"
#include "perf/sideband.h"
#include "perf/snapshot.h"

#define TL_PERF_HELD_MOST ((size_t)256 << 20) /* bytes of areas that wait for records, at most */

struct tl_perf_decode;

/* A stream, announced before its first item. */
struct tl_perf_stream {
    struct tl_stream_out out; /* the first member */
    struct tl_perf_decode *owner;
    struct tl_source source; /* of what the file and the setup say */
    char name[40];
    /* If threads have streams: of a CPU's the one of the thread that runs, which gets what it gets;
     * NULL: none does. */
    struct tl_perf_stream *thread;
    uint64_t mode;    /* in force behind what was delivered */
    int32_t told_tid; /* CoreSight: the thread that was told last; -1: none */
    bool has_mode;
    bool runs; /* there is no gap behind the last instruction */
};

/* Bytes of one AUXTRACE record. */
struct tl_perf_piece {
    uint64_t position; /* of its first byte among those of the area as they came */
    uint64_t n;        /* bytes so far */
    uint64_t at;       /* offset in the file */
    uint64_t offset;   /* in the ring's endless count */
    uint64_t size;     /* as the record says; a snapshot's first bytes may be left out */
    bool whole;
    bool begun;  /* the scout has */
    bool copied; /* its bytes do not lie in the file like this */
};

/* The trace is not one behind `position`, which is where this is told. */
struct tl_perf_break {
    uint64_t position;
    uint8_t gap;  /* enum tl_gap */
    bool is_anew; /* the decoder begins anew, too */
};

/* What an AUX record says the kernel put into an area. */
struct tl_perf_filled {
    int64_t cpu, tid; /* of its trailer; -1: not told */
    uint64_t offset, size, flags;
    uint64_t time;
    uint64_t record; /* offset of the record in the file */
    bool done;
};

/* What one ring buffer held. */
struct tl_perf_area_state {
    struct tl_perf_decode *owner;
    uint32_t idx;
    int32_t cpu, tid; /* -1: of a thread, of a CPU */
    struct tl_buf bytes;
    uint64_t position; /* of bytes.p[0] */
    struct tl_perf_piece *pieces;
    size_t n_pieces, cap_pieces;
    /* Intel PT. */
    struct tl_perf_stream *stream; /* NULL: not begun */
    struct tl_stream_decoder *decoder;
    struct tl_perf_scout scout;
    struct tl_perf_snapshot snapshot;
    bool timed, scouting;
    bool truncated;        /* CoreSight: trace was lost behind what was decoded */
    size_t scanned_pieces; /* that the scout has seen to their ends */
    uint64_t scanned;      /* position */
    uint64_t next;         /* position of the first byte that was not decoded */
    struct tl_perf_break *breaks;
    size_t n_breaks, cap_breaks, first_break;
    /* Where it stands among the records (pt_order.c). */
    bool told, left;   /* anything was told; the next change was reached, but not told */
    uint64_t seen;     /* time up to which records were told */
    uint64_t timeless; /* records without a time that there were then */
    uint64_t turn;     /* when it goes on; UINT64_MAX: nothing is to be told */
    bool blocked;      /* … how far the trace goes until then is not known yet */
    uint64_t changed;  /* when memory last changed, as far as it was told */
    int32_t told_pid, told_tid;
    char told_name[TL_PERF_NAME];
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
    struct tl_perf_map by_area; /* of `areas` */
    struct tl_perf_area_state **areas;
    size_t n_areas, cap_areas;
    struct tl_perf_area_state *filling; /* the area whose bytes come */
    struct tl_perf_stream **streams;
    size_t n_streams, cap_streams;
    struct tl_perf_map by_tid;     /* of `streams`: those of threads */
    size_t n_threads;              /* of them, and of those that there are too many of */
    struct tl_perf_filled *filled; /* of Intel PT those only behind which trace is lost */
    size_t n_filled, cap_filled;
    uint64_t told_flags; /* of AUX records */
    bool hopeless;       /* trace of a kind that is not known, which was told */
    uint64_t trouble;    /* losses that were told of the container */
};

/* ---- container.c ----------------------------------------------------------------------------- */

/* A new stream with this name, or the one there is. Its source is to be filled in before it is
 * announced. NULL: out of memory. */
struct tl_perf_stream *tl_perf_stream_of(struct tl_perf_decode *d, const char *name);
/* What the setup says of it counts more than what the file does; then to the sink. */
TL_MUST_USE int tl_perf_stream_announce(struct tl_perf_stream *s);
/* A stream decoder of it. A source that cannot be decoded is told; *out is NULL then. */
TL_MUST_USE int tl_perf_stream_decoder(struct tl_perf_stream *s, struct tl_stream_decoder **out);

TL_MUST_USE int tl_perf_tell_loss(struct tl_perf_decode *d, const struct tl_perf_stream *stream,
                                  const char *reason, uint64_t offset, uint64_t bytes, bool fault);

/* The area of this CPU or thread; NULL: out of memory. */
struct tl_perf_area_state *tl_perf_area_of(struct tl_perf_decode *d, int32_t cpu, int32_t tid,
                                           uint32_t idx);

/* The clock of TIME items. */
struct tl_clock tl_perf_axis(const struct tl_perf_decode *d);

/* Is what the area holds snapshots of a ring? */
bool tl_perf_area_overwrites(const struct tl_perf_area_state *a);
/* Is the AUX record of this area? */
bool tl_perf_area_has(const struct tl_perf_area_state *a, const struct tl_perf_filled *f);
/* What lies at these bytes of the ring, in the area's pieces; NULL: nothing does. */
const struct tl_perf_piece *tl_perf_area_find(const struct tl_perf_area_state *a, uint64_t offset);
/* Bytes of all areas that were not decoded yet. */
uint64_t tl_perf_held(const struct tl_perf_decode *d);
/* Forget bytes in front of `position`. */
void tl_perf_area_drop(struct tl_perf_area_state *a, uint64_t position);

/* ---- stand.c ------------------------------------------------------------------------------------
 */

void tl_perf_state(struct tl_decode *decode, struct tl_state *state);

/* ---- pt_area.c ------------------------------------------------------------------------------- */

/* Look at the bytes that came since the last time; `last`: there will be no more. */
TL_MUST_USE int tl_perf_pt_look(struct tl_perf_area_state *a, bool last);
/* Decode up to this position. */
TL_MUST_USE int tl_perf_pt_decode(struct tl_perf_area_state *a, uint64_t position);
/* Who runs there at `time`; tid -1: not known. */
struct tl_perf_run tl_perf_pt_run(const struct tl_perf_area_state *a, uint64_t time);
/* Tell the decoder what records up to `time` say, if it is anything new. */
TL_MUST_USE int tl_perf_pt_tell(struct tl_perf_area_state *a, uint64_t time);
/* All has been decoded. */
TL_MUST_USE int tl_perf_pt_finish(struct tl_perf_area_state *a);
void tl_perf_pt_fini(struct tl_perf_area_state *a);

/* ---- pt_order.c, cs_area.c ------------------------------------------------------------------- */

/* Decode what can be; `last`: all that there is. */
TL_MUST_USE int tl_perf_pt_go_on(struct tl_perf_decode *d, bool last);
TL_MUST_USE int tl_perf_cs_go_on(struct tl_perf_decode *d, bool last);

/* ---- thread.c -------------------------------------------------------------------------------- */

/* From now on thread `tid`, which is called so, runs where the stream is of, at `offset` of the
 * file; 0, -1: none that is of interest. */
TL_MUST_USE int tl_perf_thread_enter(struct tl_perf_stream *cpu, int32_t tid, const char *name,
                                     uint64_t offset);
/* Items of the stream are to be delivered: keep what has to be told again. */
void tl_perf_thread_keep(struct tl_perf_stream *stream, const struct tl_item *items, size_t n);

#endif
