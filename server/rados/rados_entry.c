/* SPDX-License-Identifier: MIT */
/*
 * Index entries and the pieces that they name. A piece is announced by an intent before it is
 * written, so that those of a server that died can be found and removed.
 */
#include "rados/rados_int.h"
#include "shard/varint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- entries -------------------------------------------------------------------------------- */

void tl_entry_fini(struct tl_entry *e)
{
    free(e->extents);
    *e = (struct tl_entry){0};
}

static int add_extent(struct tl_entry *e, const struct tl_extent *x)
{
    if (tl_grow(&e->extents, &e->cap, e->n + 1, sizeof(*e->extents)) < 0)
        return TL_NOMEM;
    e->extents[e->n++] = *x;
    return TL_OK;
}

int tl_entry_parse(struct tl_entry *e, struct tl_bytes value)
{
    if (value.n == 0)
        return TL_BAD;
    struct tl_varint_reader in = {.p = value.p + 1, .end = value.p + value.n};
    e->kind = (char)value.p[0];
    e->size = tl_varint_get(&in);
    if (e->kind == 'I') {
        e->content = (struct tl_bytes){in.p, (size_t)(in.end - in.p)};
        return in.bad || e->content.n != e->size ? TL_BAD : TL_OK;
    }
    const uint64_t n = tl_varint_get(&in);
    uint64_t at = 0;
    int r = e->kind == 'O' || e->kind == 'L' ? TL_OK : TL_BAD;
    for (uint64_t i = 0; r >= 0 && i < n && !in.bad; i++) {
        struct tl_extent x = {.from = at};
        x.session = tl_varint_get(&in);
        x.serial = tl_varint_get(&in);
        x.to = at + tl_varint_get(&in);
        r = x.to > at ? add_extent(e, &x) : TL_BAD;
        at = x.to;
    }
    return r < 0 ? r : in.bad || at != e->size ? TL_BAD : TL_OK;
}

int tl_entry_write(const struct tl_entry *e, struct tl_buf *out)
{
    int r = tl_buf_add(out, &e->kind, 1);
    if (r >= 0)
        r = tl_varint_add(out, e->size);
    if (r >= 0 && e->kind == 'I')
        return tl_buf_add(out, e->content.p, e->content.n);
    if (r >= 0)
        r = tl_varint_add(out, e->n);
    for (size_t i = 0; r >= 0 && i < e->n; i++) {
        r = tl_varint_add(out, e->extents[i].session);
        if (r >= 0)
            r = tl_varint_add(out, e->extents[i].serial);
        if (r >= 0)
            r = tl_varint_add(out, e->extents[i].to - e->extents[i].from);
    }
    return r;
}

static bool same_pieces(const struct tl_extent *a, const struct tl_extent *b)
{
    return a->session == b->session && a->serial == b->serial;
}

int tl_entry_place(struct tl_entry *e, const struct tl_extent *x)
{
    struct tl_entry now = {.kind = e->kind, .size = x->to > e->size ? x->to : e->size};
    int r = TL_OK;
    bool placed = x->from == x->to;
    for (size_t i = 0; r >= 0 && i <= e->n; i++) {
        struct tl_extent left = {0}, right = {0};
        if (i < e->n) {
            left = right = e->extents[i];
            left.to = left.to < x->from ? left.to : x->from;
            right.from = right.from > x->to ? right.from : x->to;
        }
        if (left.from < left.to)
            r = add_extent(&now, &left);
        if (r >= 0 && !placed && (i == e->n || e->extents[i].to > x->from)) {
            placed = true;
            struct tl_extent *const last = now.n ? &now.extents[now.n - 1] : NULL;
            if (last && same_pieces(last, x) && last->to == x->from)
                last->to = x->to;
            else
                r = add_extent(&now, x);
        }
        if (r >= 0 && right.from < right.to) {
            struct tl_extent *const last = now.n ? &now.extents[now.n - 1] : NULL;
            if (last && same_pieces(last, &right) && last->to == right.from)
                last->to = right.to;
            else
                r = add_extent(&now, &right);
        }
    }
    if (r < 0) {
        tl_entry_fini(&now);
        return r;
    }
    free(e->extents);
    *e = now;
    return TL_OK;
}

