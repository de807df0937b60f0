/* SPDX-License-Identifier: MIT */
/*
 * The meaning of DWT packets, by a table with a row for each discriminator. A row says which sizes
 * exist: anything else is a sign that bytes were lost, since an ITM seldom synchronises.
 */
#include "itm/dwt.h"

#include "flow/m_exception.h"
#include "image/variables.h"

#include <stdio.h>
#include <string.h>

struct packet {
    unsigned discriminator, size;
    uint32_t value;
    tl_dwt_sink *sink;
    void *context;
};

typedef void take(struct tl_dwt *dwt, const struct packet *packet);

static void tell(const struct packet *p, const struct tl_hardware *event)
{
    p->sink(p->context, event);
}

/* An event that ends all accesses. */
static void tell_other(struct tl_dwt *dwt, const struct packet *p, const struct tl_hardware *event)
{
    tl_dwt_flush(dwt, p->sink, p->context);
    tell(p, event);
}

/* ---- accesses -------------------------------------------------------------------------------- */

static unsigned comparator_of(unsigned discriminator)
{
    return discriminator >> 1 & 3;
}

/* The comparator's access; `other`: it has this already, so that another one begins. */
static struct tl_hardware *access_of(struct tl_dwt *dwt, const struct packet *p, bool other)
{
    const unsigned c = comparator_of(p->discriminator);
    struct tl_hardware *const open = &dwt->open[c];
    if (dwt->waiting >> c & 1 && !other)
        return open;
    if (dwt->waiting >> c & 1)
        tell(p, open);
    dwt->waiting |= (uint8_t)(1u << c);
    *open = (struct tl_hardware){.kind = TL_HARDWARE_DATA, .comparator = (uint8_t)c};
    return open;
}

static bool is_open(const struct tl_dwt *dwt, const struct packet *p)
{
    return dwt->waiting >> comparator_of(p->discriminator) & 1;
}

static void take_pc(struct tl_dwt *dwt, const struct packet *p)
{
    const unsigned c = comparator_of(p->discriminator);
    if (p->size == 1) {
        tell_other(dwt, p,
                   &(struct tl_hardware){.kind = TL_HARDWARE_MATCH, .comparator = (uint8_t)c});
        return;
    }
    struct tl_hardware *const open = access_of(dwt, p, is_open(dwt, p) && dwt->open[c].has_pc);
    open->has_pc = true;
    open->pc = p->value;
}

/*
 * The only address in the comparator's range with the transmitted bits; if there is none, or no
 * range is known, the others stay unknown.
 */
static void take_address(struct tl_dwt *dwt, const struct packet *p)
{
    const unsigned c = comparator_of(p->discriminator);
    const struct tl_dwt_range *const range = &dwt->ranges[c];
    struct tl_hardware *const open = access_of(dwt, p, is_open(dwt, p) && dwt->open[c].known);
    open->known = (uint8_t)p->size;
    open->address = p->value;
    if (p->size == 4)
        return;
    const uint32_t step = UINT32_C(1) << 8 * p->size;
    uint64_t address = (range->first & ~(step - 1)) | p->value;
    address += address < range->first ? step : 0;
    if (address - range->first < range->size && address + step - range->first >= range->size) {
        open->known = 4;
        open->address = (uint32_t)address;
    }
}

static void take_value(struct tl_dwt *dwt, const struct packet *p)
{
    enum { WRITES = 1 };
    const unsigned c = comparator_of(p->discriminator);
    const struct tl_dwt_range *const range = &dwt->ranges[c];
    struct tl_hardware *const open = access_of(dwt, p, false);
    open->action = p->discriminator & WRITES ? TL_ACCESS_WRITE : TL_ACCESS_READ;
    open->size = (uint8_t)p->size;
    open->value = p->value;
    if (open->known == 0 && range->size == 1) {
        open->known = 4;
        open->address = range->first;
    }
    dwt->waiting &= (uint8_t) ~(1u << c);
    tell(p, open);
}

/* ---- other packets --------------------------------------------------------------------------- */

static void take_counters(struct tl_dwt *dwt, const struct packet *p)
{
    tell_other(dwt, p, &(struct tl_hardware){.kind = TL_HARDWARE_COUNTER, .value = p->value});
}

