/* SPDX-License-Identifier: MIT */
/*
 * A table of names, defaults and largest values, since a wrong width misplaces every field after it
 * without any sign in the trace. Defaults differ by trace unit: existing units have fixed
 * parameters that are not the standard's.
 */
#include "riscv/etrace_params.h"

#include "riscv/returns.h"

#include <string.h>
#include <strings.h>

/* A parameter: where it goes, its default, and the largest value. */
struct parameter {
    const char *name;
    uint8_t *to;
    uint8_t otherwise;
    uint8_t most;
};

/* The order of the bits in `ioptions`, which the standard leaves to the implementer. */
static const uint8_t reference_order[] = {TL_ETRACE_IMPLICIT_RETURN, TL_ETRACE_IMPLICIT_EXCEPTION,
                                          TL_ETRACE_FULL_ADDRESS, TL_ETRACE_TARGET_CACHE,
                                          TL_ETRACE_PREDICTION};
static const uint8_t pulp_order[] = {TL_ETRACE_TARGET_CACHE,       TL_ETRACE_PREDICTION,
                                     TL_ETRACE_IMPLICIT_RETURN,    TL_ETRACE_SEQUENTIAL,
                                     TL_ETRACE_IMPLICIT_EXCEPTION, TL_ETRACE_FULL_ADDRESS};

/* The standard's support packet of E-Trace 2.1; behind these, sizes. */
static const uint16_t ordered[] = {TL_ETRACE_SEQUENTIAL,         TL_ETRACE_IMPLICIT_RETURN,
                                   TL_ETRACE_PREDICTION,         TL_ETRACE_TARGET_CACHE,
                                   TL_ETRACE_IMPLICIT_EXCEPTION, TL_ETRACE_FULL_ADDRESS,
                                   TL_ETRACE_NO_RESYNC,          TL_ETRACE_IRETS};

#define SIZES_IN       8  /* in `ioptions`: their first bit */
#define SIZES_OUT      12 /* in a set of options */
#define SIZED_IOPTIONS 26

#define PULP_IOPTIONS 7 /* the last one says that addresses are differences */

unsigned tl_etrace_options(const struct tl_etrace_params *params, uint32_t ioptions)
{
    if (params->unit == TL_ETRACE_2_1) {
        unsigned sized = TL_ETRACE_SIZED | ioptions >> SIZES_IN << SIZES_OUT;
        for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++)
            sized |= ioptions >> i & 1 ? ordered[i] : 0;
        return sized;
    }
    const bool pulp = params->unit == TL_ETRACE_PULP;
    const uint8_t *const order = pulp ? pulp_order : reference_order;
    const size_t n = pulp ? sizeof pulp_order : sizeof reference_order;
    unsigned options = params->sijump && !pulp ? TL_ETRACE_SEQUENTIAL : 0;
    for (size_t i = 0; i < n; i++)
        options |= ioptions >> i & 1 ? order[i] : 0;
    return options;
}

/* Take a field of `width` bits. */
static uint8_t take_size(uint32_t *sizes, unsigned width)
{
    const uint32_t value = *sizes & ((1u << width) - 1);
    *sizes >>= width;
    return (uint8_t)value;
}

static void set_irdepth(struct tl_etrace_params *p)
{
    p->irdepth_width = (uint8_t)(p->irets ? 8
                                          : p->return_stack_size + (p->return_stack_size > 0) +
                                                p->call_counter_size);
}

bool tl_etrace_take_sizes(struct tl_etrace_params *p, unsigned options)
{
    uint32_t sizes = options >> SIZES_OUT;
    if (!(options & TL_ETRACE_SIZED))
        return true;
    const unsigned time = 16u * take_size(&sizes, 3);
    p->f0s_width = take_size(&sizes, 2);
    p->return_stack_size = take_size(&sizes, 3);
    p->call_counter_size = take_size(&sizes, 4);
    p->bpred_size = take_size(&sizes, 3);
    p->cache_size = take_size(&sizes, 3);
    p->irets = options & TL_ETRACE_IRETS;
    p->time_width = (uint8_t)(time <= 64 ? time : 64);
    set_irdepth(p);
    return time <= 64;
}

static int read_all(const struct parameter *p, size_t n, const struct tl_source *source,
                    struct tl_fail *fail)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t value = tl_source_reg(source, p[i].name, p[i].otherwise);
        if (value > p[i].most)
            return tl_fail_set(fail, TL_UNSUPPORTED, "%s=%llu: the largest value is %u", p[i].name,
                               (unsigned long long)value, p[i].most);
        *p[i].to = (uint8_t)value;
    }
    return TL_OK;
}

/* A field exists if its width is given, unless `none` says otherwise. */
static uint8_t optional_width(const struct tl_source *source, const char *none, uint8_t width)
{
    const uint64_t absent = tl_source_reg(source, none, width == 0);
    return absent ? 0 : width ? width : 1;
}

