/* SPDX-License-Identifier: MIT */
/*
 * A bundle: what a user names on the command line, as captures ready to be decoded or pushed,
 * independent of how they are stored in files. Each capture has its raw bytes, which are one
 * container or source, and its setup: container, sources, images. Decoding and pushing are
 * independent of the kind of bundle, which is handled by importers:
 *
 *   - one file: its format, configuration and images are given separately
 *   - Arm snapshot: a folder that describes trace buffers, devices and memory: one capture per
 *     buffer
 *   - several files: a configuration with one file per Intel PT source: one capture; the same as
 *     LLDB describes it
 *   - perf.data: a single file with everything: it is the raw bytes, and its records of processes
 *     and their memory become images
 *   - settings of dqr: a trace in SiFive's dialect, and the code of processes and kernel: one
 * capture
 *   - core dump of an Espressif chip: one capture per core
 *   - a log of Spike: its instructions as STF
 *
 * A new importer is a function that fills in captures, and a case in tl_bundle_read().
 *
 * Not thread-safe. The only I/O is reading files.
 */
#ifndef TL_IMPORT_BUNDLE_H
#define TL_IMPORT_BUNDLE_H

#include "base/bytes.h"
#include "import/code_files.h"
#include "setup/setup.h"

#include <sys/types.h>

/* Bytes in a file, or in memory. */
struct tl_bundle_piece {
    char *path; /* owned; "-": standard input */
    uint64_t offset;
    uint64_t length; /* UINT64_MAX: to the end of the file */
    /* If one of these is set, the path is only for messages: */
    uint8_t *bytes; /* [length] owned, or NULL */
    int fd;         /* descriptor to read instead of the path, borrowed from the bundle; 0: none */
};

struct tl_bundle_capture {
    char name[64];                  /* name of the buffer in a snapshot; "" for a single file */
    struct tl_setup setup;          /* complete, with images by path */
    struct tl_bundle_piece *pieces; /* the raw bytes: consecutive pieces, at least one */
    size_t n_pieces, cap_pieces;
    char first[40]; /* first stream in order of name; "": unknown */
};

struct tl_bundle {
    struct tl_bundle_capture *captures;
    size_t n_captures;
    bool limited; /* reported: something of the input, names or code are left out */
    int copy;     /* unnamed file with a copy of standard input, if that is read twice; else 0 */
};

/*
 * What was named on the command line; all borrowed. Either `snapshot`, or `input` with its options,
 * or `config` alone. With a snapshot `format` is "tpiu" and its options, for all its buffers, and
 * `images` are added to its own.
 */
struct tl_bundle_request {
    const char *snapshot;      /* folder */
    const char *input;         /* file, "-": standard input */
    const char *format;        /* as in --format; NULL: detect from the file's first bytes */
    const char *config;        /* file, or NULL */
    const char *const *images; /* [n_images] as in --image */
    size_t n_images;
    struct tl_code_places places; /* for perf.data: where to find the executed code */
    /* Do not read standard input ahead: the setup then lacks what it contains. */
    bool as_it_comes;
    /* Called for anything that is left out; may be NULL. */
    void (*warn)(void *context, const char *text);
    void *context;
};

/*
 * Read a bundle. Returns errors of tl_setup_format(), tl_setup_read(), tl_setup_add_image() and
 * tl_snapshot_read(); `*where` is then the file or folder with the error, or NULL for an argument.
 * On success there is at least one capture.
 */
TL_MUST_USE int tl_bundle_read(struct tl_bundle *out, const struct tl_bundle_request *request,
                               const char **where, struct tl_fail *fail);
void tl_bundle_fini(struct tl_bundle *bundle);

/* ---- raw bytes ----------------------------------------------------------------------------- */

/* Reads a capture's bytes from first to last. */
struct tl_bundle_input {
    const struct tl_bundle_capture *capture; /* borrowed */
    size_t piece;                            /* index of the current piece; n_pieces: the end */
    int fd;                                  /* descriptor of the current piece, -1: not open */
    uint64_t left;                           /* bytes left in it, UINT64_MAX: to its end */
    bool live; /* it is a pipe or device: wait for bytes with poll() */
    /* Receives all bytes read or skipped, if seeking is not possible. May be NULL. */
    void (*tap)(void *context, const uint8_t *p, size_t n);
    void *tap_context;
};

/* Open the first piece. Returns TL_IO and sets errno. */
TL_MUST_USE int tl_bundle_open(struct tl_bundle_input *in, const struct tl_bundle_capture *capture);
void tl_bundle_close(struct tl_bundle_input *in);

/* The current file, for messages. */
const char *tl_bundle_path(const struct tl_bundle_input *in);

/* Read up to `n` bytes. Returns 0 at the end, < 0 on a system error, including EINTR: see errno. */
ssize_t tl_bundle_next(struct tl_bundle_input *in, uint8_t *p, size_t n);

/* Skip `n` bytes. Returns the number skipped; less if the input ends or cannot be read. */
uint64_t tl_bundle_skip(struct tl_bundle_input *in, uint64_t n);

/* Append all bytes to `out`. Returns TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_bundle_bytes(const struct tl_bundle_capture *capture, struct tl_buf *out,
                                struct tl_fail *fail);

/* ---- for importers ------------------------------------------------------------------------- */

/* Append a piece in memory to the capture; both arguments are copied. Returns TL_NOMEM. */
TL_MUST_USE int tl_bundle_add_bytes(struct tl_bundle_capture *capture, const char *path,
                                    struct tl_bytes bytes);
/* Append a piece of a file to the capture; `path` is copied. Returns TL_NOMEM. */
TL_MUST_USE int tl_bundle_add(struct tl_bundle_capture *capture, const char *path, uint64_t offset,
                              uint64_t length);
void tl_bundle_capture_fini(struct tl_bundle_capture *capture);

/*
 * Read an Arm trace snapshot: DIR/snapshot.ini and all files it names. Source: "Arm Trace and Debug
 * Snapshot file format 0v2". Device files, memory dumps, registers and buffers that are missing or
 * invalid are left out, and reported to `warn` (may be NULL). Where regions overlap, the one named
 * first takes precedence, and those of the traced cores over others. Returns TL_BAD or TL_IO with
 * the file's name and line if nothing is left to decode.
 */
TL_MUST_USE int tl_snapshot_read(struct tl_bundle *out, const char *dir,
                                 void (*warn)(void *context, const char *text), void *context,
                                 struct tl_fail *fail);

#endif
