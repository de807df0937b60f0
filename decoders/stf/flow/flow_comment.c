/* SPDX-License-Identifier: MIT */
/*
 * Converts our COMMENT records, which contain lines of flow text, back to items. STF has no record
 * for gaps and software trace; as comments they pass through other tools.
 */
#include "stf/flow/flow_comment.h"

#include "flow/hardware.h"
#include "stf/flow_map.h"

#include <stdlib.h>

/* Get the next word of a line; empty at its end. */
static struct tl_bytes word(struct tl_bytes *line)
{
    while (line->n && *line->p == ' ') {
        line->p++;
        line->n--;
    }
    struct tl_bytes w = {line->p, 0};
    while (line->n && *line->p != ' ') {
        line->p++;
        line->n--;
        w.n++;
    }
    return w;
}

static bool is(struct tl_bytes w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.p, text, w.n) == 0;
}

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static bool number(struct tl_bytes w, int base, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < w.n; i++) {
        if (digit(w.p[i]) >= base || i == 20)
            return false;
        *out = *out * (uint64_t)base + (uint64_t)digit(w.p[i]);
    }
    return w.n > 0;
}

static bool parse_gap(struct tl_bytes line, struct tl_item *out)
{
    const struct tl_bytes reason = word(&line);
    struct tl_bytes count = word(&line);
    for (unsigned i = 0; i < TL_GAP_KINDS; i++) {
        if (!is(reason, tl_gap_name((enum tl_gap)i)))
            continue;
        *out = (struct tl_item){.kind = TL_ITEM_GAP, .sub = (uint16_t)i};
        if (count.n && count.p[count.n - 1] == '+') {
            out->flags |= TL_ITEM_AT_LEAST;
            count.n--;
        }
        if (number(count, 10, &out->value))
            out->flags |= TL_ITEM_HAS_VALUE;
        return true;
    }
    return false;
}

/* Source names for items, in static storage. */
static const char *source_name(struct tl_bytes w)
{
    static const char *const names[] = {"itm", "stm",     "osd-stm", "uart", "uart-in",
                                        "ite", "ptwrite", "pt",      "stf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is(w, names[i]))
            return names[i];
    }
    return NULL;
}

/* Up to 8 bytes are written as one number, more in memory order. */
static bool parse_software(struct tl_bytes line, struct tl_buf *data, struct tl_item *out)
{
    const char *const name = source_name(word(&line));
    const struct tl_bytes channel = word(&line);
    const struct tl_bytes payload = word(&line);
    const struct tl_bytes form = word(&line);
    *out = (struct tl_item){.kind = TL_ITEM_SOFTWARE,
                            .sub = (uint16_t)tl_port_form_named((const char *)form.p, form.n),
                            .name = name};
    if (!name || payload.n % 2 != (is(payload, "-") ? 1 : 0))
        return false;
    if (number(channel, 16, &out->pc))
        out->flags |= TL_ITEM_HAS_PC;
    const size_t n = payload.n / 2;
    tl_buf_reset(data);
    if (tl_buf_reserve(data, n + 1) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        const int high = digit(payload.p[2 * i]);
        const int low = digit(payload.p[2 * i + 1]);
        if (high > 15 || low > 15)
            return false;
        data->p[n > 8 ? i : n - 1 - i] = (uint8_t)(high << 4 | low);
    }
    data->n = n;
    out->n = (uint32_t)n;
    out->data = data->p;
    return true;
}

static bool parse_number(uint8_t kind, struct tl_bytes line, int base, struct tl_item *out)
{
    *out = (struct tl_item){.kind = kind, .flags = TL_ITEM_HAS_VALUE};
    return number(word(&line), base, &out->value);
}

/* Copy the rest of the line as a NUL-terminated text. */
static bool parse_note(struct tl_bytes line, struct tl_buf *data, struct tl_item *out)
{
    tl_buf_reset(data);
    if (tl_buf_add(data, line.p, line.n) < 0 || tl_buf_add(data, "", 1) < 0)
        return false;
    for (size_t i = 0; i + 1 < data->n; i++) {
        if (data->p[i] < ' ')
            data->p[i] = ' ';
    }
    *out = (struct tl_item){.kind = TL_ITEM_NOTE, .text = (const char *)data->p};
    return true;
}

