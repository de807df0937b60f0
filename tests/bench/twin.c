/* SPDX-License-Identifier: MIT */
/*
 * The capture is decoded to blocks first, since where an instruction of the twin goes depends on
 * how many there are in front of its target. All that is not a branch becomes a NOP: decoders of
 * flow do not look at it.
 */
#include "bench/twin.h"

#include "sim/a64asm.h"

#include <stdlib.h>

#define PLACES (1u << 20) /* halfwords of the original's code, at most */

struct step {
    uint32_t place; /* of its first instruction */
    uint32_t n;
    bool taken;
};

struct place {
    bool is;        /* an instruction that was executed begins here */
    uint32_t index; /* of that one */
    struct tl_insn insn;
};

struct original {
    struct place *places; /* by halfwords from `low` on */
    uint64_t low;
    struct tl_buf steps; /* struct step */
    bool strange;        /* the program is none of those that have a twin */
};

static uint64_t halfwords(const struct original *o, uint64_t pc)
{
    return (pc - o->low) / 2;
}

static uint64_t address_of(const struct original *o, uint32_t place)
{
    return TWIN_BASE + UINT64_C(4) * o->places[place].index;
}

/* ---- the original ---------------------------------------------------------------------------- */

static int take_block(struct original *o, const struct tl_item *item)
{
    const struct tl_block *const b = item->block;
    if (o->low == 0)
        o->low = b->pc > PLACES ? (b->pc - PLACES) & ~UINT64_C(1) : 0;
    const struct step step = {(uint32_t)halfwords(o, b->pc), item->n, item->flags & TL_ITEM_TAKEN};
    uint32_t at = 0;
    for (uint32_t i = 0; i < item->n; i++) {
        const uint64_t place = halfwords(o, b->pc + at);
        if (place >= PLACES) {
            o->strange = true;
            return TL_OK;
        }
        o->places[place].is = true;
        tl_block_insn(b, at, &o->places[place].insn);
        at += o->places[place].insn.size;
    }
    return tl_buf_add(&o->steps, &step, sizeof step);
}

static int take_items(void *context, const struct tl_decode_stream *stream,
                      const struct tl_item *items, size_t n)
{
    struct original *const o = context;
    int rc = TL_OK;
    (void)stream;
    for (size_t i = 0; i < n && rc == TL_OK; i++) {
        if (items[i].kind == TL_ITEM_BLOCK)
            rc = take_block(o, &items[i]);
        o->strange |= items[i].kind == TL_ITEM_EXCEPTION || items[i].kind == TL_ITEM_ERET;
    }
    return rc;
}

static int read_original(struct original *o, const struct tl_setup *setup,
                         const struct tl_image *image, struct tl_bytes bytes)
{
    const struct tl_decode_sink sink = {.context = o, .items = take_items};
    struct tl_decode *decode;
    int rc = tl_decode_new(&decode, setup, image, &sink, NULL);
    if (rc < 0)
        return rc;
    rc = tl_decode_push(decode, bytes.p, bytes.n);
    if (rc == TL_OK)
        rc = tl_decode_finish(decode);
    tl_decode_free(decode);
    return rc < 0 ? rc : o->strange || o->steps.n == 0 ? TL_BAD : TL_OK;
}

/* ---- its twin -------------------------------------------------------------------------------- */

static uint32_t encode(const struct original *o, uint32_t place)
{
    const struct place *const p = &o->places[place];
    const struct tl_insn *const insn = &p->insn;
    const uint64_t to = halfwords(o, insn->target);
    const bool known = to < PLACES && o->places[to].is;
    const int32_t distance = known ? (int32_t)(o->places[to].index - p->index) : 1;
    if (insn->kind == TL_INSN_BRANCH)
        return a64_set_distance(insn->conditional ? A64_B_COND(A64_NE)
                                : insn->link      ? A64_BL
                                                  : A64_B,
                                distance);
    if (insn->kind == TL_INSN_INDIRECT)
        return insn->is_return && !insn->link ? A64_RET : insn->link ? a64_blr(1) : a64_br(1);
    return A64_NOP;
}

