/* SPDX-License-Identifier: MIT */
/*
 * A capture's bytes on their way from the input to a push. A live input (a pipe or a device) is
 * read by the feed's own thread regardless of the server: into memory, or into a spool folder,
 * until that is full. A file is read on demand.
 *
 * Owned by one thread. Input errors are reported here.
 */
#ifndef TL_PUSH_FEED_H
#define TL_PUSH_FEED_H

#include "import/bundle.h"
#include "spooldir.h"

struct tl_feed;

struct tl_feed_options {
    const struct tl_bundle_capture *capture; /* borrowed; NULL: send only what is in the spool */
    uint64_t memory; /* bytes of a live input that may be buffered in memory, without spool */
    struct tl_spooldir *spool; /* NULL: none. Borrowed, kept up to date */
    uint64_t spool_bytes;
    bool continues; /* a live input's first byte follows the last one an earlier push read from it,
                     instead of being the first byte of the capture */
    bool quiet;
    /* Receives all bytes of the capture in order, during tl_feed_take() and tl_feed_from(). NULL:
     * none. Not with a spool. */
    void (*tap)(void *context, const uint8_t *p, size_t n);
    void *context;
};

/* Open the input and begin to read. TL_ARGS_GO, or the exit status if an error was reported. */
int tl_feed_open(struct tl_feed **out, const struct tl_feed_options *options);
void tl_feed_close(struct tl_feed *feed);
/* Name of the input, for messages. */
const char *tl_feed_name(const struct tl_feed *feed);
/* Is the input a file, so that any byte can be read again? */
bool tl_feed_is_file(const struct tl_feed *feed);

/* Can the capture be read from its first byte on? Not if an earlier push has read and sent it. */
bool tl_feed_has_begin(struct tl_feed *feed);
/*
 * Continue at the server's durable offset. TL_BAD: bytes from there on are no longer available.
 * Without this call the capture is read from its first byte.
 */
TL_MUST_USE int tl_feed_from(struct tl_feed *feed, uint64_t durable, struct tl_fail *fail);
/*
 * Read up to `n` bytes, without waiting for a live input. Returns their number, 0 at the end of the
 * capture, TL_AGAIN: wait for tl_feed_descriptor(), TL_BAD: the input ends before the wanted
 * offset, TL_IO: it cannot be read (reported), TL_CANCELLED: a signal.
 */
TL_MUST_USE ssize_t tl_feed_take(struct tl_feed *feed, uint8_t *p, size_t n);
/* Descriptor that is readable when more bytes are available. -1: always. */
int tl_feed_descriptor(const struct tl_feed *feed);
/* Bytes before `durable` are no longer needed. */
void tl_feed_acked(struct tl_feed *feed, uint64_t durable);
/* Stop reading a live input; what was read can still be taken, and ends with TL_CANCELLED. */
void tl_feed_stop(struct tl_feed *feed);
/* Bytes read but not acknowledged; 0 for a file. */
uint64_t tl_feed_held(struct tl_feed *feed);

#endif
