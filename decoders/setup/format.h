/* SPDX-License-Identifier: MIT */
/*
 * What is known of each format, from the table in decode/registry.c: its name, what its streams
 * tell, how they are named, and who decodes it. Nothing else lists formats. A program that links a
 * table of its own in place of that one knows other formats (tests/toy/registry.c).
 *
 * Thread-safe; all texts have static storage.
 */
#ifndef TL_SETUP_FORMAT_H
#define TL_SETUP_FORMAT_H

#include "isa/isa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a capture's bytes are told apart. */
enum tl_container {
    TL_CONTAINER_TPIU,   /* 16-byte CoreSight formatter frames */
    TL_CONTAINER_SINGLE, /* one source alone */
    TL_CONTAINER_DI,     /* length-prefixed OSD debug interconnect datagrams */
    TL_CONTAINER_STF,    /* STF or .zstf */
    TL_CONTAINER_PERF,   /* perf.data: AUX areas, with records of what went on beside them */
    TL_CONTAINERS
};

/*
 * Formats by number. The numbers of what a source speaks are stored in catalogs: they stay what
 * they are, and new ones come last.
 */
enum tl_protocol {
    TL_PROTO_NONE, /* not known, or not supported (PTM, ETMv3): reported, its bytes counted */
    TL_PROTO_ETM4,
    TL_PROTO_ETE,
    TL_PROTO_ITM,
    TL_PROTO_STM,
    TL_PROTO_OSD_CTM,
    TL_PROTO_OSD_STM,
    TL_PROTO_OSD_UART,
    TL_PROTO_PT,
    TL_PROTO_STF,
    TL_PROTO_STF_TRANSACTIONS,
    TL_PROTO_OSD_OTHER,   /* register access, CDM, MAM: listed, no flow */
    TL_PROTO_TPIU,        /* captures of many sources, … */
    TL_PROTO_DI,          /* … each of which … */
    TL_PROTO_PERF,        /* … speaks something else */
    TL_PROTO_PERF_EVENTS, /* what else perf.data tells */
    TL_PROTOCOLS
};

enum tl_protocol_trait {
    TL_TRAIT_FLOW = 1 << 0,     /* positions are executed instructions */
    TL_TRAIT_BLOCKS = 1 << 1,   /* … found by following the program image, block by block; else
                                   what was executed is counted from the records of the STF */
    TL_TRAIT_CALLS = 1 << 2,    /* BRANCH items are positions: calls and returns are all it tells */
    TL_TRAIT_SOFTWARE = 1 << 3, /* SOFTWARE items are positions: what a program said */
    TL_TRAIT_NOTES = 1 << 4,    /* NOTE items are positions: they are all it tells */
    TL_TRAIT_RECORDS = 1 << 5   /* it was STF: its records are kept as they were */
};

struct tl_stream_ops;

struct tl_format {
    const char *name;   /* as in --format NAME and [source] protocol = NAME */
    const char *spec;   /* the document that describes it */
    unsigned traits;    /* enum tl_protocol_trait */
    const char *stream; /* "cs" or the like: the first word of its streams' names where a capture
                           is of one source; "": where it is of many; NULL: there is no such
                           capture, --format cannot name it */
    enum tl_container container;     /* of such a capture */
    const struct tl_stream_ops *ops; /* decodes the bytes of one source (decode/ops.h); NULL: they
                                        are decoded by their container, or not at all */
    enum tl_isa isa; /* of the processors that it is usually of; NONE: it tells itself */
};

/* The table: by enum tl_protocol, with holes. The first one stands for what is not known. */
extern const struct tl_format tl_formats[];
extern const unsigned tl_n_formats;

/* Of any number: the first one's where there is no such format. */
const struct tl_format *tl_format_of(unsigned protocol);
/* The number of what a source may speak, by its name; -1: there is none. */
int tl_protocol_named(const char *name);

static inline bool tl_protocol_has(unsigned protocol, enum tl_protocol_trait trait)
{
    return tl_format_of(protocol)->traits & (unsigned)trait;
}

/* What --format or [trace] format names; NULL: there is no such capture. */
const struct tl_format *tl_format_named(const char *name);
/* Names of all that --format may name: "a, b or c", into `out`; returns it. */
char *tl_format_names(char *out, size_t size);

/* Name the stream of the one source with this ID. */
void tl_format_stream(const struct tl_format *format, unsigned id, char *out, size_t size);

/* So begin the names of streams that are put together from others of the same trace: "thread.4711"
 * has what a thread did on whichever CPUs. They count for themselves, and not among all. */
#define TL_STREAM_THREAD "thread."
bool tl_stream_is_derived(const char *name);

/* The ID that a stream's name tells ("cs.10", "di.0.1", "pt.3"); -1: it tells none. */
int tl_stream_id(const char *name);

#endif