static int make_image(struct twin *out, struct original *o)
{
    struct tl_buf code = {0};
    uint32_t n = 0;
    int rc = TL_OK;
    for (uint32_t i = 0; i < PLACES; i++)
        if (o->places[i].is)
            o->places[i].index = n++;
    for (uint32_t i = 0; i < PLACES && rc == TL_OK; i++) {
        uint8_t word[4];
        tl_put_le32(word, encode(o, i));
        if (o->places[i].is)
            rc = tl_buf_add(&code, word, sizeof word);
    }
    if (rc == TL_OK)
        rc = tl_image_new(&out->image);
    if (rc == TL_OK)
        rc = tl_image_add_bytes(out->image, TWIN_BASE, (struct tl_bytes){code.p, code.n},
                                TL_SPACE_ANY, NULL, NULL);
    tl_buf_fini(&code);
    return rc < 0 ? rc : tl_image_freeze(out->image);
}

/* The last instruction of a step, which leads to `next`. */
static int run_last(struct tl_sim_etm4 *e, const struct original *o, uint32_t place, bool taken,
                    uint32_t next)
{
    static const struct tl_sim_context context = {.el = 0};
    const struct tl_insn *const insn = &o->places[place].insn;
    const uint32_t encoding = encode(o, place);
    if (encoding == A64_NOP)
        return tl_sim_etm4_insn(e, address_of(o, place), encoding, 1);
    const struct tl_sim_branch branch = {.pc = address_of(o, place),
                                         .encoding = encoding,
                                         .indirect = insn->kind == TL_INSN_INDIRECT,
                                         .link = insn->link,
                                         .is_return = encoding == A64_RET,
                                         .taken = taken,
                                         .target = address_of(o, next),
                                         .after = context};
    return tl_sim_etm4_branch(e, &branch, 1);
}

static int run_step(struct tl_sim_etm4 *e, const struct original *o, const struct step *step,
                    uint32_t next)
{
    uint32_t place = step->place;
    int rc = TL_OK;
    for (uint32_t i = 0; i + 1 < step->n && rc == TL_OK; i++) {
        rc = tl_sim_etm4_insn(e, address_of(o, place), A64_NOP, 1);
        place += o->places[place].insn.size / 2;
    }
    return rc < 0 ? rc : run_last(e, o, place, step->taken, next);
}

static int make_trace(struct twin *out, const struct original *o,
                      const struct tl_sim_etm4_options *options)
{
    static const struct tl_sim_context context = {.el = 0};
    const struct step *const steps = (const void *)o->steps.p;
    const size_t n = o->steps.n / sizeof *steps;
    struct tl_sim_etm4 *e;
    int rc = tl_sim_etm4_source(options, &out->source);
    if (rc == TL_OK)
        rc = tl_sim_etm4_new(&e, options, &out->trace, NULL, NULL);
    if (rc < 0)
        return rc;
    rc = tl_sim_etm4_on(e, address_of(o, steps[0].place), &context);
    for (size_t i = 0; i + 1 < n && rc == TL_OK; i++) {
        rc = run_step(e, o, &steps[i], steps[i + 1].place);
        out->insns += steps[i].n;
    }
    if (rc == TL_OK)
        rc = tl_sim_etm4_flush(e);
    tl_sim_etm4_free(e);
    return rc;
}

int twin_of(struct twin *out, const struct tl_setup *setup, const struct tl_image *original,
            struct tl_bytes bytes, const struct tl_sim_etm4_options *options)
{
    struct original o = {.places = calloc(PLACES, sizeof *o.places)};
    *out = (struct twin){0};
    int rc = o.places ? read_original(&o, setup, original, bytes) : TL_NOMEM;
    if (rc == TL_OK)
        rc = make_image(out, &o);
    if (rc == TL_OK)
        rc = make_trace(out, &o, options);
    tl_buf_fini(&o.steps);
    free(o.places);
    return rc;
}
