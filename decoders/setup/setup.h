/* SPDX-License-Identifier: MIT */
/*
 * A setup: all that a decoder must be told about a capture, beside its bytes: the container,
 * the trace sources with their registers, and which image lies where.
 *
 * One representation everywhere. It is read from `--format` and `--config FILE`, or made by an
 * importer (import/bundle.h); it travels to the server and rests in its catalog as the same INI
 * text (docs/setup.md). Not thread-safe while being built; read-only afterwards.
 */
#ifndef TL_SETUP_SETUP_H
#define TL_SETUP_SETUP_H

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "setup/clock.h"
#include "setup/format.h"

#include <stddef.h>

enum tl_frame_sync {
    TL_SYNC_NONE,   /* 16-byte aligned frames, nothing between them */
    TL_SYNC_FSYNC,  /* full-word synchronisation between frames */
    TL_SYNC_HSYNC,  /* … and half-word synchronisation anywhere */
    TL_SYNC_DSTREAM /* FSYNC, and an 8-byte footer in each 512 bytes */
};

#define TL_SETUP_REGS 64

struct tl_register {
    char name[24]; /* upper case, as in the architecture: TRCCONFIGR */
    uint64_t value;
};

struct tl_source {
    char name[32];     /* the stream's name: "cs.10", "di.0.1", "pt.0" */
    uint16_t id;       /* CoreSight trace ID, DI address, CPU number */
    uint8_t protocol;  /* enum tl_protocol */
    char type[24];     /* as the configuration named it, e.g. "ETM4.2", "PTM1.1" */
    char core[40];     /* e.g. "Cortex-A53", "ARM-AA64", "" if not told */
    char device[40];   /* what the board's description calls it, e.g. "PTM_0", "" if not told */
    uint64_t clock_hz; /* rate of its timestamps; 0: the capture's */
    /* Of a container that knows when its pieces were traced; no part of the setup's text: */
    uint64_t since;   /* memory is as it was then where the trace begins; 0: not told … */
    bool other_clock; /* … and stays so: the trace's timestamps are of another clock than that */
    struct tl_register regs[TL_SETUP_REGS];
    size_t n_regs;
};

struct tl_setup_image {
    /* Path, or what is known to the server: "sha256:<64 hex digits>", "build-id:<hex>", or
     * "missing:<number>", which nobody will ever know; owned. */
    char *file;
    /* What the traced machine called it, owned; NULL: not told. With it the file need not be there
     * (yet), and may end in front of `length`. */
    char *path;
    /* What of the ELF file lies at `address`: the section of this name if that begins with a dot,
     * from its byte `offset` on, else the symbol, and all of the file with it. Owned; NULL: as the
     * offset says. */
    char *anchor;
    uint64_t address; /* where its first mapped byte lies; for ELF a bias that is added */
    uint64_t offset;  /* of the first mapped byte in the file */
    uint64_t length;  /* UINT64_MAX: to the end */
    unsigned space;   /* tl_space bits */
    struct tl_image_context context; /* where it is there in one process or machine only */
    struct tl_image_span span;       /* when it is there */
};

/* What people call a context ID, or a VMID. */
struct tl_setup_context {
    uint64_t id;
    bool is_vmid;
    char name[32];
};

/* Bytes of a source that has a file of its own: [source] file=. For who makes a capture of them
 * (import/bundle.h); they are no part of the setup's text. */
struct tl_setup_file {
    char *file;
    size_t source; /* index in the setup's sources */
    bool is_ring;  /* a dump of a ring buffer … */
    uint64_t head; /* … whose oldest byte is at this offset */
};

/* A file of code that was made of what a capture says, and is nowhere else: images name it. It is
 * no part of the setup's text: who sends that sends the bytes as an image. */
struct tl_setup_made {
    char *file; /* its name; owned, as its bytes are */
    struct tl_buf bytes;
};

struct tl_setup {
    uint8_t container;     /* enum tl_container */
    uint8_t sync;          /* enum tl_frame_sync */
    bool threads;          /* perf.data: each thread is a stream, too, … */
    bool events;           /* … and so are its other events */
    char format[64];       /* FMT as it was given, e.g. "tpiu,sync=fsync" */
    uint64_t clock_hz;     /* rate of the timestamps of sources without a clock of their own; 0: not
                              known */
    struct tl_clock clock; /* … and how they relate to the operating system's, in place of a rate */
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
};

void tl_setup_init(struct tl_setup *setup);
void tl_setup_fini(struct tl_setup *setup);

