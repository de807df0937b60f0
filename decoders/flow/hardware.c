/* SPDX-License-Identifier: MIT */
/*
 * Text of hardware events. Each kind is a row of fields, and each field is written, and described
 * to readers, in one place: everything else only passes the text on.
 */
#include "flow/hardware.h"

#include "image/variables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field_id {
    END,
    ACTION,
    NUMBER,
    NAME,
    PC,
    COUNTERS,
    BITS,
    COMPARATOR,
    ACCESS,
    ADDRESS,
    VALUE,
    TARGET,
    BACK
};
enum { FIELDS_MAX = 6 };

/* NAME is always last, since it may contain spaces. */
static const struct row {
    const char *name;
    uint8_t fields[FIELDS_MAX + 1]; /* enum field_id */
} rows[TL_HARDWARE_KINDS] = {
    [TL_HARDWARE_EXCEPTION] = {"exception", {ACTION, NUMBER, NAME}},
    [TL_HARDWARE_PC] = {"pc", {PC}},
    [TL_HARDWARE_SLEEP] = {"sleep", {END}},
    [TL_HARDWARE_PROHIBITED] = {"prohibited", {END}},
    [TL_HARDWARE_COUNTER] = {"counter", {COUNTERS}},
    [TL_HARDWARE_PMU] = {"pmu", {BITS}},
    [TL_HARDWARE_MATCH] = {"match", {COMPARATOR, NAME}},
    [TL_HARDWARE_OTHER] = {"source", {NUMBER, VALUE}},
    [TL_HARDWARE_DATA] = {"data", {ACCESS, COMPARATOR, ADDRESS, VALUE, PC, NAME}},
    [TL_HARDWARE_SAMPLE] = {"sample", {PC, TARGET, BACK, NAME}},
    [TL_HARDWARE_SPECULATIVE] = {"speculative", {PC, TARGET, BACK, NAME}},
};

static const char *const actions[] = {"-", "enter", "exit", "return"};
static const char *const accesses[] = {"access", "read", "write"};
static const char *const counters[] = {"cpi", "exc", "sleep", "lsu", "fold", "cyc"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- writing --------------------------------------------------------------------------------- */

static void put_action(const struct tl_hardware *e, char *out, size_t size)
{
    snprintf(out, size, "%s", actions[e->action < COUNT(actions) ? e->action : 0]);
}

static void put_access(const struct tl_hardware *e, char *out, size_t size)
{
    snprintf(out, size, "%s", accesses[e->action < COUNT(accesses) ? e->action : 0]);
}

static void put_number(const struct tl_hardware *e, char *out, size_t size)
{
    snprintf(out, size, "%u", e->number);
}

static void put_name(const struct tl_hardware *e, char *out, size_t size)
{
    snprintf(out, size, "%s", e->name ? e->name : "-");
}

static void put_pc(const struct tl_hardware *e, char *out, size_t size)
{
    if (e->has_pc)
        snprintf(out, size, "%016" PRIx64, e->pc);
    else
        snprintf(out, size, "-");
}

static void put_place(uint64_t address, char *out, size_t size)
{
    if (address)
        snprintf(out, size, "%016" PRIx64, address);
    else
        snprintf(out, size, "-");
}

static void put_target(const struct tl_hardware *e, char *out, size_t size)
{
    put_place(e->target, out, size);
}

static void put_back(const struct tl_hardware *e, char *out, size_t size)
{
    put_place(e->back, out, size);
}

/* "cpi,sleep" */
static void put_counters(const struct tl_hardware *e, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < COUNT(counters); i++)
        if (e->value >> i & 1)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "," : "", counters[i]);
}

static void put_bits(const struct tl_hardware *e, char *out, size_t size)
{
    snprintf(out, size, "%02" PRIx32, e->value);
}

static void put_comparator(const struct tl_hardware *e, char *out, size_t size)
{
    snprintf(out, size, "%u", e->comparator);
}

/* Eight digits, an x for each that is not known. */
static void put_address(const struct tl_hardware *e, char *out, size_t size)
{
    const int known = 2 * e->known;
    if (known == 0)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%.*s%0*" PRIx32, 8 - known, "xxxxxxxx", known, e->address);
}

