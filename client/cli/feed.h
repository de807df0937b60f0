/* SPDX-License-Identifier: MIT */
/*
 * A capture's bytes on their way from its input to a push. A live input, a pipe or a device, is
 * read by a thread of the feed's own, whatever the server does: into memory, or into a spool's
 * folder, until that is full. A file is read when its bytes are wanted.
 *
 * One thread owns it. What goes wrong with the input is said here.
 */
#ifndef TL_CLI_FEED_H
#define TL_CLI_FEED_H

#include "import/bundle.h"
#include "spooldir.h"

struct tl_feed;

struct tl_feed_options {
    const struct tl_bundle_capture *capture; /* borrowed; NULL: what is in the spool is all */
    uint64_t memory;                         /* bytes of a live input that may wait, without spool */
    struct tl_spooldir *spool;               /* NULL: none. Borrowed, kept up to date */
    uint64_t spool_bytes;
    bool goes_on; /* a live input's first byte follows the last one that a push before took of it,
                     rather than being the capture's first */
    bool quiet;
    /* Sees all bytes of the capture in order, in tl_feed_take() and tl_feed_from(). NULL: nobody. Not
     * with a spool. */
    void (*tap)(void *context, const uint8_t *p, size_t n);
    void *context;
};

/* Open the input and begin to read. TL_ARGS_GO, or the exit status of what was said. */
int tl_feed_open(struct tl_feed **out, const struct tl_feed_options *options);
void tl_feed_close(struct tl_feed *feed);
/* The input, for messages. */
const char *tl_feed_name(const struct tl_feed *feed);
/* Is it a file, of which any byte can be had again? */
bool tl_feed_is_file(const struct tl_feed *feed);

/*
 * The server wants the capture from here on. TL_BAD: that is in front of what is left of it. Without
 * this it is taken from its first byte.
 */
TL_MUST_USE int tl_feed_from(struct tl_feed *feed, uint64_t durable, struct tl_fail *fail);
/*
 * Up to `n` bytes, without waiting for a live input: their number, 0 at the end of the capture,
 * TL_AGAIN: wait for tl_feed_descriptor(), TL_BAD: the input ends in front of what was wanted, TL_IO:
 * it cannot be read (said), TL_CANCELLED: a signal.
 */
TL_MUST_USE ssize_t tl_feed_take(struct tl_feed *feed, uint8_t *p, size_t n);
/* Readable when there is more to be taken. -1: always. */
int tl_feed_descriptor(const struct tl_feed *feed);
/* Where the next byte to be taken lies in the capture. */
uint64_t tl_feed_offset(const struct tl_feed *feed);
/* Nothing in front of this offset is needed any more. */
void tl_feed_acked(struct tl_feed *feed, uint64_t durable);
/* No more is read from a live input; what was read can be taken, and ends with TL_CANCELLED. */
void tl_feed_stop(struct tl_feed *feed);
/* Bytes that were read and are not acknowledged; 0 of a file. */
uint64_t tl_feed_held(struct tl_feed *feed);

#endif
