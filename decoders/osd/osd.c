/* SPDX-License-Identifier: MIT */
/*
 * The DI container: packets to events to flow items, one stream per module that sends events.
 *
 * A module that nobody has declared (no setup, no enumeration) is believed only when it has sent a
 * second event: a single changed address word must not make a stream.
 */
#include "decode/ops.h"
#include "osd/reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 1024
#define BATCH       64
#define NO_MODE     UINT64_MAX

static const char TOO_MANY[] = "too many modules";
static const char UNDECLARED[] = "single event of an unknown module";
static const char MISFIT[] = "event of unknown shape, or its beginning is lost";

struct osd;

/* A stream, the `user` of a module. */
struct lane {
    struct osd *owner;
    struct tl_decode_stream stream;
    char name[32];
    bool believed;    /* announced */
    bool waiting;     /* `first` is kept until it is believed */
    bool transport;   /* bytes were lost before its next event */
    bool timed;       /* `time` is valid */
    bool at_least;    /* `missed` saturated */
    uint64_t lost_at; /* offset of the transport loss */
    uint64_t time;    /* ticks, unwrapped */
    uint64_t mode;    /* the last one delivered, or NO_MODE */
    uint64_t missed;  /* events lost to overflow and not yet told */
    uint64_t missed_at;
    struct tl_osd_event first;
    size_t n_items;
    struct tl_item items[BATCH];
    uint8_t payload[BATCH][8];
};

struct osd {
    struct tl_decode base;
    const struct tl_setup *setup;
    struct tl_decode_sink sink;
    struct tl_di di;
    struct tl_osd_reader reader;
    uint32_t n_streams;
    unsigned n_lanes;
    bool has_items; /* some lane has items to deliver at the end of the push */
};

/* ---- delivery --------------------------------------------------------------------------- */

static int tell_loss(const struct osd *osd, const struct lane *lane, const char *reason,
                     uint64_t offset, uint64_t bytes)
{
    const struct tl_decode_loss loss = {
        .stream = lane && lane->believed ? &lane->stream : NULL,
        .reason = reason,
        .offset = offset,
        .bytes = bytes,
        .fault = true,
    };
    return osd->sink.loss ? osd->sink.loss(osd->sink.context, &loss) : TL_OK;
}

static int deliver(struct lane *lane)
{
    const struct tl_decode_sink *const sink = &lane->owner->sink;
    const size_t n = lane->n_items;
    lane->n_items = 0;
    if (n == 0 || !sink->items)
        return TL_OK;
    return sink->items(sink->context, &lane->stream, lane->items, n);
}

/* An item to fill; the batch has room for `n`. */
static int make_room(struct lane *lane, size_t n)
{
    lane->owner->has_items = true;
    return lane->n_items + n > BATCH ? deliver(lane) : TL_OK;
}

static struct tl_item *add(struct lane *lane, enum tl_item_kind kind, uint64_t offset)
{
    assert(lane->n_items < BATCH);
    struct tl_item *const item = &lane->items[lane->n_items++];
    *item = (struct tl_item){.kind = (uint8_t)kind, .offset = offset};
    return item;
}

/* ---- lanes ------------------------------------------------------------------------------ */

static enum tl_protocol protocol_of(uint8_t type)
{
    switch (type) {
    case TL_OSD_CTM:
        return TL_PROTO_OSD_CTM;
    case TL_OSD_STM:
        return TL_PROTO_OSD_STM;
    case TL_OSD_UART:
        return TL_PROTO_OSD_UART;
    default:
        return TL_PROTO_OSD_OTHER;
    }
}

/* The module's lane, made on first use; *out is NULL when there are too many. */
static int lane_of(struct osd *osd, struct tl_osd_module *m, struct lane **out)
{
    *out = m->user;
    if (m->user || osd->n_lanes == MAX_STREAMS)
        return TL_OK;
    struct lane *const lane = calloc(1, sizeof *lane);
    if (!lane)
        return TL_NOMEM;
    osd->n_lanes++;
    lane->owner = osd;
    lane->mode = NO_MODE;
    m->user = *out = lane;
    return TL_OK;
}

static int announce(struct osd *osd, struct lane *lane, const struct tl_osd_event *e)
{
    const struct tl_source *const source = tl_setup_source(osd->setup, e->src);
    if (source && source->name[0])
        snprintf(lane->name, sizeof lane->name, "%s", source->name);
    else
        snprintf(lane->name, sizeof lane->name, "di.%u.%u", e->src >> 10, e->src & 0x3ff);
    lane->stream = (struct tl_decode_stream){
        .index = osd->n_streams++,
        .name = lane->name,
        .protocol = protocol_of(e->type),
        .source = source,
    };
    lane->believed = true;
    return osd->sink.stream ? osd->sink.stream(osd->sink.context, &lane->stream) : TL_OK;
}

/* ---- events to items -------------------------------------------------------------------- */