/* As many digits as the access has. */
static void put_value(const struct tl_hardware *e, char *out, size_t size)
{
    if (e->size == 0)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%0*" PRIx32, 2 * e->size, e->value);
}

static const struct field {
    const char *name; /* in JSON */
    enum tl_line_type type;
    void (*put)(const struct tl_hardware *event, char *out, size_t size);
} fields[] = {
    [ACTION] = {"action", TL_LINE_TEXT, put_action},
    [NUMBER] = {"number", TL_LINE_NUMBER, put_number},
    [NAME] = {"name", TL_LINE_TEXT, put_name},
    [PC] = {"pc", TL_LINE_ADDRESS, put_pc},
    [COUNTERS] = {"counters", TL_LINE_TEXT, put_counters},
    [BITS] = {"bits", TL_LINE_ADDRESS, put_bits},
    [COMPARATOR] = {"comparator", TL_LINE_NUMBER, put_comparator},
    [ACCESS] = {"access", TL_LINE_TEXT, put_access},
    [ADDRESS] = {"address", TL_LINE_TEXT, put_address},
    [VALUE] = {"value", TL_LINE_TEXT, put_value},
    [TARGET] = {"target", TL_LINE_ADDRESS, put_target},
    [BACK] = {"back", TL_LINE_ADDRESS, put_back},
};

char *tl_hardware_text(const struct tl_hardware *event, char out[static TL_HARDWARE_TEXT])
{
    const struct row *const row = &rows[event->kind];
    size_t n = (size_t)snprintf(out, TL_HARDWARE_TEXT, "%s", row->name);
    for (const uint8_t *f = row->fields; *f != END; f++) {
        out[n++] = ' ';
        fields[*f].put(event, out + n, TL_HARDWARE_TEXT - n);
        n += strlen(out + n);
    }
    return out;
}

