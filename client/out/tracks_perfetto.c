/* SPDX-License-Identifier: MIT */
/*
 * Tracks as Perfetto's protobuf trace: a packet for each event, encoded here field by field, since
 * only a handful of the format's hundreds of messages is needed. Names of functions are sent once
 * and then told by number; when there are many, the numbers begin anew.
 *
 * Source: Perfetto, "Synthetic TrackEvent", and the messages TracePacket, TrackDescriptor,
 * TrackEvent, InternedData and DebugAnnotation.
 */
#include "base/hash.h"
#include "base/pbfield.h"
#include "base/utf8.h"
#include "out/trackforms.h"

#include <stdlib.h>
#include <string.h>

#define SEQUENCE 1
#define PID      1
#define NAMES    65536 /* told by number at a time */
#define CLEARED  1
#define NEEDED   2

enum { /* fields */
       TRACE_PACKET = 1,
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_EVENT = 11,
       PACKET_INTERNED = 12,
       PACKET_FLAGS = 13,
       PACKET_TRACK = 60,
       PACKET_FIRST = 87,
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_THREAD = 4,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,
       PROCESS_PID = 1,
       PROCESS_NAME = 6,
       THREAD_PID = 1,
       THREAD_TID = 2,
       THREAD_NAME = 5,
       EVENT_CATEGORY = 3,
       EVENT_NOTE = 4,
       EVENT_TYPE = 9,
       EVENT_NAME_NUMBER = 10,
       EVENT_TRACK = 11,
       EVENT_NAME = 23,
       EVENT_VALUE = 44,
       INTERNED_CATEGORIES = 1,
       INTERNED_NAMES = 2,
       INTERNED_NOTES = 3,
       INTERNED_NUMBER = 1,
       INTERNED_NAME = 2,
       NOTE_NAME = 1,
       NOTE_NUMBER = 3,
       NOTE_ADDRESS = 7
};
static const uint8_t types[] = {
    [TL_TRACK_BEGIN] = 1, [TL_TRACK_END] = 2, [TL_TRACK_MARK] = 3, [TL_TRACK_VALUE] = 4};

/* ---- fields ---------------------------------------------------------------------------------- */

static int put_varint(struct tl_buf *b, uint64_t value)
{
    const int r = tl_buf_reserve(b, TL_PB_VARINT_MAX);
    if (r >= 0)
        b->n += tl_pb_put_varint(b->p + b->n, value);
    return r;
}

static int put_number(struct tl_buf *b, unsigned field, uint64_t value)
{
    const int r = put_varint(b, TL_PB_KEY(field, TL_PB_VARINT));
    return r < 0 ? r : put_varint(b, value);
}

static int put_bytes(struct tl_buf *b, unsigned field, const void *p, size_t n)
{
    int r = put_varint(b, TL_PB_KEY(field, TL_PB_BYTES));
    if (r >= 0)
        r = put_varint(b, n);
    return r < 0 ? r : tl_buf_add(b, p, n);
}

/* A text, in which what is no UTF-8 becomes "?". */
static int put_text(struct tl_buf *b, unsigned field, const char *text)
{
    const size_t n = strlen(text);
    int r = put_bytes(b, field, text, n);
    if (r >= 0)
        r = tl_buf_reserve(b, 1);
    if (r < 0)
        return r;
    b->p[b->n] = 0;
    tl_utf8_clean((char *)b->p + b->n - n);
    return r;
}

static int put_double(struct tl_buf *b, unsigned field, double value)
{
    uint8_t bytes[8];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    const int r = put_varint(b, TL_PB_KEY(field, TL_PB_FIXED64));
    return r < 0 ? r : tl_buf_add(b, bytes, sizeof bytes);
}

