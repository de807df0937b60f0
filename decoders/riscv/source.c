/* SPDX-License-Identifier: MIT */
/*
 * A source of the setup lacks what its user did not care to state: the rest comes from the
 * container and the image. Register fields may be given alone or within their register, since
 * captures come with either.
 */
#include "riscv/source.h"

#include "setup/riscv_cores.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct feed {
    struct tl_feed base; /* must be first */
    struct tl_source source;
};

const struct tl_source *tl_riscv_source(const struct tl_setup *setup, unsigned src_bits,
                                        unsigned src)
{
    return src_bits == 0 && setup->n_sources == 1 ? &setup->sources[0]
                                                  : tl_setup_source(setup, src);
}

static void set_if_empty(char *text, size_t size, const char *otherwise)
{
    if (!text[0])
        snprintf(text, size, "%s", otherwise);
}

/* The value of a field by the name of the source's core, if that core is known; else `otherwise`.
 */
static uint64_t preset(const struct tl_source *source, const char *name, uint64_t otherwise)
{
    const struct tl_riscv_core *const core = tl_riscv_core_in(source->core);
    if (core && !strcmp(name, "addrbits"))
        return core->address_bits;
    if (core && !strcmp(name, "trTsWidth"))
        return core->time_bits;
    return otherwise;
}

/* Complete what the setup leaves out of a source. */
static void complete(struct tl_source *s, const struct tl_source *otherwise,
                     const struct tl_setup *setup, const struct tl_image *image)
{
    set_if_empty(s->name, sizeof s->name, otherwise->name);
    set_if_empty(s->type, sizeof s->type, otherwise->type);
    set_if_empty(s->core, sizeof s->core, otherwise->core);
    set_if_empty(s->core, sizeof s->core, setup->core);
    if (image && tl_image_is_narrow(image))
        set_if_empty(s->core, sizeof s->core, "rv32");
    if (s->protocol == TL_PROTO_NONE)
        s->protocol = otherwise->protocol;
    for (size_t i = 0; i < otherwise->n_regs; i++)
        (void)!tl_source_set_reg(s, otherwise->regs[i].name, otherwise->regs[i].value);
    s->vmid = tl_setup_source_vmid(setup, s->id);
}

int tl_riscv_add_source(struct tl_feeds *feeds, const struct tl_setup *setup, unsigned src_bits,
                        const struct tl_source *otherwise, uint64_t offset, struct tl_feed **out)
{
    const struct tl_source *const given = tl_riscv_source(setup, src_bits, otherwise->id);
    const bool is_stream = given || setup->n_sources == 0;
    struct tl_feed *const feed = calloc(1, is_stream ? sizeof(struct feed) : sizeof *feed);
    *out = feed;
    if (!feed)
        return TL_NOMEM;
    feed->id = otherwise->id;
    snprintf(feed->name, sizeof feed->name, "%s", otherwise->name);
    if (!is_stream)
        return tl_feeds_add(feeds, feed, NULL, offset);
    struct tl_source *const source = &((struct feed *)feed)->source;
    *source = given ? *given : *otherwise;
    complete(source, otherwise, setup, feeds->image);
    return tl_feeds_add(feeds, feed, source, offset);
}

unsigned tl_riscv_capture_src_bits(const struct tl_setup *setup)
{
    const struct tl_riscv_core *core = tl_riscv_core_in(setup->core);
    unsigned bits = 0;
    bool given = setup->src_bits != TL_SETUP_UNSAID;
    if (given)
        return setup->src_bits;
    for (size_t i = 0; i < setup->n_sources; i++) {
        const struct tl_source *const source = &setup->sources[i];
        const unsigned one = tl_riscv_src_bits(source);
        given |= tl_riscv_field(source, "trTeInhibitSrc", 0) ||
                 tl_riscv_field(source, "trTeSrcBits", UINT64_MAX) != UINT64_MAX;
        bits = one > bits ? one : bits;
        core = core ? core : tl_riscv_core_in(source->core);
    }
    return given || !core || core->src_bits == UINT8_MAX ? bits : core->src_bits;
}

unsigned tl_riscv_src_bits(const struct tl_source *source)
{
    const uint64_t bits = tl_riscv_field(source, "trTeSrcBits", 0);
    if (tl_riscv_field(source, "trTeInhibitSrc", 0))
        return 0;
    return bits < UINT_MAX ? (unsigned)bits : UINT_MAX;
}

uint64_t tl_riscv_field(const struct tl_source *source, const char *name, uint64_t otherwise)
{
    /* RISC-V Trace Control Interface 1.0, "Trace Encoder Register Interface" */
    static const struct {
        const char *name, *of;
        uint8_t lsb, width;
    } fields[] = {
        {"trTeInstMode", "trTeControl", 4, 3},
        {"trTeInhibitSrc", "trTeControl", 15, 1},
        {"trTeInstEnSequentialJump", "trTeInstFeatures", 2, 1},
        {"trTeInstEnImplicitReturn", "trTeInstFeatures", 3, 1},
        {"trTeInstImplicitReturnMode", "trTeInstFeatures", 6, 2},
        {"trTeInstEnAllJumps", "trTeInstFeatures", 9, 1},
        {"trTeInstExtendAddrMSB", "trTeInstFeatures", 10, 1},
        {"trTeSrcBits", "trTeInstFeatures", 28, 4},
        {"trTsWidth", "trTsControl", 24, 6},
    };
    otherwise = preset(source, name, otherwise);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const uint64_t whole = tl_source_reg(source, fields[i].of, UINT64_MAX);
        if (!strcmp(fields[i].name, name) && whole != UINT64_MAX)
            otherwise = whole >> fields[i].lsb & ((UINT64_C(1) << fields[i].width) - 1);
    }
    return tl_source_reg(source, name, otherwise);
}

struct tl_isa_options tl_riscv_options(const struct tl_source *source, const struct tl_image *image)
{
    return (struct tl_isa_options){
        .zcm = strcasestr(source->core, "zcm") || (image && tl_image_has_zcm(image)),
        .jvt = tl_source_reg(source, "jvt", image ? tl_image_jump_table(image) : 0),
    };
}
