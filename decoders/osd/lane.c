/* SPDX-License-Identifier: MIT */
/*
 * Usual events of a module whose format is known are converted straight from the packet's words,
 * branch-free, since modules alternate unpredictably; all others go through the complete reader. An
 * event of core trace contains both ends of a jump, so no program has to be followed.
 */
#include "osd/lane.h"

#include "base/cancel.h"

#include <assert.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_MODE     UINT64_MAX
#define EVENT_ITEMS 8 /* maximum items per event */
#define PRIVILEGE   ((uint64_t)3 << 8)

/* CTM flags word. A shift converts them to item flags. */
enum { RET = 4, CALL = 8 };
static_assert(CALL << 1 == TL_ITEM_CALL && RET << 3 == TL_ITEM_RETURN, "as the shifts below");

struct tl_osd_lane *tl_osd_lane_new(const struct tl_decode_sink *sink, const struct tl_setup *setup,
                                    const struct tl_image *image, struct tl_block_cache *blocks)
{
    struct tl_osd_lane *const lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->sink = sink;
    lane->setup = setup;
    lane->image = image;
    lane->blocks = blocks;
    lane->mode = NO_MODE;
    return lane;
}

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

void tl_osd_lane_believe(struct tl_osd_lane *lane, uint16_t address, uint8_t type, uint32_t index)
{
    const struct tl_source *const source = tl_setup_source(lane->setup, address);
    if (source && source->name[0])
        snprintf(lane->name, sizeof lane->name, "%s", source->name);
    else
        snprintf(lane->name, sizeof lane->name, "di.%u.%u", address >> 10, address & 0x3ff);
    lane->stream = (struct tl_decode_stream){
        .index = index,
        .name = lane->name,
        .protocol = protocol_of(type),
        .source = source,
        .isa = tl_source_isa(protocol_of(type), source),
    };
    lane->type = type;
    lane->believed = true;
}

int tl_osd_lane_announce(struct tl_osd_lane *lane)
{
    const struct tl_decode_sink *const sink = lane->sink;
    return sink->stream ? sink->stream(sink->context, &lane->stream) : TL_OK;
}

/* ---- items ------------------------------------------------------------------------------ */

int tl_osd_lane_deliver(struct tl_osd_lane *lane)
{
    const struct tl_decode_sink *const sink = lane->sink;
    const size_t n = lane->n_items;
    lane->n_items = 0;
    if (n == 0 || !sink->items)
        return TL_OK;
    const int rc = sink->items(sink->context, &lane->stream, lane->items, n);
    return rc < 0 ? rc : tl_give_way();
}

static inline int make_room(struct tl_osd_lane *lane)
{
    return lane->n_items + EVENT_ITEMS > TL_OSD_BATCH ? tl_osd_lane_deliver(lane) : TL_OK;
}

static inline struct tl_item *add(struct tl_osd_lane *lane, enum tl_item_kind kind, uint64_t offset)
{
    assert(lane->n_items < TL_OSD_BATCH);
    struct tl_item *const item = &lane->items[lane->n_items++];
    *item = (struct tl_item){.kind = (uint8_t)kind, .offset = offset};
    return item;
}

static void add_note(struct tl_osd_lane *lane, const char *text, uint64_t offset)
{
    add(lane, TL_ITEM_NOTE, offset)->text = text;
}

static void add_missed(struct tl_osd_lane *lane)
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

static void add_transport(struct tl_osd_lane *lane)
{
    struct tl_item *const item = add(lane, TL_ITEM_GAP, lane->lost_at);
    item->sub = TL_GAP_TRANSPORT;
    lane->transport = false;
}

static void add_gaps(struct tl_osd_lane *lane)
{
    if (lane->missed)
        add_missed(lane);
    if (lane->transport)
        add_transport(lane);
}