static void add_missed(struct lane *lane)
{
    struct tl_item *const item = add(lane, TL_ITEM_GAP, lane->missed_at);
    item->sub = TL_GAP_OVERFLOW;
    item->value = lane->missed;
    item->flags = TL_ITEM_HAS_VALUE;
    if (lane->at_least)
        item->flags |= TL_ITEM_AT_LEAST;
    lane->missed = 0;
    lane->at_least = false;
}

static void add_transport(struct lane *lane)
{
    struct tl_item *const item = add(lane, TL_ITEM_GAP, lane->lost_at);
    item->sub = TL_GAP_TRANSPORT;
    lane->transport = false;
}

/*
 * Ticks have 32 bits and never go back but by a wrap. After more than half of one there may have
 * been others, unseen.
 */
static void add_time(struct lane *lane, uint32_t ticks, uint64_t offset)
{
    const uint32_t step = ticks - (uint32_t)lane->time;
    if (lane->timed && step == 0)
        return;
    if (lane->timed && step > INT32_MAX)
        add(lane, TL_ITEM_NOTE, offset)->text = "time ambiguous";
    lane->time = lane->timed ? lane->time + step : ticks;
    lane->timed = true;
    struct tl_item *const item = add(lane, TL_ITEM_TIME, offset);
    item->value = lane->time;
    item->flags = TL_ITEM_HAS_VALUE;
}

static uint64_t mode_of(const struct lane *lane, const struct tl_osd_event *e)
{
    const struct tl_source *const source = lane->stream.source;
    if (source && (strcasestr(source->core, "or1k") || strcasestr(source->core, "openrisc")))
        return tl_mode(TL_ARCH_OR1K, e->mode, TL_SEC_NONE, TL_ISA_OR1K);
    const enum tl_isa isa = e->width == 64   ? TL_ISA_RV64
                            : e->width == 32 ? TL_ISA_RV32
                                             : TL_ISA_NONE;
    return tl_mode(TL_ARCH_RISCV, e->mode, TL_SEC_NONE, isa);
}

/*
 * The one place where a change of flow becomes an item: where an image is at hand, the instruction
 * at pc can be put in front of it.
 */
static void add_branch(struct lane *lane, const struct tl_osd_event *e)
{
    struct tl_item *const item = add(lane, TL_ITEM_BRANCH, e->offset);
    item->pc = e->pc;
    item->value = e->npc;
    item->flags = TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE;
    if (e->call)
        item->flags |= TL_ITEM_CALL;
    if (e->ret)
        item->flags |= TL_ITEM_RETURN;
}

static void add_core_event(struct lane *lane, const struct tl_osd_event *e)
{
    const uint64_t mode = mode_of(lane, e);
    if (e->modechange || mode != lane->mode) {
        struct tl_item *const item = add(lane, TL_ITEM_MODE, e->offset);
        item->value = lane->mode = mode;
        item->flags = TL_ITEM_HAS_VALUE;
    }
    /* In a pure change of mode pc and npc are what the port happened to hold. */
    if (!e->modechange || e->call || e->ret)
        add_branch(lane, e);
}

static void add_software(struct lane *lane, const struct tl_osd_event *e, const char *name,
                         unsigned bytes)
{
    uint8_t *const payload = lane->payload[lane->n_items];
    tl_put_le64(payload, e->value);
    struct tl_item *const item = add(lane, TL_ITEM_SOFTWARE, e->offset);
    item->name = name;
    item->data = payload;
    item->n = bytes;
    if (e->kind == TL_OSD_SYSTEM_EVENT) {
        item->pc = e->id;
        item->flags = TL_ITEM_HAS_PC;
    }
}

static int add_event(struct lane *lane, const struct tl_osd_event *e)
{
    const int rc = make_room(lane, 6);
    if (rc < 0)
        return rc;
    if (lane->transport && lane->missed)
        add_missed(lane);
    if (lane->transport)
        add_transport(lane);
    if (e->kind == TL_OSD_OVERFLOW) {
        if (lane->missed == 0)
            lane->missed_at = e->offset;
        lane->missed += e->value;
        lane->at_least = lane->at_least || e->value == UINT16_MAX;
        return TL_OK;
    }
    if (lane->missed)
        add_missed(lane);
    switch (e->kind) {
    case TL_OSD_CORE_EVENT:
        add_time(lane, e->time, e->offset);
        add_core_event(lane, e);
        break;
    case TL_OSD_SYSTEM_EVENT:
        add_time(lane, e->time, e->offset);
        add_software(lane, e, "osd-stm", e->width / 8u);
        break;
    case TL_OSD_CHARACTER:
        add_software(lane, e, "uart", 1);
        break;
    case TL_OSD_STALL:
        add(lane, TL_ITEM_NOTE, e->offset)->text = e->value ? "core stalled" : "core running";
        break;
    default:
        break;
    }
    return TL_OK;
}

static bool has_items(const struct tl_osd_event *e)
{
    switch (e->kind) {
    case TL_OSD_CORE_EVENT:
    case TL_OSD_SYSTEM_EVENT:
    case TL_OSD_CHARACTER:
    case TL_OSD_STALL:
        return true;
    case TL_OSD_OVERFLOW:
        return e->type == TL_OSD_CTM || e->type == TL_OSD_STM;
    default:
        return false;
    }
}

