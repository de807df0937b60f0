/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of all formats, from the table in formats/registry.c: name, what its streams
 * contain, how they are named, and their decoder. Nothing else lists formats. A program may link
 * another table instead (tests/toy/registry.c).
 *
 * Thread-safe; all texts have static storage.
 */
#ifndef TL_SETUP_FORMAT_H
#define TL_SETUP_FORMAT_H

#include "isa/isa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a capture's bytes are divided into sources. */
enum tl_container {
    TL_CONTAINER_TPIU,    /* 16-byte CoreSight formatter frames */
    TL_CONTAINER_SINGLE,  /* a single source */
    TL_CONTAINER_DI,      /* length-prefixed OSD debug interconnect datagrams */
    TL_CONTAINER_STF,     /* STF or .zstf */
    TL_CONTAINER_PERF,    /* perf.data: AUX areas and sideband records */
    TL_CONTAINER_NEXUS,   /* Nexus messages, each with the number of its source */
    TL_CONTAINER_ETRACE,  /* E-Trace packets in envelopes, each with the number of its source */
    TL_CONTAINER_ORBFLOW, /* orbuculum's frames, each with the number of its source */
    TL_CONTAINERS
};

/*
 * Formats by number. Source protocol numbers are stored in catalogs: they must not change, and new
 * ones are added at the end.
 */
enum tl_protocol {
    TL_PROTO_NONE, /* unknown or unsupported: reported, bytes counted */
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
    TL_PROTO_TPIU,        /* captures with many sources, each with a protocol of its own */
    TL_PROTO_DI,          /* as TPIU */
    TL_PROTO_PERF,        /* as TPIU */
    TL_PROTO_PERF_EVENTS, /* other events in perf.data */
    TL_PROTO_N_TRACE,
    TL_PROTO_NTRACE, /* captures with sources of N_TRACE */
    /* a source, and captures with sources of it */
    TL_PROTO_NEXUS_SIFIVE,
    TL_PROTO_E_TRACE,
    TL_PROTO_ETRACE_ENCAP, /* captures with sources of E_TRACE, by kind of envelope */
    TL_PROTO_ETRACE_SMI,
    TL_PROTO_ETRACE_ESP32,
    TL_PROTO_ETM3,
    TL_PROTO_PTM,
    TL_PROTO_MTB,
    TL_PROTO_ORBFLOW,   /* as TPIU */
    TL_PROTO_SPE,       /* samples in perf.data */
    TL_PROTO_ETM3_DATA, /* streams of ETM3 sources that trace no instructions */
    TL_PROTOCOLS
};

enum tl_protocol_trait {
    TL_TRAIT_FLOW = 1 << 0, /* positions are executed instructions */
    /* Instructions are found by following the program image, block by block; without this trait
     * they are counted from the records of the STF. */
    TL_TRAIT_BLOCKS = 1 << 1,
    /* BRANCH items are positions: the trace reports only calls and returns */
    TL_TRAIT_CALLS = 1 << 2,
    TL_TRAIT_SOFTWARE = 1 << 3, /* SOFTWARE items are positions: output of a program */
    TL_TRAIT_NOTES = 1 << 4,    /* NOTE items are positions: the trace has nothing else */
    TL_TRAIT_RECORDS = 1 << 5,  /* the input was STF: its records are kept unchanged */
    TL_TRAIT_WRITES = 1 << 7,   /* besides FLOW: SOFTWARE items may stand among the instructions */
    /* besides SOFTWARE: positions are samples of instructions, a statistic of what ran */
    TL_TRAIT_SAMPLES = 1 << 6
};

struct tl_stream_ops;

struct tl_format {
    const char *name; /* as in --format NAME and [source] protocol = NAME */
    const char *spec; /* the specification document */
    unsigned traits;  /* enum tl_protocol_trait */
    /* First word of the names of a capture's streams, e.g. "cs"; "": they have several; NULL: no
     * such capture exists, and --format does not accept the name. */
    const char *stream;
    enum tl_container container; /* container of such a capture */
    /*
     * Decoder for one source's bytes (decode/ops.h); NULL: decoded by the container, or not at all.
     */
    const struct tl_stream_ops *ops;
    enum tl_isa isa; /* usual instruction set of the processors; NONE: the trace reports it */
    /*
     * Registers that a source may have in a setup, whether the decoder reads them or not: names
     * separated by spaces, '#' for a number, '*' at the end for anything. NULL: not checked.
     */
    const char *registers;
};

/* The table, indexed by enum tl_protocol, may have holes. Entry 0 describes unknown formats. */
extern const struct tl_format tl_formats[];
extern const unsigned tl_n_formats;

/* Does such a capture have several sources, which the setup need not name? */
static inline bool tl_container_is_shared(unsigned container)
{
    return container != TL_CONTAINER_SINGLE && container != TL_CONTAINER_STF;
}

/* Description for any number; entry 0 if there is no such format. */
const struct tl_format *tl_format_of(unsigned protocol);
/* Number of the source protocol with this name; -1 if there is none. */
int tl_protocol_named(const char *name);

static inline bool tl_protocol_has(unsigned protocol, enum tl_protocol_trait trait)
{
    return tl_format_of(protocol)->traits & (unsigned)trait;
}

/* Are its records' times those of the timestamps before them, which a clock of its own may give? */
static inline bool tl_protocol_has_own_clock(unsigned protocol)
{
    return protocol == TL_PROTO_ITM || protocol == TL_PROTO_STM;
}

/* Format for --format or [trace] format; NULL if there is no such capture. */
const struct tl_format *tl_format_named(const char *name);
#define TL_FORMAT_NAMES 256 /* bytes that the names need, at least */
/* What a format that other programs or people call so is called here: "itm" for "swo"; NULL:
 * nothing is known by this name. Static storage. */
const char *tl_format_usual(const char *name);
/* Write the names that --format accepts to `out` as "a, b or c"; returns `out`. */
char *tl_format_names(char *out, size_t size);

/* Write to `out` the stream name for a single source with this ID. */
void tl_format_stream(const struct tl_format *format, unsigned id, char *out, size_t size);

/*
 * Prefix of derived streams, which are assembled from other streams of the same trace:
 * "thread.4711" is the execution of one thread across CPUs. Derived streams are not counted in
 * totals.
 */
#define TL_STREAM_THREAD "thread."
bool tl_stream_is_derived(const char *name);

/* The ID in a stream's name ("cs.10", "di.0.1", "pt.3"); -1 if there is none. */
int tl_stream_id(const char *name);

#endif