static void take_pmu(struct tl_dwt *dwt, const struct packet *p)
{
    tell_other(dwt, p, &(struct tl_hardware){.kind = TL_HARDWARE_PMU, .value = p->value});
}

static void take_exception(struct tl_dwt *dwt, const struct packet *p)
{
    tell_other(dwt, p,
               &(struct tl_hardware){.kind = TL_HARDWARE_EXCEPTION,
                                     .action = (uint8_t)(p->value >> 12 & 3),
                                     .number = p->value & 0x1ff});
}

static void take_sample(struct tl_dwt *dwt, const struct packet *p)
{
    if (p->size == 4)
        tell_other(dwt, p,
                   &(struct tl_hardware){.kind = TL_HARDWARE_PC, .has_pc = true, .pc = p->value});
    else
        tell_other(
            dwt, p,
            &(struct tl_hardware){.kind = p->value ? TL_HARDWARE_PROHIBITED : TL_HARDWARE_SLEEP});
}

/* ---- which packets there are ----------------------------------------------------------------- */

typedef bool check(unsigned size, uint32_t value);

static bool is_any(unsigned size, uint32_t value)
{
    return size + value > 0;
}

static bool is_counters(unsigned size, uint32_t value)
{
    return size == 1 && value > 0 && value < 0x40;
}

static bool is_pmu(unsigned size, uint32_t value)
{
    return size == 1 && value > 0;
}

/* Bits 8:0 number, 13:12 action; all others are 0. */
static bool is_exception(unsigned size, uint32_t value)
{
    return size == 2 && (value >> 12 & 3) != 0 && (value & 0xce00) == 0;
}

static bool is_sample(unsigned size, uint32_t value)
{
    return size == 4 || value == 0 || value == 0xff;
}

static bool is_pc(unsigned size, uint32_t value)
{
    return size == 4 || value == 1;
}

enum { ONE = 1 << 1, TWO = 1 << 2, FOUR = 1 << 4, ANY = ONE | TWO | FOUR };

#define COMPARATOR(n)                                                                              \
    [8 + 2 * (n)] = {ONE | FOUR, is_pc, take_pc}, [9 + 2 * (n)] = {ANY, is_any, take_address},     \
             [16 + 2 * (n)] = {ANY, is_any, take_value},                                           \
             [17 + 2 * (n)] = {ANY, is_any, take_value}

static const struct {
    uint8_t sizes; /* bit set */
    check *is;     /* can the payload be? */
    take *take;
} sources[32] = {
    [0] = {ONE, is_counters, take_counters},
    [1] = {TWO, is_exception, take_exception},
    [2] = {ONE | FOUR, is_sample, take_sample},
    [3] = {ONE, is_pmu, take_pmu},
    COMPARATOR(0),
    COMPARATOR(1),
    COMPARATOR(2),
    COMPARATOR(3),
};

enum { FILLER = 31 }; /* with four bytes: what a TPIU sends when there is nothing to send */

bool tl_dwt_is_known(unsigned discriminator)
{
    return sources[discriminator].take != NULL;
}

bool tl_dwt_is_source(unsigned discriminator, unsigned size)
{
    if (!tl_dwt_is_known(discriminator))
        return discriminator != FILLER || size != 4;
    return sources[discriminator].sizes >> size & 1;
}

bool tl_dwt_is_packet(unsigned discriminator, unsigned size, uint32_t value)
{
    return tl_dwt_is_source(discriminator, size) &&
           (!tl_dwt_is_known(discriminator) || sources[discriminator].is(size, value));
}

void tl_dwt_packet(struct tl_dwt *dwt, unsigned discriminator, unsigned size, uint32_t value,
                   tl_dwt_sink *sink, void *context)
{
    const struct packet packet = {discriminator, size, value, sink, context};
    if (tl_dwt_is_known(discriminator))
        sources[discriminator].take(dwt, &packet);
    else
        tell_other(dwt, &packet,
                   &(struct tl_hardware){.kind = TL_HARDWARE_OTHER,
                                         .number = (uint16_t)discriminator,
                                         .size = (uint8_t)size,
                                         .value = value});
}

