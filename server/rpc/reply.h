/* SPDX-License-Identifier: MIT */
/*
 * Answers as protobuf messages: what RPC sends, and HTTP as JSON. An answer is made from the lake's
 * structs in one place, which both use. One thread at a time.
 */
#ifndef TL_RPC_REPLY_H
#define TL_RPC_REPLY_H

#include "base/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct tl_lake;
struct tl_scope;

/* An answer, with everything that its message points to. */
struct tl_reply {
    ProtobufCMessage *message; /* in `memory` */
    void **memory;
    size_t n, cap;
    bool failed; /* out of memory: the message is not complete */
};

struct tl_asker {
    struct tl_lake *lake;
    const struct tl_scope
        *scope; /* NULL: unrestricted. `trace` of the request is known to be in it */
};

/* Answer a request message of its kind. Free the reply also after an error. */
typedef int tl_answer(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                      struct tl_fail *fail);
void tl_reply_free(struct tl_reply *reply);
/* `rc`, or TL_NOMEM if the reply has failed. */
static inline int tl_reply_done(const struct tl_reply *reply, int rc)
{
    return rc >= 0 && reply->failed ? TL_NOMEM : rc;
}

/* What follows lives as long as the reply. NULL: no memory, and the reply has failed. */

void *tl_reply_take(struct tl_reply *reply, size_t size); /* zeroed */
/* Take over what malloc() has returned, or NULL. */
void tl_reply_keep(struct tl_reply *reply, void *memory);
/* An empty message. */
void *tl_reply_new(struct tl_reply *reply, const ProtobufCMessageDescriptor *kind);
/* The same as the answer itself. */
void *tl_reply_begin(struct tl_reply *reply, const ProtobufCMessageDescriptor *kind);
/* Messages need valid UTF-8: a copy in which anything else is "?". */
char *tl_reply_text(struct tl_reply *reply, const char *text);
char *tl_reply_bytes(struct tl_reply *reply, const char *text, size_t n);

/* Fill a new message from a row. */
typedef void tl_reply_fill(struct tl_reply *reply, void *message, const void *row);
/*
 * Make messages of `n` rows of `size` bytes, and store their array and number in a repeated field:
 * `&m->rows` and `&m->n_rows`. TL_REPLY_ROWS is the same of an array, by the field's name.
 */
void tl_reply_rows(struct tl_reply *reply, void *field, size_t *number,
                   const ProtobufCMessageDescriptor *kind, const void *rows, size_t n, size_t size,
                   tl_reply_fill *fill);
#define TL_REPLY_ROWS(reply, m, name, kind, rows, n, fill)                                         \
    tl_reply_rows(reply, &(m)->name, &(m)->n_##name, &tracelake__v1__##kind##__descriptor, rows,   \
                  n, sizeof *(rows), fill)

/* Say that the only member of a oneof is set. */
void tl_reply_present(ProtobufCMessage *message, const void *member);
/* Set a value that may be absent: the only member of a oneof. */
#define TL_SET(m, field, value)                                                                    \
    do {                                                                                           \
        (m)->field = (value);                                                                      \
        tl_reply_present(&(m)->base, &(m)->field);                                                 \
    } while (0)

#endif
