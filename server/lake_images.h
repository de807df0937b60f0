/* SPDX-License-Identifier: MIT */
/*
 * Images: contents of programs' memory, stored once by their hash, and source files; which of them
 * a trace has. Threads and errors as in lake.h.
 */
#ifndef TL_LAKE_IMAGES_H
#define TL_LAKE_IMAGES_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_lake;

struct tl_image_row {
    char hash[72]; /* "sha256:<64 hex>" */
    char name[128];
    char build_id[64]; /* from the ELF file, hex, "" if none */
    uint64_t size;
};

/* Is content with this hash stored? */
bool tl_lake_has_image(struct tl_lake *lake, const char *hash);
/* The same, intact, and known to the traces that need it: to put it again would change nothing.
 * Reads all of it. */
bool tl_lake_keeps_image(struct tl_lake *lake, const char *hash);
/*
 * Store content; `row` receives its hash. Storing it again is allowed. Content whose name begins
 * with TL_SOURCE_PREFIX is a source file: the prefix is followed by the first TL_SOURCE_IMAGE
 * digits of the hash of the image that was built from it and a colon, or by nothing if it applies
 * to all, then by the path or the end of it. The same with the whole path is the content's first
 * line. TL_NOSPACE, TL_IO.
 */
#define TL_SOURCE_PREFIX "source:"
#define TL_SOURCE_IMAGE  12
TL_MUST_USE int tl_lake_put_image(struct tl_lake *lake, const char *name, struct tl_bytes content,
                                  struct tl_image_row *row, struct tl_fail *fail);
/* Get an image, named by its hash or as "build-id:<hex>": content into `out`, description into
 * `row`. TL_BAD: it is damaged; TL_NOTFOUND. */
TL_MUST_USE int tl_lake_get_image(struct tl_lake *lake, const char *name, struct tl_image_row *row,
                                  struct tl_buf *out, struct tl_fail *fail);
/*
 * Remove an image, named by its hash or the beginning of it, as "build-id:<hex>", or by its name;
 * `row` receives it. TL_DENIED: a trace refers to it, in its present setup or the one before; with
 * `force` it is removed all the same: what is decoded stays, virtual shards cannot be read, and
 * decoding again has gaps, until it is uploaded again. TL_NOTFOUND; TL_USAGE: several are named so.
 */
TL_MUST_USE int tl_lake_remove_image(struct tl_lake *lake, const char *name, bool force,
                                     struct tl_image_row *row, struct tl_fail *fail);
/* Somebody is about to refer to the image with this hash: retention lets it be. */
void tl_lake_want_image(struct tl_lake *lake, const char *hash);
/* List all images. Free `*rows` with free(). */
TL_MUST_USE int tl_lake_images(struct tl_lake *lake, struct tl_image_row **rows, size_t *n);

/* Images and contexts in a trace's setup, and which of the images are stored. */
struct tl_trace_images {
    struct tl_setup setup;
    bool *there; /* [setup.n_images] */
};
/* Free with tl_trace_images_fini(), also after an error. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_trace_images(struct tl_lake *lake, const char *trace,
                                     struct tl_trace_images *out, struct tl_fail *fail);
void tl_trace_images_fini(struct tl_trace_images *images);

struct tl_lake_binding {
    const char *hash;
    uint64_t address, offset;        /* as in struct tl_setup_image */
    uint64_t length;                 /* 0: to the end of the image */
    const char *space;               /* NULL, "": any address space */
    struct tl_image_context context; /* the process or machine it is mapped in, if only one */
    struct tl_image_span span;       /* the time during which it is mapped */
};

/* Add an image to a trace's setup and decode the trace again. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_bind_image(struct tl_lake *lake, const char *trace,
                                   const struct tl_lake_binding *binding, struct tl_fail *fail);

#endif