static int take_event(struct osd *osd, struct tl_osd_module *m, const struct tl_osd_event *e)
{
    struct lane *lane;
    int rc = lane_of(osd, m, &lane);
    if (rc < 0)
        return rc;
    if (!lane)
        return tell_loss(osd, NULL, TOO_MANY, e->offset, 0);
    if (!lane->believed) {
        if (!m->declared && !lane->waiting) {
            lane->first = *e;
            lane->waiting = true;
            return TL_OK;
        }
        rc = announce(osd, lane, e);
        if (rc == TL_OK && lane->waiting)
            rc = add_event(lane, &lane->first);
        lane->waiting = false;
    }
    return rc < 0 ? rc : add_event(lane, e);
}

static int on_packet(void *context, const struct tl_di_packet *packet)
{
    struct osd *const osd = context;
    struct tl_osd_event event;
    struct tl_osd_module *m;
    int rc = tl_osd_read(&osd->reader, packet, &event, &m);
    if (rc < 0)
        return rc;
    if (osd->sink.packet) {
        char line[512];
        const struct lane *const lane = m->user;
        tl_osd_line(line, sizeof line, packet, &event);
        rc = osd->sink.packet(osd->sink.context, lane && lane->believed ? &lane->stream : NULL,
                              line);
        if (rc < 0)
            return rc;
    }
    if (has_items(&event))
        return take_event(osd, m, &event);
    if (event.kind == TL_OSD_MISFIT)
        return tell_loss(osd, m->user, MISFIT, packet->offset, 2 * (1 + (uint64_t)packet->n));
    if (event.kind == TL_OSD_REGISTER)
        tl_di_set_max_words(&osd->di, osd->reader.max_pkt_len);
    return TL_OK;
}

static int mark_loss(void *context, struct tl_osd_module *m)
{
    struct lane *const lane = m->user;
    if (lane && !lane->transport) {
        lane->transport = true;
        lane->lost_at = *(const uint64_t *)context;
    }
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct osd *const osd = context;
    tl_osd_reader_lost(&osd->reader);
    (void)tl_osd_each_module(&osd->reader, mark_loss, &offset);
    return tell_loss(osd, NULL, reason, offset, bytes);
}

/* ---- tl_decode_ops ---------------------------------------------------------------------- */

static int free_lane(void *context, struct tl_osd_module *m)
{
    free(m->user);
    return TL_OK;
}

static void destroy(struct tl_decode *decode)
{
    struct osd *const osd = (struct osd *)decode;
    if (!osd)
        return;
    (void)tl_osd_each_module(&osd->reader, free_lane, NULL);
    tl_osd_reader_fini(&osd->reader);
    tl_di_fini(&osd->di);
    free(osd);
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct osd *const osd = calloc(1, sizeof *osd);
    if (!osd)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    osd->base.ops = &tl_osd_ops;
    osd->setup = setup;
    osd->sink = *sink;
    const int rc = tl_osd_reader_init(&osd->reader, setup);
    const struct tl_di_sink packets = {osd, on_packet, on_loss};
    tl_di_init(&osd->di, 0, osd->reader.max_pkt_len, &packets);
    if (rc < 0) {
        destroy(&osd->base);
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    *out = &osd->base;
    return TL_OK;
}

static int deliver_lane(void *context, struct tl_osd_module *m)
{
    return m->user && ((struct lane *)m->user)->n_items ? deliver(m->user) : TL_OK;
}

static int deliver_all(struct osd *osd)
{
    if (!osd->has_items)
        return TL_OK;
    osd->has_items = false;
    return tl_osd_each_module(&osd->reader, deliver_lane, NULL);
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct osd *const osd = (struct osd *)decode;
    const int rc = tl_di_push(&osd->di, p, n);
    return rc < 0 ? rc : deliver_all(osd);
}

/* What waited for more: gaps, and the only event of a module where no module was ever declared. */
static int finish_lane(void *context, struct tl_osd_module *m)
{
    struct osd *const osd = context;
    struct lane *const lane = m->user;
    if (!lane)
        return TL_OK;
    int rc = TL_OK;
    if (lane->waiting) {
        lane->waiting = false;
        if (osd->reader.any_declared)
            return tell_loss(osd, NULL, UNDECLARED, lane->first.offset, 0);
        rc = announce(osd, lane, &lane->first);
        if (rc == TL_OK)
            rc = add_event(lane, &lane->first);
    }
    if (rc == TL_OK)
        rc = make_room(lane, 2);
    if (rc < 0 || !lane->believed)
        return rc;
    if (lane->missed)
        add_missed(lane);
    if (lane->transport)
        add_transport(lane);
    return TL_OK;
}

static int finish(struct tl_decode *decode)
{
    struct osd *const osd = (struct osd *)decode;
    int rc = tl_di_finish(&osd->di);
    if (rc == TL_OK)
        rc = tl_osd_each_module(&osd->reader, finish_lane, osd);
    return rc < 0 ? rc : deliver_all(osd);
}

const struct tl_decode_ops tl_osd_ops = {"di", create, push, finish, destroy};