static inline void add_time(struct tl_osd_lane *lane, uint32_t ticks, uint64_t offset,
                            uint64_t arrival)
{
    struct tl_osd_ticks *const t = &lane->ticks;
    const uint32_t step = ticks - (uint32_t)t->now;
    if (arrival == TL_OSD_NO_ARRIVAL && t->begun && step <= INT32_MAX) {
        t->now += step;
        if (step == 0)
            return;
    } else {
        const struct tl_osd_ticks before = *t;
        if (tl_osd_ticks_step(t, ticks, arrival))
            add_note(lane, "time ambiguous", offset);
        if (before.begun && t->now == before.now)
            return;
    }
    struct tl_item *const item = add(lane, TL_ITEM_TIME, offset);
    item->value = t->now;
    item->flags = TL_ITEM_HAS_VALUE;
}

/* ---- core trace ------------------------------------------------------------------------- */

static bool core_is(const struct tl_osd_lane *lane, const char *what)
{
    const struct tl_source *const source = lane->stream.source;
    return source && strcasestr(source->core, what);
}

/* The stream does not contain the instruction set: use the setup, the ELF file, or else the address
 * width. */
static uint64_t make_mode(const struct tl_osd_lane *lane, unsigned width)
{
    const unsigned machine = lane->image ? tl_image_machine(lane->image) : EM_NONE;
    if (core_is(lane, "or1k") || core_is(lane, "openrisc") || machine == EM_OPENRISC)
        return tl_mode(TL_ARCH_OR1K, 0, TL_SEC_NONE, TL_ISA_OR1K);
    const enum tl_isa isa = core_is(lane, "rv64")   ? TL_ISA_RV64
                            : core_is(lane, "rv32") ? TL_ISA_RV32
                            : width == 64           ? TL_ISA_RV64
                            : width == 32           ? TL_ISA_RV32
                                                    : TL_ISA_NONE;
    return tl_mode(TL_ARCH_RISCV, 0, TL_SEC_NONE, isa);
}

static inline uint64_t mode_of(struct tl_osd_lane *lane, const struct tl_osd_event *e)
{
    if (lane->width != e->width) {
        lane->width = e->width;
        lane->base_mode = make_mode(lane, e->width);
    }
    return lane->base_mode | (uint64_t)e->mode << 8;
}

/* The instruction at pc, if it is in the image. */
static const struct tl_block *find_block(struct tl_osd_lane *lane, uint64_t mode, uint64_t pc,
                                         int *rc)
{
    const enum tl_isa isa = tl_mode_isa(mode);
    if (!lane->blocks || (isa != TL_ISA_RV32 && isa != TL_ISA_RV64))
        return NULL;
    const unsigned machine = tl_image_machine(lane->image);
    if (machine != EM_NONE && machine != EM_RISCV)
        return NULL;
    if (lane->ticks.now >= lane->view_until)
        lane->view = tl_image_view(lane->image, &(struct tl_image_context){0}, lane->ticks.now,
                                   &lane->view_until);
    tl_block_cache_view(lane->blocks, lane->view);
    const struct tl_block *const block = tl_block_get(lane->blocks, TL_SPACE_ANY, isa, pc);
    if (!block)
        *rc = TL_NOMEM;
    return block && block->n > 0 ? block : NULL;
}

static inline uint8_t branch_flags(const struct tl_osd_event *e)
{
    return (uint8_t)(TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE | (e->call ? TL_ITEM_CALL : 0) |
                     (e->ret ? TL_ITEM_RETURN : 0));
}

static inline void add_jump(struct tl_osd_lane *lane, enum tl_item_kind kind,
                            const struct tl_osd_event *e)
{
    struct tl_item *const item = add(lane, kind, e->offset);
    item->pc = e->pc;
    item->value = e->npc;
    item->flags = branch_flags(e);
}

static int add_branch(struct tl_osd_lane *lane, const struct tl_osd_event *e, uint64_t mode)
{
    int rc = TL_OK;
    const struct tl_block *const block = find_block(lane, mode, e->pc, &rc);
    if (block) {
        struct tl_item *const item = add(lane, TL_ITEM_BLOCK, e->offset);
        item->block = block;
        item->n = 1;
        /* If the block continues after it, the instruction is not a branch: a different program was
         * executed. */
        item->flags = block->n == 1 ? TL_ITEM_TAKEN : 0;
    }
    add_jump(lane, block ? TL_ITEM_TARGET : TL_ITEM_BRANCH, e);
    return rc;
}