/*
 * Take a `--format` value: a name with options behind commas. TL_USAGE says which names there
 * are. For one-source formats (etm4, ete, itm, stm, pt) it adds the source.
 */
TL_MUST_USE int tl_setup_format(struct tl_setup *setup, const char *format, struct tl_fail *fail);
/* Of perf.data, as far as the format does not say: threads and events are streams, too. False:
 * nothing new. */
bool tl_setup_want_all(struct tl_setup *setup);

/* Parse INI text (docs/setup.md) into an initialised setup. TL_BAD with line number in the text. */
TL_MUST_USE int tl_setup_parse(struct tl_setup *setup, const char *text, size_t n,
                               struct tl_fail *fail);
/* Read a `--config` file. Relative image paths become relative to that file. */
TL_MUST_USE int tl_setup_read(struct tl_setup *setup, const char *path, struct tl_fail *fail);

/* The setup as INI text that tl_setup_parse() takes back. */
TL_MUST_USE int tl_setup_write(const struct tl_setup *setup, struct tl_buf *out);

/*
 * `--image FILE[@ADDR][,space=S][,context=N][,vmid=N][,offset=N][,length=N][,from=T][,until=T]`.
 * Errors: TL_USAGE, TL_NOMEM.
 */
TL_MUST_USE int tl_setup_add_image(struct tl_setup *setup, const char *argument,
                                   struct tl_fail *fail);

/* The same with everything told: see struct tl_setup_image. `file` is copied. TL_NOMEM. */
TL_MUST_USE int tl_setup_add_image_at(struct tl_setup *setup, const char *file, uint64_t address,
                                      uint64_t offset, uint64_t length, unsigned space);

/* Say what the machine called the image; of a long text its end. TL_NOMEM. */
TL_MUST_USE int tl_setup_image_path(struct tl_setup_image *image, const char *path);
/* The same for its anchor. */
TL_MUST_USE int tl_setup_image_anchor(struct tl_setup_image *image, const char *anchor);
/* Is that not a file's name, but content that a server has or will have? */
bool tl_setup_is_stored(const char *file);

/* What a context ID or VMID is called; the name is cut off where there is no room. TL_NOMEM. */
TL_MUST_USE int tl_setup_add_context(struct tl_setup *setup, bool is_vmid, uint64_t id,
                                     const char *name);
/* … from now on. */
void tl_setup_context_call(struct tl_setup_context *context, const char *name);
/* NULL: nobody says. */
const char *tl_setup_context_name(const struct tl_setup *setup, bool is_vmid, uint64_t id);

/* A file that is in memory only; takes the bytes over, whatever it returns. TL_NOMEM. */
TL_MUST_USE int tl_setup_add_made(struct tl_setup *setup, const char *file, struct tl_buf *bytes);
/* The bytes of a file that was added so; NULL: it was not. */
const struct tl_buf *tl_setup_made(const struct tl_setup *setup, const char *file);

/*
 * Map every image of the setup into `image` (not frozen here): raw files at their address, ELF
 * files (known by their magic) by their headers. One with a path that is not there is left out.
 * `resolve(context, file, &bytes, fail)` finds a file's content, borrowed until the next call;
 * NULL: files are read from the file system.
 */
typedef int tl_setup_resolver(void *context, const char *file, struct tl_bytes *bytes,
                              struct tl_fail *fail);
TL_MUST_USE int tl_setup_load_images(const struct tl_setup *setup, struct tl_image *image,
                                     tl_setup_resolver *resolve, void *context,
                                     struct tl_fail *fail);

/* The source with this id (or the only source of a single container), or NULL. */
const struct tl_source *tl_setup_source(const struct tl_setup *setup, unsigned id);
/* A new source, zeroed; NULL: out of memory. Pointers to earlier ones become invalid. */
struct tl_source *tl_setup_add_source(struct tl_setup *setup);

/* Rate of the timestamps of this stream; 0: not known. */
uint64_t tl_setup_clock(const struct tl_setup *setup, const char *stream);
/* A register's value, or `otherwise` where the configuration has none. */
uint64_t tl_source_reg(const struct tl_source *source, const char *name, uint64_t otherwise);
/*
 * The instruction set that the trace of a `protocol` is of as long as it tells of none itself: by
 * the core that the setup names, else the usual one. `source` may be NULL. TL_ISA_NONE: not known.
 */
enum tl_isa tl_source_isa(enum tl_protocol protocol, const struct tl_source *source);
TL_MUST_USE int tl_source_set_reg(struct tl_source *source, const char *name, uint64_t value);

#endif