static bool parse_hardware(struct tl_bytes line, struct tl_buf *data, struct tl_item *out)
{
    return parse_note(line, data, out) && tl_hardware_parse((const char *)data->p, out);
}

/* "NAME NUMBER PC", "-" where one is unknown; and "interrupt". */
static bool parse_exception(struct tl_bytes line, struct tl_buf *data, struct tl_item *out)
{
    const struct tl_bytes name = word(&line);
    const struct tl_bytes which = word(&line);
    const struct tl_bytes place = word(&line);
    uint64_t sub = TL_EXCEPTION_UNKNOWN;
    if (name.n == 0 ||
        (!is(which, "-") && (!number(which, 10, &sub) || sub >= TL_EXCEPTION_UNKNOWN)))
        return false;
    *out = (struct tl_item){.kind = TL_ITEM_EXCEPTION, .sub = (uint16_t)sub};
    if (is(word(&line), "interrupt"))
        out->sub |= TL_EXCEPTION_INTERRUPT;
    if (number(place, 16, &out->pc))
        out->flags |= TL_ITEM_HAS_PC;
    else if (!is(place, "-"))
        return false;
    tl_buf_reset(data);
    if (!is(name, "-") && tl_buf_add(data, name.p, name.n) < 0)
        return false;
    if (tl_buf_add(data, "", 1) < 0)
        return false;
    out->text = (const char *)data->p;
    return true;
}

/* "J n" */
static void parse_points(struct tl_bytes line, struct tl_stf_told *told)
{
    uint64_t how;
    told->points = number(word(&line), 10, &how) && how < TL_STF_POINTS_UNSAID;
    told->how = told->points ? (uint8_t)how : 0;
}

bool tl_stf_comment_note(struct tl_bytes text, struct tl_buf *data, struct tl_item *out)
{
    return parse_note(text, data, out);
}

bool tl_stf_comment_parse(struct tl_bytes text, struct tl_buf *data, struct tl_item *out,
                          struct tl_stf_told *told)
{
    struct tl_bytes line = text;
    const struct tl_bytes what = word(&line);
    *told = (struct tl_stf_told){0};
    if (what.n != 1)
        return false;
    switch (what.p[0]) {
    case 'B':
        for (struct tl_bytes w = word(&line); w.n; w = word(&line))
            told->branch_flags |= is(w, "call")     ? TL_ITEM_CALL
                                  : is(w, "return") ? TL_ITEM_RETURN
                                                    : 0;
        return false;
    case 'J':
        parse_points(line, told);
        return false;
    case TL_STF_LEAVES:
        told->leaves = true;
        return false;
    case 'm':
        told->again = true;
        return parse_number(TL_ITEM_MODE, line, 16, out);
    case 'M':
        return parse_number(TL_ITEM_MODE, line, 16, out);
    case 'X':
        return parse_exception(line, data, out);
    case 'R':
        *out = (struct tl_item){.kind = TL_ITEM_ERET};
        return true;
    case 'O':
        *out = (struct tl_item){.kind = TL_ITEM_TRACE_ON};
        return true;
    case 'T':
        return parse_number(TL_ITEM_TIME, line, 10, out);
    case 'Y':
        return parse_number(TL_ITEM_CYCLES, line, 10, out);
    case 'V':
        return parse_number(TL_ITEM_EVENT, line, 16, out);
    case 'G':
        return parse_gap(line, out);
    case 'S':
        return parse_software(line, data, out);
    case 'A':
    case 'H':
        if (line.n && *line.p == ' ') {
            line.p++;
            line.n--;
        }
        return what.p[0] == 'A' ? parse_note(line, data, out) : parse_hardware(line, data, out);
    default:
        return false;
    }
}