/* A time is that of the branch: it ends what ran up to there, as its instruction says. Where only
 * the branch is known, it begins what runs from there on. */
static void move_time(struct tl_osd_lane *lane, size_t from)
{
    struct tl_item *const items = lane->items;
    const size_t last = lane->n_items - 1;
    if (items[last].kind != TL_ITEM_TARGET || from == last)
        return;
    while (items[from].kind != TL_ITEM_TIME && from < last)
        from++;
    if (from == last)
        return;
    const struct tl_item time = items[from];
    memmove(&items[from], &items[from + 1], (last - from) * sizeof *items);
    items[last] = time;
}

static inline int add_core_event(struct tl_osd_lane *lane, const struct tl_osd_event *e)
{
    const uint64_t mode = mode_of(lane, e);
    if (e->modechange || mode != lane->mode) {
        struct tl_item *const item = add(lane, TL_ITEM_MODE, e->offset);
        item->value = lane->mode = mode;
        item->flags = TL_ITEM_HAS_VALUE;
    }
    /* For a pure mode change, pc and npc are undefined. */
    if (e->modechange && !e->call && !e->ret)
        return TL_OK;
    if (lane->blocks)
        return add_branch(lane, e, mode);
    add_jump(lane, TL_ITEM_BRANCH, e);
    return TL_OK;
}

static const char stm_name[] = "osd-stm";

/* ---- software trace --------------------------------------------------------------------- */

static inline struct tl_item *add_software(struct tl_osd_lane *lane, const struct tl_osd_event *e,
                                           const char *name, unsigned bytes)
{
    uint8_t *const payload = lane->payload[lane->n_items];
    tl_put_le64(payload, e->value);
    struct tl_item *const item = add(lane, TL_ITEM_SOFTWARE, e->offset);
    item->name = name;
    item->data = payload;
    item->n = bytes;
    return item;
}

static inline void add_system_event(struct tl_osd_lane *lane, const struct tl_osd_event *e)
{
    struct tl_item *const item = add_software(lane, e, stm_name, e->width / 8u);
    item->pc = e->id;
    item->flags = TL_ITEM_HAS_PC;
}

/* ---- events ----------------------------------------------------------------------------- */

static void count_missed(struct tl_osd_lane *lane, uint64_t events, uint64_t offset)
{
    if (lane->missed == 0)
        lane->missed_at = offset;
    lane->missed += events;
    lane->at_least = lane->at_least || events >= UINT16_MAX;
}

void tl_osd_lane_early(struct tl_osd_lane *lane, struct tl_osd_module *module)
{
    for (unsigned i = 0; i < module->n_early; i++)
        count_missed(lane, module->early[i], module->early_at);
    module->n_early = 0;
}

/* Report once. */
static void set_aside(struct tl_osd_lane *lane, const char *what, uint64_t offset)
{
    if (!lane->set_aside)
        add_note(lane, what, offset);
    lane->set_aside = true;
}

int tl_osd_lane_event(struct tl_osd_lane *lane, const struct tl_osd_event *e, uint64_t arrival)
{
    int rc = make_room(lane);
    if (rc < 0)
        return rc;
    if (lane->transport)
        add_gaps(lane);
    if (e->kind == TL_OSD_OVERFLOW) {
        count_missed(lane, e->value, e->offset);
        return TL_OK;
    }
    add_gaps(lane);
    const size_t before = lane->n_items;
    switch (e->kind) {
    case TL_OSD_CORE_EVENT:
        add_time(lane, e->time, e->offset, arrival);
        rc = add_core_event(lane, e);
        if (lane->blocks && lane->n_items > before)
            move_time(lane, before);
        return rc;
    case TL_OSD_SYSTEM_EVENT:
        add_time(lane, e->time, e->offset, arrival);
        add_system_event(lane, e);
        break;
    case TL_OSD_CHARACTER:
        add_software(lane, e, e->inbound ? "uart-in" : "uart", 1);
        break;
    case TL_OSD_MEMORY:
        set_aside(lane, "memory access set aside", e->offset);
        break;
    case TL_OSD_FOREIGN:
        set_aside(lane, "events of an unknown kind of module set aside", e->offset);
        break;
    case TL_OSD_STALL:
        add_note(lane, e->value ? "core stalled" : "core running", e->offset);
        break;
    default:
        break;
    }
    return TL_OK;
}

