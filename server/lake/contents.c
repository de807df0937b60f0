/* SPDX-License-Identifier: MIT */
/*
 * Hashes of what rigs sent, by which a capture is known wherever it was copied to. A capture is
 * hashed when it is complete, some of it at a time, so that retention does not wait for it. A
 * server that ends begins the hash it was at anew.
 */
#include "lake/lakeint.h"
#include "store/hash.h"

#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE (UINT64_C(512) << 20) /* bytes hashed in a round of the housekeeper */

struct tl_contents {
    char id[64];
    struct tl_raw_range *range;
    struct tl_hash *hash;
};

void tl_contents_free(struct tl_lake *lake)
{
    if (!lake->contents)
        return;
    tl_raw_close(lake->contents->range);
    tl_hash_free(lake->contents->hash);
    free(lake->contents);
    lake->contents = NULL;
}

/* A complete capture without a hash, with a reference. */
static struct tl_trace *next_trace(struct tl_lake *lake)
{
    struct tl_trace *found = NULL;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t && !found; t = t->next) {
        pthread_mutex_lock(&t->lock);
        if (t->complete && !t->deleted && !t->raw_removed && !t->content[0] && !t->unhashed &&
            tl_trace_mine_locked(t))
            found = t;
        pthread_mutex_unlock(&t->lock);
    }
    if (found)
        tl_trace_get(found);
    pthread_mutex_unlock(&lake->lock);
    return found;
}

static int begin(struct tl_lake *lake, const char *id)
{
    struct tl_contents *const c = calloc(1, sizeof *c);
    if (!c)
        return TL_NOMEM;
    lake->contents = c;
    snprintf(c->id, sizeof c->id, "%s", id);
    const int r = tl_hash_new(&c->hash);
    return r < 0 ? r : tl_raw_open(lake, id, 0, UINT64_MAX, &c->range, NULL);
}

/* What cannot be read is not tried again until the server starts anew. */
static void finish(struct tl_trace *trace, struct tl_contents *c, bool whole)
{
    char text[TL_HASH_TEXT] = "";
    const bool known = whole && tl_hash_end(c->hash, text) >= 0;
    pthread_mutex_lock(&trace->lock);
    snprintf(trace->content, sizeof trace->content, "%s", text);
    trace->unhashed = !known;
    trace->revision++;
    pthread_mutex_unlock(&trace->lock);
    /* Not written: it is known until the server ends, and then found again. */
    if (known && tl_trace_save_quietly(trace, NULL) >= 0)
        tl_lake_notify(trace->lake);
}

/* Some more of the capture in hand. TL_OK: there is more of it; TL_EOF: it is done. */
static int hash_some(struct tl_lake *lake, struct tl_contents *c)
{
    struct tl_buf piece = {0};
    uint64_t done = 0, offset;
    int r = TL_OK;
    while (r == TL_OK && done < AT_ONCE && !atomic_load(&lake->closing)) {
        tl_buf_reset(&piece);
        r = tl_raw_next(c->range, &offset, &piece, NULL);
        if (r == TL_OK)
            r = tl_hash_add(c->hash, (struct tl_bytes){piece.p, piece.n});
        done += piece.n;
    }
    tl_buf_fini(&piece);
    return r;
}

bool tl_contents_hash(struct tl_lake *lake)
{
    struct tl_trace *const trace = next_trace(lake);
    if (!trace)
        return false;
    int r = TL_OK;
    if (lake->contents && strcmp(lake->contents->id, trace->id) != 0)
        tl_contents_free(lake); /* another one is newer, or it is gone */
    if (!lake->contents)
        r = begin(lake, trace->id);
    if (r >= 0)
        r = hash_some(lake, lake->contents);
    if (r < 0 && r != TL_NOMEM)
        finish(trace, lake->contents, r == TL_EOF);
    if (r < 0)
        tl_contents_free(lake);
    tl_trace_put(trace);
    return true;
}
