/* SPDX-License-Identifier: MIT */
/*
 * A setup: everything a decoder needs to know about a capture besides its bytes: the container, the
 * trace sources with their registers, and which image is mapped where.
 *
 * The same representation is used everywhere. It is read from `--format` and `--config FILE`, or
 * built by an importer (import/bundle.h); it is sent to the server and stored in its catalog as INI
 * text (docs/setup.md). Not thread-safe while being built; read-only afterwards.
 */
#ifndef TL_SETUP_SETUP_H
#define TL_SETUP_SETUP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/portform.h"
#include "image/image.h"
#include "setup/clock.h"
#include "setup/format.h"
#include "setup/losses.h"

#include <stddef.h>

enum tl_frame_sync {
    TL_SYNC_NONE,   /* 16-byte aligned frames without synchronisation words */
    TL_SYNC_FSYNC,  /* full-word synchronisation between frames */
    TL_SYNC_HSYNC,  /* FSYNC, and half-word synchronisation anywhere */
    TL_SYNC_DSTREAM /* FSYNC, and an 8-byte footer in each 512 bytes */
};

#define TL_SETUP_REGS   64
#define TL_SETUP_UNSAID UINT8_MAX

struct tl_register {
    char name[32]; /* as in the architecture: TRCCONFIGR, trTeInstMode */
    uint64_t value;
};

struct tl_source {
    char name[32];     /* stream name: "cs.10", "di.0.1", "pt.0" */
    uint16_t id;       /* CoreSight trace ID, DI address, CPU number, SRC of RISC-V trace */
    uint8_t protocol;  /* enum tl_protocol */
    char type[24];     /* as in the configuration, e.g. "ETM4.2", "PTM1.1" */
    char core[40];     /* e.g. "Cortex-A53", "ARM-AA64"; "" if unknown */
    char device[40];   /* name in the board's description, e.g. "PTM_0"; "" if unknown */
    uint64_t clock_hz; /* timestamp frequency in Hz; 0: the capture's */
    /* For containers that know when their pieces were traced; not part of the setup's text: */
    uint64_t since;   /* time for looking up memory at the beginning of the trace; 0: unknown */
    bool other_clock; /* keep using `since`: the trace's timestamps are from another clock */
    /* For sources with memory of their own: the VMID that stands for the source in the image
     * (tl_source_vmid()); 0: the images are for all sources. */
    uint32_t vmid;
    struct tl_register regs[TL_SETUP_REGS];
    size_t n_regs;
    uint8_t ports[TL_PORTS]; /* enum tl_port_form of each stimulus port */
};

struct tl_setup_image {
    /* Path, or a name resolved by the server: "sha256:<64 hex digits>", "build-id:<hex>", or
     * "missing:<number>", which never resolves; owned. */
    char *file;
    /* The file's path on the traced machine, owned; NULL: unknown. If set, the file may be missing
     * (for now) and may end before `length`. */
    char *path;
    /*
     * What part of the ELF file is mapped at `address`: a name that begins with a dot is a section,
     * mapped from its byte `offset` on; any other name is a symbol, and the whole file is mapped
     * relative to it. Owned; NULL: `offset` is a file offset.
     */
    char *anchor;
    uint64_t address; /* address of the first mapped byte; for ELF a bias added to its addresses */
    uint64_t offset;  /* file offset of the first mapped byte */
    uint64_t length;  /* UINT64_MAX: to the end of the file */
    unsigned space;   /* tl_space bits */
    struct tl_image_context context; /* restricts the mapping to one process or virtual machine */
    struct tl_image_span span;       /* when it is mapped */
};

/* Display name of a context ID or VMID. */
struct tl_setup_context {
    uint64_t id;
    bool is_vmid;
    char name[32];
};

/* File that holds the bytes of a single source: [source] file=, or its sideband records: sideband=.
 * For building a capture (import/bundle.h); not part of the setup's text. */