void tl_hardware_item(const struct tl_hardware *event, struct tl_item *item)
{
    item->sub = (uint16_t)(event->kind | event->action << TL_HARDWARE_KIND_BITS);
    const bool ran = event->has_pc && event->kind != TL_HARDWARE_SPECULATIVE;
    item->flags = ran ? TL_ITEM_HAS_PC : 0;
    item->pc = ran ? event->pc : 0;
    if (event->kind == TL_HARDWARE_EXCEPTION) {
        item->flags |= TL_ITEM_HAS_VALUE;
        item->value = event->number;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The first word of `left`, of which the rest remains. */
static struct tl_bytes next_word(struct tl_bytes *left, bool last)
{
    const uint8_t *const space = last || left->n == 0 ? NULL : memchr(left->p, ' ', left->n);
    const struct tl_bytes word = {left->p, space ? (size_t)(space - left->p) : left->n};
    const size_t used = word.n + (space != NULL);
    left->p += used;
    left->n -= used;
    return word;
}

static bool is(struct tl_bytes word, const char *text)
{
    return word.n == strlen(text) && memcmp(word.p, text, word.n) == 0;
}

static const struct row *row_of(struct tl_bytes word)
{
    for (size_t i = 0; i < TL_HARDWARE_KINDS; i++)
        if (is(word, rows[i].name))
            return &rows[i];
    return NULL;
}

static uint64_t number_of(struct tl_bytes word, enum tl_line_type type)
{
    char digits[24];
    if (type == TL_LINE_TEXT)
        return 0;
    snprintf(digits, sizeof digits, "%.*s",
             (int)(word.n < sizeof digits ? word.n : sizeof digits - 1), (const char *)word.p);
    return strtoull(digits, NULL, type == TL_LINE_ADDRESS ? 16 : 10);
}

/* Index of a word in a list; 0: it is not in it. */
static unsigned index_of(struct tl_bytes word, const char *const *list, unsigned n)
{
    unsigned i = n - 1;
    while (i > 0 && !is(word, list[i]))
        i--;
    return i;
}

static void take_field(uint8_t id, struct tl_bytes word, struct tl_hardware *e)
{
    const bool known = !is(word, "-");
    switch ((enum field_id)id) {
    case ACTION:
        e->action = (uint8_t)index_of(word, actions, COUNT(actions));
        break;
    case ACCESS:
        e->action = (uint8_t)index_of(word, accesses, COUNT(accesses));
        break;
    case NUMBER:
        e->number = (uint16_t)number_of(word, TL_LINE_NUMBER);
        break;
    case PC:
        e->has_pc = known;
        e->pc = known ? number_of(word, TL_LINE_ADDRESS) : 0;
        break;
    case TARGET:
        e->target = known ? number_of(word, TL_LINE_ADDRESS) : 0;
        break;
    case BACK:
        e->back = known ? number_of(word, TL_LINE_ADDRESS) : 0;
        break;
    default: /* only in the text */
        break;
    }
}

/* Read what a text has besides names and values. False: it is no such text. */
static bool read_event(const char *text, struct tl_hardware *event)
{
    struct tl_bytes left = {(const uint8_t *)text, strlen(text)};
    const struct row *const row = row_of(next_word(&left, false));
    *event = (struct tl_hardware){0};
    if (!row)
        return false;
    event->kind = (uint8_t)(row - rows);
    for (const uint8_t *f = row->fields; *f != END; f++)
        take_field(*f, next_word(&left, *f == NAME), event);
    return true;
}

bool tl_hardware_sample(const char *text, uint64_t *pc, uint64_t *target, uint64_t *back)
{
    struct tl_hardware event;
    if (!read_event(text, &event) || event.kind != TL_HARDWARE_SAMPLE || !event.has_pc)
        return false;
    *pc = event.pc;
    *target = event.target;
    *back = event.back;
    return true;
}

bool tl_hardware_parse(const char *text, struct tl_item *item)
{
    struct tl_hardware event;
    if (!read_event(text, &event))
        return false;
    *item = (struct tl_item){.kind = TL_ITEM_HARDWARE, .text = text};
    tl_hardware_item(&event, item);
    return true;
}

/* The first place of `what` in a text; text.n: none. */
static size_t place_of(struct tl_bytes text, const char *what)
{
    const uint8_t *const at = text.n ? memmem(text.p, text.n, what, strlen(what)) : NULL;
    return at ? (size_t)(at - text.p) : text.n;
}

/* "NAME = VALUE (TYPE)": cut off what is behind the name, and add it as fields. */
static size_t typed_fields(struct tl_bytes *name, struct tl_line_field *out)
{
    const size_t equals = place_of(*name, TL_VARIABLE_VALUE), n = strlen(TL_VARIABLE_VALUE);
    if (equals == name->n)
        return 0;
    struct tl_bytes value = {name->p + equals + n, name->n - equals - n};
    const size_t open = place_of(value, TL_VARIABLE_TYPE), m = strlen(TL_VARIABLE_TYPE);
    const bool typed = open + m < value.n;
    name->n = equals;
    out[0] = (struct tl_line_field){.name = "typed", .type = TL_LINE_TEXT, .text = {value.p, open}};
    if (typed)
        out[1] = (struct tl_line_field){.name = "type",
                                        .type = TL_LINE_TEXT,
                                        .text = {value.p + open + m, value.n - open - m - 1}};
    return 1 + typed;
}

size_t tl_hardware_fields(struct tl_bytes text, struct tl_line_field out[static TL_LINE_FIELDS])
{
    const struct tl_bytes kind = next_word(&text, false);
    const struct row *const row = row_of(kind);
    size_t n = 0;
    out[n++] = (struct tl_line_field){.name = "event", .type = TL_LINE_TEXT, .text = kind};
    for (const uint8_t *f = row ? row->fields : &(const uint8_t){END}; *f != END; f++) {
        struct tl_bytes word = next_word(&text, *f == NAME);
        if (*f == NAME && is(kind, rows[TL_HARDWARE_DATA].name))
            n += typed_fields(&word, out + n);
        if (word.n > 0 && !is(word, "-"))
            out[n++] = (struct tl_line_field){.name = fields[*f].name,
                                              .type = fields[*f].type,
                                              .text = word,
                                              .value = number_of(word, fields[*f].type)};
    }
    return n;
}