/* Advance the time if the step is unambiguous; else return false. */
static inline bool step_time(struct tl_osd_lane *lane, uint32_t ticks, uint64_t arrival)
{
    struct tl_osd_ticks *const t = &lane->ticks;
    const uint32_t step = ticks - (uint32_t)t->now;
    if (!t->begun || step - 1 >= INT32_MAX)
        return false;
    if (arrival == TL_OSD_NO_ARRIVAL) {
        t->now += step;
        return true;
    }
    struct tl_osd_ticks next = *t;
    if (tl_osd_ticks_step(&next, ticks, arrival))
        return false;
    *t = next;
    return true;
}

/*
 * Branch-free as far as possible, since the order of core and system trace events is unpredictable.
 */
int tl_osd_lane_quick(struct tl_osd_lane *lane, const uint8_t *payload, bool little_endian,
                      uint64_t offset, uint64_t arrival)
{
    if (lane->n_items + EVENT_ITEMS > TL_OSD_BATCH) {
        const int rc = tl_osd_lane_deliver(lane);
        if (rc < 0)
            return rc;
    }
    const struct tl_osd_form *const f = &lane->form;
    const uint8_t *const p = payload + f->flags_at;
    const unsigned flags = little_endian ? tl_le16(p) : tl_be16(p);
    const uint32_t ticks = (uint32_t)tl_di_words4(payload, little_endian);
    if ((flags & f->flags_mask) != f->flags_usual || !step_time(lane, ticks, arrival))
        return 0;
    const uint64_t value = tl_di_words4(payload + f->value_at, little_endian) & f->value_mask;
    uint8_t *const kept = lane->payload[lane->n_items];
    struct tl_item *const time = &lane->items[lane->n_items], *const item = time + 1;
    tl_put_le64(kept, value);
    *time = (struct tl_item){.kind = TL_ITEM_TIME,
                             .flags = TL_ITEM_HAS_VALUE,
                             .value = lane->ticks.now,
                             .offset = offset};
    *item = (struct tl_item){
        .kind = f->kind,
        .flags = (uint8_t)(f->item_flags | (((flags & CALL) << 1 | (flags & RET) << 3) & f->why)),
        .n = f->bytes,
        .pc = tl_di_words4(payload + f->pc_at, little_endian) & f->pc_mask,
        .value = value & f->item_value,
        .offset = offset,
        .data = f->has_data ? kept : NULL,
        .name = f->name};
    lane->n_items += 2;
    return 1;
}

static struct tl_osd_form ctm_form(unsigned width, uint64_t mode)
{
    return (struct tl_osd_form){.kind = TL_ITEM_BRANCH,
                                .item_flags = TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE,
                                .why = TL_ITEM_CALL | TL_ITEM_RETURN,
                                .flags_at = (uint8_t)(4 + width / 4),
                                .pc_at = (uint8_t)(4 + width / 8),
                                .value_at = 4,
                                .flags_mask = (uint16_t) ~(CALL | RET),
                                .flags_usual = (uint16_t)(mode >> 8 & 3),
                                .pc_mask = UINT64_MAX >> (64 - width),
                                .value_mask = UINT64_MAX >> (64 - width),
                                .item_value = UINT64_MAX};
}

static struct tl_osd_form stm_form(unsigned width)
{
    return (struct tl_osd_form){.kind = TL_ITEM_SOFTWARE,
                                .item_flags = TL_ITEM_HAS_PC,
                                .bytes = (uint8_t)(width / 8),
                                .pc_at = 4,
                                .value_at = 6,
                                .pc_mask = UINT16_MAX,
                                .value_mask = UINT64_MAX >> (64 - width),
                                .has_data = true,
                                .name = stm_name};
}