struct tl_setup_file {
    char *file;
    size_t source;     /* index in the setup's sources */
    bool is_ring;      /* it is a dump of a ring buffer */
    uint64_t head;     /* offset of the ring buffer's oldest byte */
    uint64_t sideband; /* records of the kernel, with trailers of this sample_type; 0: trace */
};

/* The sample_type of sideband records if none is given: that of `perf record -e intel_pt//`. */
#define TL_SETUP_SIDEBAND 0x10087

/* A code file synthesised from a capture's contents, which exists nowhere else; images refer to it
 * by name. Not part of the setup's text: to send a setup, send these bytes as an image. */
struct tl_setup_made {
    char *file; /* name; owned, as are the bytes */
    struct tl_buf bytes;
};

struct tl_setup {
    uint8_t container; /* enum tl_container */
    uint8_t sync;      /* enum tl_frame_sync */
    bool threads;      /* perf.data: add a stream for each thread */
    bool events;       /* perf.data: add streams for other events */
    /* Messages and packets of RISC-V trace: bits of the source's number, bytes of a timestamp in
     * E-Trace envelopes, bits of their type. TL_SETUP_UNSAID: not given. */
    uint8_t src_bits, ts_bytes, type_bits;
    char core[40];   /* RISC-V: of sources that have none of their own; "": not given */
    char format[64]; /* the format as given, e.g. "tpiu,sync=fsync" */
    /* Timestamp frequency in Hz for sources without their own; 0: unknown. */
    uint64_t clock_hz;
    /* Relation of timestamps to the operating system's clock; used instead of `clock_hz`. */
    struct tl_clock clock;
    struct tl_source *sources;
    size_t n_sources;
    size_t cap_sources;
    struct tl_setup_image *images;
    size_t n_images;
    size_t cap_images;
    struct tl_setup_context *contexts;
    size_t n_contexts;
    size_t cap_contexts;
    struct tl_setup_file *files;
    size_t n_files;
    size_t cap_files;
    struct tl_setup_made *made;
    size_t n_made;
    size_t cap_made;
    struct tl_setup_loss *losses; /* by their offset */
    size_t n_losses;
    size_t cap_losses;
};

void tl_setup_init(struct tl_setup *setup);
void tl_setup_fini(struct tl_setup *setup);

/*
 * Parse a `--format` value: a name with comma-separated options. For single-source formats (etm4,
 * ete, itm, stm, pt) also adds the source. Returns TL_USAGE; `fail` lists the valid names.
 */
TL_MUST_USE int tl_setup_format(struct tl_setup *setup, const char *format, struct tl_fail *fail);
/* For perf.data: enable thread and event streams unless the format sets them. Returns false if
 * nothing changed. */
bool tl_setup_want_all(struct tl_setup *setup);

/* Parse INI text (docs/setup.md) into an initialised setup. Returns TL_BAD with the line number in
 * `fail`. */
TL_MUST_USE int tl_setup_parse(struct tl_setup *setup, const char *text, size_t n,
                               struct tl_fail *fail);
/* Read a `--config` file, more strictly: sections whose names are followed by words, and sources of
 * formatter frames without a protocol, are refused. Relative image paths are resolved relative to
 * that file. */
TL_MUST_USE int tl_setup_read(struct tl_setup *setup, const char *path, struct tl_fail *fail);

/* Write the setup as INI text for tl_setup_parse(). */
TL_MUST_USE int tl_setup_write(const struct tl_setup *setup, struct tl_buf *out);

/*
 * Parse the value of `--image`:
 *     FILE[@ADDR][,space=S][,context=N][,vmid=N][,offset=N][,length=N][,from=T][,until=T]
 * Returns TL_USAGE, TL_NOMEM.
 */
TL_MUST_USE int tl_setup_add_image(struct tl_setup *setup, const char *argument,
                                   struct tl_fail *fail);