void tl_entry_cut(struct tl_entry *e, uint64_t size)
{
    while (e->n > 0 && e->extents[e->n - 1].from >= size)
        e->n--;
    if (e->n > 0 && e->extents[e->n - 1].to > size)
        e->extents[e->n - 1].to = size;
    if (e->size > size)
        e->size = size;
}

char *tl_entry_key(char out[static TL_ENTRY_KEY], const char *key)
{
    snprintf(out, TL_ENTRY_KEY, "k/%s", key);
    return out;
}

int tl_entry_get(struct tl_rados *r, const char *key, struct tl_buf *value, struct tl_entry *entry,
                 struct tl_fail *fail)
{
    char name[TL_ENTRY_KEY];
    tl_buf_reset(value);
    tl_entry_fini(entry);
    int rc = tl_index_get(r, tl_key_owner(key), tl_entry_key(name, key), value, fail);
    if (rc == TL_NOTFOUND)
        return tl_fail_set(fail, TL_NOTFOUND, "%s is not in the store", key);
    if (rc < 0)
        return rc;
    rc = tl_entry_parse(entry, (struct tl_bytes){value->p, value->n});
    if (rc == TL_NOMEM)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    return rc < 0 ? tl_fail_set(fail, TL_IO, "the index entry of %s is damaged", key) : TL_OK;
}

/* ---- names and intents ---------------------------------------------------------------------- */

struct tl_extent tl_piece_new(struct tl_rados *r, uint64_t from, uint64_t to)
{
    return (struct tl_extent){r->session, atomic_fetch_add(&r->serial, 1), from, to};
}

static char *piece_name(char out[static 64], const struct tl_extent *x, uint64_t piece)
{
    snprintf(out, 64, "d.%llx.%llx.%llx", (unsigned long long)x->session,
             (unsigned long long)x->serial, (unsigned long long)piece);
    return out;
}

static char *intent_key(char out[static 48], const struct tl_extent *x)
{
    snprintf(out, 48, "g/%llx.%llx", (unsigned long long)x->session, (unsigned long long)x->serial);
    return out;
}

void tl_intent_set(struct tl_change *change, const struct tl_extent *x)
{
    char key[48], value[48];
    snprintf(value, sizeof value, "%llx %llx", (unsigned long long)x->from,
             (unsigned long long)x->to);
    tl_change_set(change, intent_key(key, x), tl_text(value));
}

void tl_intent_remove(struct tl_change *change, const struct tl_extent *x)
{
    char key[48];
    tl_change_remove(change, intent_key(key, x));
}

void tl_intent_expect(struct tl_change *change, const struct tl_extent *x)
{
    char key[48];
    tl_change_expect_any(change, intent_key(key, x));
}

bool tl_intent_gone(struct tl_rados *r, struct tl_bytes owner, const struct tl_extent *x)
{
    struct tl_buf value = {0};
    char key[48];
    const int rc = tl_index_get(r, owner, intent_key(key, x), &value, NULL);
    tl_buf_fini(&value);
    return rc == TL_NOTFOUND;
}

static bool names(const struct tl_entry *e, const struct tl_extent *x)
{
    for (size_t i = 0; e && i < e->n; i++)
        if (same_pieces(&e->extents[i], x))
            return true;
    return false;
}

/* The extent at `i`, extended over all extents with its name in the entry, if it is the first with
 * its name and `after` has none. */
static bool dropped(const struct tl_entry *before, size_t i, const struct tl_entry *after,
                    struct tl_extent *out)
{
    *out = before->extents[i];
    for (size_t j = 0; j < i; j++)
        if (same_pieces(&before->extents[j], out))
            return false;
    for (size_t j = i + 1; j < before->n; j++)
        if (same_pieces(&before->extents[j], out))
            out->to = before->extents[j].to;
    return !names(after, out);
}

void tl_pieces_drop(struct tl_change *change, const struct tl_entry *before,
                    const struct tl_entry *after)
{
    struct tl_extent x;
    for (size_t i = 0; i < before->n; i++)
        if (dropped(before, i, after, &x))
            tl_intent_set(change, &x);
}

/* A log's writer may have written beyond its entry, with gaps from concurrent writes. */
#define BEYOND (2 * TL_FLIGHT)

/* Remove the pieces of a name within the extent, and those after it until there are none. Returns <
 * 0 on failure. */
