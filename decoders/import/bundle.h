/* SPDX-License-Identifier: MIT */
/*
 * A bundle: what a user names on the command line, as captures that are ready to be decoded or
 * pushed, whatever the files are that they lie in. Each capture has its raw bytes, which are one
 * container or source, and its setup: container, sources, images. Who decodes or pushes knows no
 * kind of bundle; importers make them:
 *
 *   one file       its format, configuration and images named beside it
 *   Arm snapshot   a folder that describes trace buffers, devices and memory: a capture a buffer
 *   several files  a configuration that names one for each Intel PT source: one capture
 *   perf.data      one file that holds everything: it is the bytes, and what it says of processes
 *                  and their memory becomes images
 *
 * A new importer is a function that fills in captures, and a case in tl_bundle_read().
 *
 * Not thread-safe. Reading files is all the I/O there is.
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
    uint64_t length; /* UINT64_MAX: to the end */
    /* The path is for messages only where there are these: */
    uint8_t *bytes; /* [length] owned, or NULL; … */
    int fd; /* … what is read in place of the path, borrowed from the bundle; 0: nothing is */
};

struct tl_bundle_capture {
    char name[64];                  /* of the buffer in a snapshot; "" of one file */
    struct tl_setup setup;          /* complete, images by path */
    struct tl_bundle_piece *pieces; /* the raw bytes, one piece behind another; at least one */
    size_t n_pieces, cap_pieces;
    char first[40]; /* the first stream by name; "": not known */
};

struct tl_bundle {
    struct tl_bundle_capture *captures;
    size_t n_captures;
    int copy; /* of standard input, where it is read twice: a file without a name; else 0 */
};

/* What was named; all borrowed. Either `snapshot`, or `input` and what goes with it, or `config`
 * alone. */
struct tl_bundle_request {
    const char *snapshot;      /* folder */
    const char *input;         /* file, "-": standard input */
    const char *format;        /* as in --format; NULL: the file's first bytes tell */
    const char *config;        /* file, or NULL */
    const char *const *images; /* [n_images] as in --image */
    size_t n_images;
    struct tl_code_places places; /* of perf.data: where the code is that ran */
    bool as_it_comes; /* standard input is not read ahead: the setup has nothing of what it says */
    void (*warn)(void *context, const char *text); /* of what is left out; may be NULL */
    void *context;
};

/*
 * Errors as of tl_setup_format(), tl_setup_read(), tl_setup_add_image() and tl_snapshot_read();
 * `*where` is the file or folder at fault then, NULL: an argument. On success at least one capture.
 */
TL_MUST_USE int tl_bundle_read(struct tl_bundle *out, const struct tl_bundle_request *request,
                               const char **where, struct tl_fail *fail);
void tl_bundle_fini(struct tl_bundle *bundle);

/* ---- raw bytes ----------------------------------------------------------------------------- */

/* A capture's bytes as they are read, from the first to the last. */
struct tl_bundle_input {
    const struct tl_bundle_capture *capture; /* borrowed */
    size_t piece;                            /* that is read; n_pieces: the end */
    int fd;                                  /* of it, -1: none is open */
    uint64_t left;                           /* bytes of it, UINT64_MAX: to its end */
    bool live; /* it is a pipe or a device: bytes come when they come, poll() tells */
    /* Sees all bytes that are read or passed over, where no seeking is possible. May be NULL. */
    void (*tap)(void *context, const uint8_t *p, size_t n);
    void *tap_context;
};

/* Opens the first piece. TL_IO, and errno says why. */
TL_MUST_USE int tl_bundle_open(struct tl_bundle_input *in, const struct tl_bundle_capture *capture);
void tl_bundle_close(struct tl_bundle_input *in);

/* The file that is read, for messages. */
const char *tl_bundle_path(const struct tl_bundle_input *in);

/* Up to `n` bytes; 0 at the end, < 0 where the system refuses: errno says why, and EINTR is one of
 * the reasons. */
ssize_t tl_bundle_next(struct tl_bundle_input *in, uint8_t *p, size_t n);

/* Pass over `n` bytes. Returns how many there were; less if they end, or cannot be read. */
uint64_t tl_bundle_skip(struct tl_bundle_input *in, uint64_t n);

/* Append all bytes. TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_bundle_bytes(const struct tl_bundle_capture *capture, struct tl_buf *out,
                                struct tl_fail *fail);

/* ---- for importers ------------------------------------------------------------------------- */

/* Bytes in memory behind the pieces of the capture; both are copied. TL_NOMEM. */
TL_MUST_USE int tl_bundle_add_bytes(struct tl_bundle_capture *capture, const char *path,
                                    struct tl_bytes bytes);
/* A piece behind those of the capture; `path` is copied. TL_NOMEM. */
TL_MUST_USE int tl_bundle_add(struct tl_bundle_capture *capture, const char *path, uint64_t offset,
                              uint64_t length);
void tl_bundle_capture_fini(struct tl_bundle_capture *capture);

/*
 * An Arm trace snapshot: DIR/snapshot.ini and all that it names. Source: "Arm Trace and Debug
 * Snapshot file format 0v2". What can be left out is: a device file, a memory dump, a register or a
 * buffer that is not there or makes no sense. `warn` (may be NULL) is told. Where regions overlap,
 * the one first named counts, those of the traced cores before others. TL_BAD or TL_IO with the
 * file's name and line where there is nothing left to decode.
 */
TL_MUST_USE int tl_snapshot_read(struct tl_bundle *out, const char *dir,
                                 void (*warn)(void *context, const char *text), void *context,
                                 struct tl_fail *fail);

#endif