/*
 * The same with separate arguments: see struct tl_setup_image. `file` is copied. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_setup_add_image_at(struct tl_setup *setup, const char *file, uint64_t address,
                                      uint64_t offset, uint64_t length, unsigned space);

/* Set the image's path on the traced machine; an overlong path keeps its end. Returns TL_NOMEM. */
TL_MUST_USE int tl_setup_image_path(struct tl_setup_image *image, const char *path);
/* Set the image's anchor, likewise. */
TL_MUST_USE int tl_setup_image_anchor(struct tl_setup_image *image, const char *anchor);
/* Is `file` a name resolved by a server rather than a path? */
bool tl_setup_is_stored(const char *file);

/* Name a context ID or VMID; an overlong name is truncated. Returns TL_NOMEM. */
TL_MUST_USE int tl_setup_add_context(struct tl_setup *setup, bool is_vmid, uint64_t id,
                                     const char *name);
/* Change the name. */
void tl_setup_context_call(struct tl_setup_context *context, const char *name);
/* Name of a context ID or VMID; NULL if it has none. */
const char *tl_setup_context_name(const struct tl_setup *setup, bool is_vmid, uint64_t id);

/* Add a file that exists only in memory. Always takes ownership of the bytes. Returns TL_NOMEM. */
TL_MUST_USE int tl_setup_add_made(struct tl_setup *setup, const char *file, struct tl_buf *bytes);
/* Contents of a file added with tl_setup_add_made(); NULL if there is none. */
const struct tl_buf *tl_setup_made(const struct tl_setup *setup, const char *file);

/* Is a file that was given as a whole, without an address, one that is no program by its first
 * bytes, such as a packed one? TL_BAD: `fail` says what it is. */
TL_MUST_USE int tl_setup_check_image(const struct tl_setup_image *image, struct tl_bytes head,
                                     struct tl_fail *fail);

/*
 * Map every image of the setup into `image` (not frozen here): raw files at their address, ELF
 * files (recognised by their magic) according to their headers. Missing files of images with a
 * `path` are skipped. `resolve(context, file, &bytes, fail)` supplies a file's content, borrowed
 * until the next call; NULL: files are read from the file system.
 */
typedef int tl_setup_resolver(void *context, const char *file, struct tl_bytes *bytes,
                              struct tl_fail *fail);
TL_MUST_USE int tl_setup_load_images(const struct tl_setup *setup, struct tl_image *image,
                                     tl_setup_resolver *resolve, void *context,
                                     struct tl_fail *fail);

/* Find the source with this id (or the only source of a single container), or NULL. */
const struct tl_source *tl_setup_source(const struct tl_setup *setup, unsigned id);
/*
 * The VMID that `source=` binds an image to: trace of RISC-V harts that run different programs at
 * the same addresses. Outside the 14 bits of a VMID of these processors.
 */
static inline uint32_t tl_source_vmid(unsigned id)
{
    return UINT32_C(0x80000000) | id;
}
/* The same if the setup has an image bound to the source; else 0. */
uint32_t tl_setup_source_vmid(const struct tl_setup *setup, unsigned id);
/* Add a source, zeroed; NULL: out of memory. Invalidates pointers to other sources. */
struct tl_source *tl_setup_add_source(struct tl_setup *setup);

/* Timestamp frequency of this stream in Hz; 0: unknown. */
uint64_t tl_setup_clock(const struct tl_setup *setup, const char *stream);
/* Value of a register, or `otherwise` if it is not configured. */
uint64_t tl_source_reg(const struct tl_source *source, const char *name, uint64_t otherwise);
/*
 * Initial instruction set of a trace, until the trace reports one: from the core named in the
 * setup, else the protocol's usual one. `source` may be NULL. TL_ISA_NONE: unknown.
 */
enum tl_isa tl_source_isa(enum tl_protocol protocol, const struct tl_source *source);
/* Protocol of the source's stream: what its positions are can depend on the source's registers.
 * `source` may be NULL. */
enum tl_protocol tl_source_stream(const struct tl_source *source);
TL_MUST_USE int tl_source_set_reg(struct tl_source *source, const char *name, uint64_t value);

#endif