void tl_dwt_flush(struct tl_dwt *dwt, tl_dwt_sink *sink, void *context)
{
    for (unsigned c = 0; c < TL_DWT_COMPARATORS; c++)
        if (dwt->waiting >> c & 1)
            sink(context, &dwt->open[c]);
    dwt->waiting = 0;
}

/* ---- configuration --------------------------------------------------------------------------- */

static uint64_t reg(const struct tl_source *source, const char *name, unsigned n)
{
    char text[32];
    snprintf(text, sizeof text, "%s%u", name, n);
    return tl_source_reg(source, text, UINT64_MAX);
}

/* Is comparator `n` the upper limit of a range that the one before it begins? (Armv8-M) */
static bool is_limit(const struct tl_source *source, unsigned n)
{
    enum { MATCH = 15, DATA_ADDRESS_LIMIT = 7 };
    const uint64_t function = n < TL_DWT_COMPARATORS ? reg(source, "DWT_FUNCTION", n) : UINT64_MAX;
    return function != UINT64_MAX && (function & MATCH) == DATA_ADDRESS_LIMIT;
}

void tl_dwt_init(struct tl_dwt *dwt, const struct tl_source *source)
{
    *dwt = (struct tl_dwt){0};
    for (unsigned c = 0; c < TL_DWT_COMPARATORS; c++) {
        struct tl_dwt_range *const range = &dwt->ranges[c];
        const uint64_t first = reg(source, "DWT_COMP", c), mask = reg(source, "DWT_MASK", c);
        if (first == UINT64_MAX)
            continue;
        const uint32_t bits = mask == UINT64_MAX ? 0 : mask & 31;
        range->size = UINT64_C(1) << bits;
        range->first = (uint32_t)first & ~(uint32_t)(range->size - 1);
        const uint64_t limit =
            is_limit(source, c + 1) ? reg(source, "DWT_COMP", c + 1) : UINT64_MAX;
        if (limit != UINT64_MAX && limit >= first)
            range->size = limit - first + 1;
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *tl_dwt_name(const struct tl_dwt *dwt, const struct tl_hardware *event,
                        const struct tl_image *image, char *out, size_t size)
{
    char name[TL_M_NAME];
    const struct tl_dwt_range *const range = &dwt->ranges[event->comparator];
    const struct tl_image_access access = {event->address, event->value, event->size};
    switch (event->kind) {
    case TL_HARDWARE_EXCEPTION:
        snprintf(out, size, "%s", tl_m_exception_name(image, event->number, name));
        return out;
    case TL_HARDWARE_DATA:
    case TL_HARDWARE_MATCH:
        if (!(event->known == 4 && tl_image_variable_text(image, &access, out, size)) &&
            !(range->size > 0 && event->known != 4 &&
              tl_image_variable_text(image, &(struct tl_image_access){.address = range->first}, out,
                                     size)))
            snprintf(out, size, "dwt%u", event->comparator);
        return out;
    default:
        return NULL;
    }
}

/* ---- state ----------------------------------------------------------------------------------- */

void tl_dwt_event_state(struct tl_hardware *event, struct tl_state *s)
{
    tl_state_u8(s, &event->kind, TL_HARDWARE_KINDS - 1);
    tl_state_u8(s, &event->action, TL_ACTION_RETURN);
    tl_state_u8(s, &event->comparator, TL_DWT_COMPARATORS - 1);
    tl_state_u8(s, &event->size, 4);
    tl_state_u8(s, &event->known, 4);
    tl_state_bool(s, &event->has_pc);
    tl_state_u16(s, &event->number);
    tl_state_u32(s, &event->address);
    tl_state_u32(s, &event->value);
    uint32_t pc = (uint32_t)event->pc; /* of an M-profile processor */
    tl_state_u32(s, &pc);
    event->pc = pc;
}

void tl_dwt_state(struct tl_dwt *dwt, struct tl_state *s)
{
    tl_state_u8(s, &dwt->waiting, (1u << TL_DWT_COMPARATORS) - 1);
    for (unsigned c = 0; c < TL_DWT_COMPARATORS; c++)
        if (dwt->waiting >> c & 1)
            tl_dwt_event_state(&dwt->open[c], s);
}