static int remove_pieces(struct tl_rados *r, const struct tl_extent *x)
{
    const uint64_t end = (x->to + TL_PIECE_BYTES - 1) / TL_PIECE_BYTES;
    unsigned missing = 0;
    for (uint64_t piece = x->from / TL_PIECE_BYTES; piece < end || missing < BEYOND; piece++) {
        char oid[64];
        const rados_write_op_t op = tl_librados.create_write_op();
        tl_librados.write_op_remove(op);
        const int rc = tl_rados_write(r, piece_name(oid, x, piece), op);
        if (rc < 0 && rc != -ENOENT)
            return rc;
        missing = rc == -ENOENT ? missing + 1 : 0;
        if (piece >= end && x->session == r->session && missing)
            break; /* our own writer has ended: there are no gaps */
    }
    return 0;
}

static void discard(struct tl_rados *r, struct tl_bytes owner, const struct tl_extent *x)
{
    struct tl_change change;
    if (remove_pieces(r, x) < 0 || tl_change_begin(&change, r, owner, NULL) < 0)
        return;
    tl_intent_remove(&change, x);
    (void)!tl_change_commit(&change, NULL);
}

void tl_pieces_discard(struct tl_rados *r, struct tl_bytes owner, const struct tl_entry *before,
                       const struct tl_entry *after)
{
    struct tl_extent x;
    for (size_t i = 0; i < before->n; i++)
        if (dropped(before, i, after, &x))
            discard(r, owner, &x);
}

struct sweep {
    struct tl_rados *r;
    struct tl_buf intents; /* array of struct tl_extent */
};

static int take_intent(void *context, const char *key, struct tl_bytes value)
{
    struct sweep *s = context;
    unsigned long long session, serial, from, to;
    char text[48];
    snprintf(text, sizeof text, "%.*s", (int)value.n, (const char *)value.p);
    if (sscanf(key, "g/%llx.%llx", &session, &serial) != 2 ||
        sscanf(text, "%llx %llx", &from, &to) != 2 || session == s->r->session)
        return TL_OK;
    const struct tl_extent x = {session, serial, from, to};
    return tl_buf_add(&s->intents, &x, sizeof x);
}

static int by_session(const void *a, const void *b)
{
    const struct tl_extent *const x = a, *const y = b;
    return (x->session > y->session) - (x->session < y->session);
}

/* Remove the pieces of an intent, and the intent, which is in the index object of its owner,
 * whichever that is. */
static int sweep_one(struct tl_rados *r, const struct tl_extent *x, struct tl_fail *fail)
{
    struct tl_flight flight = {0};
    char key[48];
    const int rc = remove_pieces(r, x);
    if (rc < 0)
        return tl_rados_refused(fail, rc, "remove", "pieces that a stopped server has left");
    for (unsigned at = 0; at < r->n_index; at++) { /* only one object has the key */
        char oid[24];
        const rados_write_op_t op = tl_librados.create_write_op();
        tl_op_remove(op, intent_key(key, x));
        tl_flight_write(&flight, r, tl_index_at(oid, at), op);
    }
    const int done = tl_flight_land(&flight);
    return done < 0 ? tl_rados_refused(fail, done, "change", "the index") : TL_OK;
}