void tl_osd_lane_ready(struct tl_osd_lane *lane, const struct tl_osd_module *m)
{
    lane->quick = 0;
    if (!lane->believed || lane->missed || lane->transport || m->n_words || m->too_long ||
        m->misfits || m->width == 0)
        return;
    if (m->type == TL_OSD_STM) {
        lane->form = stm_form(m->width);
        lane->quick = tl_osd_stm_words(m->width);
    } else if (m->type == TL_OSD_CTM && !lane->blocks && lane->width == m->width &&
               (lane->mode & ~PRIVILEGE) == lane->base_mode) {
        lane->form = ctm_form(m->width, lane->mode);
        lane->quick = tl_osd_ctm_words(m->width);
    }
}

void tl_osd_lane_lost(struct tl_osd_lane *lane, uint64_t offset)
{
    lane->quick = 0;
    if (lane->transport)
        return;
    lane->transport = true;
    lane->lost_at = offset;
}

int tl_osd_lane_finish(struct tl_osd_lane *lane)
{
    const int rc = make_room(lane);
    if (rc >= 0)
        add_gaps(lane);
    return rc;
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

static void event_state(struct tl_osd_event *e, struct tl_state *s)
{
    tl_state_u8(s, &e->kind, TL_OSD_RESERVED);
    tl_state_u8(s, &e->type, TL_OSD_CDM);
    tl_state_u8(s, &e->width, 64);
    tl_state_check(s, tl_osd_is_width(e->width));
    tl_state_u8(s, &e->mode, 3);
    tl_state_bool(s, &e->call);
    tl_state_bool(s, &e->ret);
    tl_state_bool(s, &e->modechange);
    tl_state_bool(s, &e->inbound);
    tl_state_bool(s, &e->doubtful);
    tl_state_u16(s, &e->src);
    tl_state_u16(s, &e->id);
    tl_state_u32(s, &e->time);
    tl_state_u64(s, &e->pc);
    tl_state_u64(s, &e->npc);
    tl_state_u64(s, &e->value);
    tl_state_u64(s, &e->offset);
}

/* Save or restore the stream's identity, if it has one. */
static void stream_state(struct tl_osd_lane *lane, uint16_t address, struct tl_state *s)
{
    bool believed = lane->believed;
    uint8_t type = lane->type;
    uint32_t index = lane->stream.index;
    tl_state_bool(s, &believed);
    tl_state_u8(s, &type, TL_OSD_CDM);
    tl_state_u32(s, &index);
    if (tl_state_loads(s) && s->rc >= 0 && believed)
        tl_osd_lane_believe(lane, address, type, index);
}

void tl_osd_lane_state(struct tl_osd_lane *lane, const struct tl_osd_module *module,
                       struct tl_state *s)
{
    bool quick = lane->quick > 0;
    stream_state(lane, module->address, s);
    tl_state_bool(s, &quick);
    tl_state_u8(s, &lane->width, 64);
    tl_state_check(s, tl_osd_is_width(lane->width));
    tl_state_bool(s, &lane->waiting);
    tl_state_bool(s, &lane->set_aside);
    tl_state_bool(s, &lane->transport);
    tl_state_bool(s, &lane->at_least);
    tl_state_u64(s, &lane->lost_at);
    tl_osd_ticks_state(&lane->ticks, s);
    tl_state_u64(s, &lane->mode);
    tl_state_u64(s, &lane->missed);
    tl_state_u64(s, &lane->missed_at);
    event_state(&lane->first, s);
    tl_state_u64(s, &lane->first_arrival);
    if (!tl_state_loads(s) || s->rc < 0)
        return;
    if (lane->width)
        lane->base_mode = make_mode(lane, lane->width);
    tl_state_check(s, lane->mode == NO_MODE || (lane->mode & ~PRIVILEGE) == lane->base_mode);
    if (quick)
        tl_osd_lane_ready(lane, module);
}