/* The unit with this name, -1 if there is none. Espressif's chips have one of two. */
static int unit_named(const char *name)
{
    static const struct {
        const char *name;
        uint8_t unit;
    } units[] = {{"reference", TL_ETRACE_REFERENCE}, {"pulp", TL_ETRACE_PULP},
                 {"reference-2.1", TL_ETRACE_2_1},   {"esp32", TL_ETRACE_ESP32},
                 {"esp32-c6", TL_ETRACE_ESP32},      {"esp32-h2", TL_ETRACE_ESP32},
                 {"esp32-h21", TL_ETRACE_ESP32},     {"esp32-2.0", TL_ETRACE_REFERENCE},
                 {"esp32-c5", TL_ETRACE_REFERENCE},  {"esp32-c61", TL_ETRACE_REFERENCE},
                 {"esp32-h4", TL_ETRACE_REFERENCE},  {"esp32-p4", TL_ETRACE_REFERENCE},
                 {"esp32-s31", TL_ETRACE_REFERENCE}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(name, units[i].name))
            return units[i].unit;
    return -1;
}

int tl_etrace_params(struct tl_etrace_params *out, const struct tl_source *source,
                     struct tl_fail *fail)
{
    const int unit = source->type[0] ? unit_named(source->type) : TL_ETRACE_REFERENCE;
    if (unit < 0)
        return tl_fail_set(
            fail, TL_UNSUPPORTED,
            "unit=%.20s is not known; use reference, reference-2.1, pulp, esp32 or a chip as "
            "esp32-p4",
            source->type);
    *out = (struct tl_etrace_params){.unit = (uint8_t)unit};
    const bool pulp = out->unit == TL_ETRACE_PULP;
    const bool sized = out->unit == TL_ETRACE_2_1;
    const bool chip = !strncasecmp(source->type, "esp32", 5);
    const uint8_t table = sized ? TL_ETRACE_TABLE_MAX : 16;
    uint8_t sijump, from_sync;
    out->isa = (uint8_t)(chip ? TL_ISA_RV32 : tl_source_isa(TL_PROTO_E_TRACE, source));
    const struct parameter all[] = {
        {"iaddress_width_p", &out->iaddress_width, 32, 64},
        {"iaddress_lsb_p", &out->iaddress_lsb, pulp ? 0 : 1, 2},
        {"privilege_width_p", &out->privilege_width, chip ? 1 : 2, 8},
        {"ecause_width_p", &out->ecause_width, chip ? 5 : 4, 16},
        {"time_width_p", &out->time_width, 0, 64},
        {"context_width_p", &out->context_width, 0, 64},
        {"return_stack_size_p", &out->return_stack_size, 0, TL_RETURNS_MAX_LOG},
        {"call_counter_size_p", &out->call_counter_size, 0, TL_RETURNS_MAX_LOG},
        {"bpred_size_p", &out->bpred_size, 0, table},
        {"cache_size_p", &out->cache_size, 0, table},
        {"encoder_mode_width_p", &out->encoder_mode_width, sized ? 2 : 1, 8},
        {"ioptions_width_p", &out->ioptions_width,
         sized  ? SIZED_IOPTIONS
         : pulp ? PULP_IOPTIONS
                : sizeof reference_order,
         32},
        {"sijump_p", &sijump, 0, 1},
        {"delta_from_sync_p", &from_sync, 0, 1},
    };
    int rc = read_all(all, sizeof all / sizeof *all, source, fail);
    if (rc < 0)
        return rc;
    /* With both there must be a bit to distinguish them. */
    const bool both = out->bpred_size && out->cache_size;
    rc = read_all(&(struct parameter){"f0s_width_p", &out->f0s_width, both, 8}, 1, source, fail);
    if (rc < 0)
        return rc;
    if (out->iaddress_width <= out->iaddress_lsb)
        return tl_fail_set(fail, TL_UNSUPPORTED, "iaddress_width_p=%u leaves no bits of an address",
                           out->iaddress_width);
    out->sijump = sijump;
    out->from_sync = from_sync;
    out->time_width = optional_width(source, "notime_p", out->time_width);
    out->context_width = optional_width(source, "nocontext_p", out->context_width);
    set_irdepth(out);
    static const char *const tvecs[TL_ETRACE_TVECS] = {"utvec", "stvec", "",      "mtvec",
                                                       "",      "utvec", "vstvec"};
    for (size_t i = 0; i < TL_ETRACE_TVECS; i++)
        out->tvec[i] = *tvecs[i] ? tl_source_reg(source, tvecs[i], 0) : 0;
    const uint64_t ioptions = tl_source_reg(source, "ioptions", UINT64_MAX);
    out->has_ioptions = ioptions != UINT64_MAX;
    out->ioptions = out->has_ioptions ? (uint32_t)ioptions : 0;
    return TL_OK;
}