int tl_pieces_sweep(struct tl_rados *r, struct tl_fail *fail)
{
    struct sweep s = {.r = r};
    int result = tl_index_scan_all(r, "g/", take_intent, &s, fail);
    struct tl_extent *const all = (struct tl_extent *)s.intents.p;
    const size_t n = s.intents.n / sizeof *all;
    if (n > 0)
        qsort(all, n, sizeof *all, by_session);
    for (size_t i = 0, end; result >= 0 && i < n; i = end) {
        for (end = i + 1; end < n && all[end].session == all[i].session;)
            end++;
        const int over = tl_rados_is_over(r, all[i].session);
        if (over < 0)
            result = tl_rados_refused(fail, over, "look for", "servers that have stopped");
        for (size_t k = i; result >= 0 && over > 0 && k < end; k++)
            result = sweep_one(r, &all[k], fail);
        if (result >= 0 && over > 0)
            tl_rados_bury(r, all[i].session);
    }
    tl_buf_fini(&s.intents);
    return result;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

void tl_pieces_write(struct tl_flight *flight, struct tl_rados *r, const struct tl_extent *x,
                     uint64_t offset, const struct tl_bytes *parts, size_t n_parts)
{
    rados_write_op_t op = NULL;
    uint64_t piece = 0;
    char oid[64];
    for (size_t i = 0; i < n_parts; i++) {
        struct tl_bytes rest = parts[i];
        while (rest.n > 0) {
            if (op && offset / TL_PIECE_BYTES != piece) {
                tl_flight_write(flight, r, piece_name(oid, x, piece), op);
                op = NULL;
            }
            piece = offset / TL_PIECE_BYTES;
            if (!op)
                op = tl_librados.create_write_op();
            const uint64_t at = offset % TL_PIECE_BYTES;
            const size_t n = rest.n < TL_PIECE_BYTES - at ? rest.n : (size_t)(TL_PIECE_BYTES - at);
            tl_librados.write_op_write(op, (const char *)rest.p, n, at);
            rest.p += n;
            rest.n -= n;
            offset += n;
        }
    }
    if (op)
        tl_flight_write(flight, r, piece_name(oid, x, piece), op);
}

struct part {
    size_t wanted, got;
    int rval;
};

/* Read with a flight, that may have other operations. `*rc` receives the result of librados. */
static int read_with(struct tl_flight *flight, struct tl_rados *r, const struct tl_entry *e,
                     uint64_t offset, size_t n, struct tl_buf *out, int *rc)
{
    const uint64_t end = offset + n;
    const size_t most = n / TL_PIECE_BYTES + 2 + 2 * e->n;
    struct part *const parts = calloc(most, sizeof(*parts));
    size_t n_parts = 0;
    if (!parts || tl_buf_reserve(out, n) < 0) {
        free(parts);
        *rc = tl_flight_land(flight);
        return TL_NOMEM;
    }
    for (size_t i = 0; i < e->n; i++) {
        const struct tl_extent *const x = &e->extents[i];
        uint64_t at = offset > x->from ? offset : x->from;
        const uint64_t to = end < x->to ? end : x->to;
        while (at < to) {
            const uint64_t within = at % TL_PIECE_BYTES;
            const uint64_t left = TL_PIECE_BYTES - within;
            struct part *const part = &parts[n_parts++];
            char oid[64];
            part->wanted = (size_t)(to - at < left ? to - at : left);
            const rados_read_op_t op = tl_librados.create_read_op();
            tl_librados.read_op_read(op, within, part->wanted,
                                     (char *)out->p + out->n + (at - offset), &part->got,
                                     &part->rval);
            tl_flight_read(flight, r, piece_name(oid, x, at / TL_PIECE_BYTES), op);
            at += part->wanted;
        }
    }
    *rc = tl_flight_land(flight);
    for (size_t i = 0; *rc >= 0 && i < n_parts; i++)
        *rc = parts[i].rval < 0 ? parts[i].rval : parts[i].got < parts[i].wanted ? -EIO : 0;
    free(parts);
    return TL_OK;
}

int tl_pieces_read(struct tl_rados *r, const struct tl_entry *e, uint64_t offset, size_t n,
                   struct tl_buf *out, const char *key, struct tl_fail *fail)
{
    struct tl_flight flight = {0};
    int rc;
    if (read_with(&flight, r, e, offset, n, out, &rc) < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory for %zu bytes of %s", n, key);
    if (rc < 0)
        return tl_rados_refused(fail, rc, "read", key);
    out->n += n;
    return TL_OK;
}

bool tl_pieces_read_known(struct tl_rados *r, const char *key, const struct tl_buf *value,
                          const struct tl_entry *e, uint64_t offset, size_t n, struct tl_buf *out)
{
    struct tl_flight flight = {0};
    struct tl_omap_value now;
    struct tl_buf current = {0};
    char oid[24], name[TL_ENTRY_KEY];
    int rc;
    tl_entry_key(name, key);
    tl_omap_begin(&now, &flight, r, tl_index_of(oid, r, tl_key_owner(key)), name);
    const int result = read_with(&flight, r, e, offset, n, out, &rc);
    const bool same = tl_omap_end(&now, rc, name, &current, NULL) >= 0 && result >= 0 &&
                      current.n == value->n && memcmp(current.p, value->p, value->n) == 0;
    tl_buf_fini(&current);
    out->n += same ? n : 0;
    return same;
}
