/* SPDX-License-Identifier: MIT */
/*
 * The table of formats: the one place that names what can be pushed and decoded, and says what is
 * common to all that is known of each. Which code decodes them is in decode/registry.c, in the
 * order of the same enumerations. A new format is a line in each of both.
 *
 * Thread-safe; all texts have static storage.
 */
#ifndef TL_SETUP_FORMAT_H
#define TL_SETUP_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a capture's bytes are told apart. */
enum tl_container {
    TL_CONTAINER_TPIU,   /* 16-byte CoreSight formatter frames */
    TL_CONTAINER_SINGLE, /* one unformatted source */
    TL_CONTAINER_DI,     /* length-prefixed OSD debug interconnect datagrams */
    TL_CONTAINER_PT,     /* Intel Processor Trace of one CPU */
    TL_CONTAINER_STF,    /* STF or .zstf */
    TL_CONTAINERS
};

/* What a source speaks. The numbers are stored in catalogs: they stay what they are. */
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
    TL_PROTO_OSD_OTHER, /* register access, CDM, MAM: listed, no flow */
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

struct tl_protocol_info {
    const char *name; /* as in [source] protocol = NAME */
    const char *spec; /* the document that describes it */
    unsigned traits;  /* enum tl_protocol_trait */
};

/* Of any number: TL_PROTO_NONE's where there is no such protocol. */
const struct tl_protocol_info *tl_protocol_info(unsigned protocol);
/* By its name; -1: there is none. */
int tl_protocol_named(const char *name);

static inline bool tl_protocol_has(unsigned protocol, enum tl_protocol_trait trait)
{
    return tl_protocol_info(protocol)->traits & (unsigned)trait;
}

/* What `--format` and [trace] format may name. */
struct tl_format {
    const char *name;
    enum tl_container container;
    enum tl_protocol protocol; /* of the one source; TL_PROTO_NONE where there are many */
    const char *stream;        /* "cs" or the like: how the one source's stream is named */
};

/* NULL: there is none. */
const struct tl_format *tl_format_named(const char *name);
/* Names of all formats: "a, b or c", into `out`; returns it. */
char *tl_format_names(char *out, size_t size);

/* Name the stream of the one source with this ID. */
void tl_format_stream(const struct tl_format *format, unsigned id, char *out, size_t size);

/* The ID that a stream's name tells ("cs.10", "di.0.1", "pt.3"); -1: it tells none. */
int tl_stream_id(const char *name);

#endif