static int put_message(struct tl_buf *b, unsigned field, const struct tl_buf *message)
{
    return put_bytes(b, field, message->p, message->n);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* Put the packet that has been begun in t->packet into the file, with its state. */
static int end_packet(struct tl_tracks *t)
{
    int r = put_number(&t->packet, PACKET_SEQUENCE, SEQUENCE);
    if (r >= 0)
        r = put_number(&t->packet, PACKET_FLAGS, t->clear ? NEEDED | CLEARED : NEEDED);
    if (r >= 0 && !t->begun)
        r = put_number(&t->packet, PACKET_FIRST, 1);
    if (r >= 0)
        r = put_message(&t->out, TRACE_PACKET, &t->packet);
    tl_buf_reset(&t->packet);
    t->begun = true;
    t->clear = false;
    return r;
}

static int put_thread(struct tl_tracks *t, uint64_t tid, const char *name)
{
    int r = put_number(&t->part, THREAD_PID, PID);
    if (r >= 0)
        r = put_number(&t->part, THREAD_TID, tid);
    return r < 0 ? r : put_text(&t->part, THREAD_NAME, name);
}

static uint64_t uuid_of(uint32_t track)
{
    return track + 2; /* 1: the process */
}

/* The track that the fields in t->event describe; t->part is that of `field`. */
static int end_track(struct tl_tracks *t, uint64_t uuid, unsigned field)
{
    int r = put_number(&t->event, TRACK_UUID, uuid);
    if (r >= 0 && field)
        r = put_message(&t->event, field, &t->part);
    if (r >= 0)
        r = put_message(&t->packet, PACKET_TRACK, &t->event);
    tl_buf_reset(&t->part);
    tl_buf_reset(&t->event);
    return r < 0 ? r : end_packet(t);
}

static int put_head(struct tl_tracks *t)
{
    t->clear = true;
    int r = put_number(&t->part, PROCESS_PID, PID);
    if (r >= 0)
        r = put_text(&t->part, PROCESS_NAME, t->process);
    return r < 0 ? r : end_track(t, 1, TRACK_PROCESS);
}

static int put_track(struct tl_tracks *t, uint32_t number)
{
    const enum tl_track_kind kind = t->kinds[number];
    int r;
    if (kind == TL_TRACK_STACK) {
        r = put_thread(t, number + 2, t->names[number]); /* thread 1 would be the process's own */
        return r < 0 ? r : end_track(t, uuid_of(number), TRACK_THREAD);
    }
    r = put_number(&t->event, TRACK_PARENT, kind == TL_TRACK_PART ? uuid_of(t->stack) : 1);
    if (r >= 0)
        r = put_text(&t->event, TRACK_NAME, t->names[number]);
    return r < 0 ? r : end_track(t, uuid_of(number), kind == TL_TRACK_COUNTER ? TRACK_COUNTER : 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Get the number of a text of a list; sent with this packet if it is new. */
static int number_of(struct tl_tracks *t, unsigned list, const char *text, uint64_t *out)
{
    const uint64_t key = tl_mix64(tl_fnv_text(text) + list);
    uint32_t number = tl_numbers_find(&t->texts, key);
    *out = number + UINT64_C(1);
    if (number != TL_NO_NUMBER)
        return TL_OK;
    *out = t->texts.n + UINT64_C(1);
    int r = tl_numbers_add(&t->texts, key);
    if (r >= 0)
        r = put_number(&t->part, INTERNED_NUMBER, *out);
    if (r >= 0)
        r = put_text(&t->part, INTERNED_NAME, text);
    if (r >= 0)
        r = put_message(&t->interned, list, &t->part);
    tl_buf_reset(&t->part);
    return r;
}

static int put_numbered(struct tl_tracks *t, unsigned list, unsigned field, const char *text)
{
    uint64_t number;
    const int r = number_of(t, list, text, &number);
    return r < 0 ? r : put_number(&t->event, field, number);
}

static int put_note(struct tl_tracks *t, const char *name, unsigned field, uint64_t value)
{
    uint64_t number;
    int r = number_of(t, INTERNED_NOTES, name, &number);
    if (r >= 0)
        r = put_number(&t->part, NOTE_NAME, number);
    if (r >= 0)
        r = put_number(&t->part, field, value);
    if (r >= 0)
        r = put_message(&t->event, EVENT_NOTE, &t->part);
    tl_buf_reset(&t->part);
    return r;
}

/* What a slice or mark is. */
static int put_names(struct tl_tracks *t, const struct tl_track_event *event)
{
    int r = event->unique ? put_text(&t->event, EVENT_NAME, event->name)
                          : put_numbered(t, INTERNED_NAMES, EVENT_NAME_NUMBER, event->name);
    if (r >= 0 && event->kind)
        r = put_numbered(t, INTERNED_CATEGORIES, EVENT_CATEGORY, event->kind);
    if (r >= 0 && event->has_position)
        r = put_note(t, "position", NOTE_NUMBER, event->position);
    if (r >= 0 && event->has_pc)
        r = put_note(t, "pc", NOTE_ADDRESS, event->pc);
    return r;
}

static int put_event(struct tl_tracks *t, const struct tl_track_event *event)
{
    if (t->texts.n >= NAMES) {
        tl_numbers_reset(&t->texts);
        t->clear = true;
    }
    int r = put_number(&t->event, EVENT_TYPE, types[event->what]);
    if (r >= 0)
        r = put_number(&t->event, EVENT_TRACK, uuid_of(event->track));
    if (r >= 0 && event->what == TL_TRACK_VALUE)
        r = put_double(&t->event, EVENT_VALUE, event->value);
    else if (r >= 0 && event->what != TL_TRACK_END)
        r = put_names(t, event);
    if (r >= 0)
        r = put_number(&t->packet, PACKET_TIMESTAMP, event->time);
    if (r >= 0 && t->interned.n)
        r = put_message(&t->packet, PACKET_INTERNED, &t->interned);
    if (r >= 0)
        r = put_message(&t->packet, PACKET_EVENT, &t->event);
    tl_buf_reset(&t->interned);
    tl_buf_reset(&t->event);
    return r < 0 ? r : end_packet(t);
}

static int put_foot(struct tl_tracks *t)
{
    (void)t;
    return TL_OK;
}

const struct tl_tracks_ops tl_tracks_perfetto = {put_head, put_track, put_event, put_foot};
