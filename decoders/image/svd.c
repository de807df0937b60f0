/* SPDX-License-Identifier: MIT */
/*
 * Reads what is needed of an SVD file as its elements end: then everything inside them is known, so
 * that clusters can be repeated with all their registers. XML is read as far as these files use it;
 * names that are no plain words are passed over, since lines of text contain them.
 */
#include "image/svd.h"

#include "base/buf.h"
#include "image/image_parts.h"
#include "image/xml.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = TL_XML_WORD, IRQS = 480, MAX_REGISTERS = 1 << 17, MAX_PERIPHERALS = 1 << 12 };
enum { BITS = 8, MAX_DERIVED = 8 };

enum kind { OTHER, PERIPHERAL, CLUSTER, REGISTER, INTERRUPT };

/* An element that is open, with what its children say. */
struct element {
    enum kind kind;
    char name[NAME], from[NAME]; /* "": none */
    char index[NAME];            /* of an array: "0-3", "A,B" */
    uint64_t at, value;          /* address or offset; of an interrupt its number */
    uint64_t dim, step;          /* 0: no array */
    uint64_t bits;               /* of a register */
    size_t first;                /* of its registers */
};

struct reg {
    char name[NAME];
    uint64_t at;
    uint32_t bytes;
};

struct peripheral {
    char name[NAME], from[NAME];
    uint64_t at;
    size_t first, n; /* registers */
};

struct svd {
    struct tl_image *image;
    struct tl_xml xml;
    struct element open[TL_XML_DEPTH];
    struct reg *regs;
    size_t n_regs, cap_regs;
    struct peripheral *peripherals;
    size_t n_peripherals, cap_peripherals;
    size_t told; /* registers added to the image */
};

/* Put number `i` of an array in the place of "%s". False: there is no such place, or no room. */
static bool indexed(char out[static NAME], const char *name, const char *index, uint64_t i)
{
    const char *const place = strstr(name, "%s");
    char word[NAME] = "";
    if (!place)
        return false;
    if (strchr(index, ',')) {
        const char *p = index;
        for (uint64_t k = 0; k < i && p; k++)
            p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL;
        snprintf(word, sizeof word, "%.*s", p ? (int)strcspn(p, ",") : 0, p ? p : "");
    } else if (isalpha((unsigned char)index[0]) && index[1] == '-' && i < 26) {
        snprintf(word, sizeof word, "%c", (char)(index[0] + (char)i));
    } else {
        snprintf(word, sizeof word, "%llu", (unsigned long long)i + strtoul(index, NULL, 10));
    }
    const int n = snprintf(out, NAME, "%.*s%s%s", (int)(place - name), name, word, place + 2);
    return word[0] && n > 0 && n < NAME;
}

/* ---- what is described ----------------------------------------------------------------------- */

static int add_register(struct svd *s, const char *name, uint64_t at, uint32_t bytes)
{
    if (s->n_regs == MAX_REGISTERS)
        return TL_LIMIT;
    if (tl_grow(&s->regs, &s->cap_regs, s->n_regs + 1, sizeof *s->regs) < 0)
        return TL_NOMEM;
    struct reg *const r = &s->regs[s->n_regs++];
    *r = (struct reg){.at = at, .bytes = bytes};
    strcpy(r->name, name);
    return TL_OK;
}

/* Size in bits: its own, or that of what it is in. */
static uint64_t bits_of(const struct svd *s)
{
    for (size_t i = s->xml.depth + 1; i > 0; i--) /* the element has just ended */
        if (s->open[i - 1].bits)
            return s->open[i - 1].bits;
    return 32;
}

/* How often an element stands there: more than MAX_REGISTERS are too many. */
static uint64_t times(const struct element *e)
{
    return e->dim == 0 ? 1 : e->dim <= MAX_REGISTERS ? e->dim : MAX_REGISTERS + 1;
}

/* The name of element `i` of an array, or the name. False: it has none. */
static bool name_of(const struct element *e, uint64_t i, char out[static NAME])
{
    if (e->dim)
        return indexed(out, e->name, e->index, i);
    strcpy(out, e->name);
    return e->name[0] && !strchr(e->name, '%');
}

static int end_register(struct svd *s, const struct element *e)
{
    const uint64_t bits = bits_of(s);
    char name[NAME];
    int rc = TL_OK;
    for (uint64_t i = 0; i < times(e) && rc == TL_OK && name_of(e, i, name); i++)
        if (bits >= BITS && bits <= 64)
            rc = add_register(s, name, e->at + i * e->step, (uint32_t)(bits / BITS));
    return rc;
}

/* Its registers get its name in front, once for each time that it stands there. */
static int end_cluster(struct svd *s, const struct element *e)
{
    const size_t n = s->n_regs - e->first;
    char name[NAME], both[2 * NAME];
    int rc = TL_OK;
    for (uint64_t i = 0; i < times(e) && n > 0 && rc == TL_OK && name_of(e, i, name); i++)
        for (size_t k = 0; k < n && rc == TL_OK; k++) {
            const struct reg r = s->regs[e->first + k];
            snprintf(both, sizeof both, "%s.%s", name, r.name);
            rc = strlen(both) < NAME ? add_register(s, both, e->at + i * e->step + r.at, r.bytes)
                                     : TL_LIMIT;
        }
    memmove(s->regs + e->first, s->regs + e->first + n,
            (s->n_regs - e->first - n) * sizeof *s->regs);
    s->n_regs -= n;
    return rc;
}

static int end_peripheral(struct svd *s, const struct element *e)
{
    char name[NAME];
    for (uint64_t i = 0; i < times(e) && name_of(e, i, name); i++) {
        if (s->n_peripherals == MAX_PERIPHERALS)
            return TL_LIMIT;
        if (tl_grow(&s->peripherals, &s->cap_peripherals, s->n_peripherals + 1,
                    sizeof *s->peripherals) < 0)
            return TL_NOMEM;
        struct peripheral *const p = &s->peripherals[s->n_peripherals++];
        *p = (struct peripheral){"", "", e->at + i * e->step, e->first, s->n_regs - e->first};
        strcpy(p->name, name);
        strcpy(p->from, e->from);
    }
    return TL_OK;
}

/* Of several names for a number the first one is used. */
static int end_interrupt(struct svd *s, const struct element *e)
{
    struct tl_image *const image = s->image;
    if (!image->irqs) {
        const char **const irqs = calloc(IRQS, sizeof *irqs);
        if (!irqs || tl_image_own(image, (void *)irqs, IRQS * sizeof *irqs) < 0)
            return TL_NOMEM;
        image->irqs = irqs;
    }
    if (e->value >= IRQS || !e->name[0] || image->irqs[e->value])
        return TL_OK;
    image->irqs[e->value] = tl_image_keep(image, e->name, strlen(e->name) + 1);
    return image->irqs[e->value] ? TL_OK : TL_NOMEM;
}

/* A child without children: what its parent says. */
static void take_value(struct element *parent, const char *tag, struct tl_bytes text)
{
    const struct {
        const char *tag;
        uint64_t *to;
    } numbers[] = {{"baseAddress", &parent->at}, {"addressOffset", &parent->at},
                   {"value", &parent->value},    {"size", &parent->bits},
                   {"dim", &parent->dim},        {"dimIncrement", &parent->step}};
    if (strcmp(tag, "name") == 0)
        tl_xml_word(parent->name, text);
    else if (strcmp(tag, "dimIndex") == 0)
        tl_xml_word(parent->index, text);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(tag, numbers[i].tag) == 0 && !tl_xml_number(numbers[i].to, text))
            *numbers[i].to = 0;
}

/* ---- elements -------------------------------------------------------------------------------- */

static enum kind kind_of(const struct tl_xml *x)
{
    static const struct {
        const char *tag, *in;
        enum kind kind;
    } kinds[] = {{"peripheral", "peripherals", PERIPHERAL}, {"cluster", "registers", CLUSTER},
                 {"cluster", "cluster", CLUSTER},           {"register", "registers", REGISTER},
                 {"register", "cluster", REGISTER},         {"interrupt", "peripheral", INTERRUPT}};
    const char *const tag = x->tags[x->depth - 1];
    const char *const in = x->depth > 1 ? x->tags[x->depth - 2] : "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(tag, kinds[i].tag) == 0 && strcmp(in, kinds[i].in) == 0)
            return kinds[i].kind;
    return OTHER;
}

static void begin_element(struct svd *s)
{
    struct element *const e = &s->open[s->xml.depth - 1];
    *e = (struct element){.kind = kind_of(&s->xml), .value = IRQS, .first = s->n_regs};
    tl_xml_word(e->from, tl_xml_attribute(&s->xml, "derivedFrom"));
}

static int end_element(struct svd *s)
{
    typedef int end(struct svd *, const struct element *);
    static end *const ends[] = {[PERIPHERAL] = end_peripheral,
                                [CLUSTER] = end_cluster,
                                [REGISTER] = end_register,
                                [INTERRUPT] = end_interrupt};
    const size_t depth = s->xml.depth;
    const struct element *const e = &s->open[depth];
    if (e->kind != OTHER)
        return ends[e->kind](s, e);
    if (depth > 0)
        take_value(&s->open[depth - 1], s->xml.tags[depth], s->xml.text);
    return TL_OK;
}

static int read_all(struct svd *s)
{
    int event, rc = TL_BAD; /* without any element */
    while ((event = tl_xml_next(&s->xml)) > 0) {
        if (strcmp(s->xml.tags[0], "device") != 0)
            return TL_BAD;
        rc = TL_OK;
        if (event == TL_XML_BEGIN)
            begin_element(s);
        else if ((rc = end_element(s)) < 0)
            return rc;
    }
    return event == TL_EOF ? rc : event;
}

/* ---- into the image -------------------------------------------------------------------------- */

/* The peripheral whose registers it has. */
static const struct peripheral *source_of(const struct svd *s, const struct peripheral *p)
{
    for (unsigned hops = 0; p->n == 0 && p->from[0] && hops < MAX_DERIVED; hops++) {
        size_t i = 0;
        while (i < s->n_peripherals && strcmp(s->peripherals[i].name, p->from) != 0)
            i++;
        if (i == s->n_peripherals)
            break;
        p = &s->peripherals[i];
    }
    return p;
}

static int tell_peripheral(struct svd *s, const struct peripheral *p)
{
    enum { WORST = UINT8_MAX };
    const struct peripheral *const of = source_of(s, p);
    char name[2 * NAME];
    for (size_t i = 0; i < of->n; i++) {
        const struct reg *const r = &s->regs[of->first + i];
        snprintf(name, sizeof name, "%s.%s", p->name, r->name);
        const char *const kept = tl_image_keep(s->image, name, strlen(name) + 1);
        const struct tl_part_symbol symbol = {
            .offset = p->at + r->at, .size = r->bytes, .name = kept, .rank = WORST};
        if (s->told++ == MAX_REGISTERS)
            return TL_LIMIT;
        if (!kept || tl_variables_add(s->image, &symbol) < 0)
            return TL_NOMEM;
    }
    return TL_OK;
}

bool tl_svd_is(struct tl_bytes head)
{
    static const char xml[] = "<?xml", device[] = "<device";
    enum { MARK = 3 }; /* bytes of a byte order mark that may precede */
    const uint8_t *const p = head.n > MARK ? memchr(head.p, '<', MARK + 1) : NULL;
    const size_t n = p ? head.n - (size_t)(p - head.p) : 0;
    return (n >= sizeof xml && memcmp(p, xml, sizeof xml - 1) == 0) ||
           (n >= sizeof device && memcmp(p, device, sizeof device - 1) == 0);
}

int tl_image_add_svd(struct tl_image *image, struct tl_bytes file, const char *name,
                     struct tl_fail *fail)
{
    struct svd *const s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "%.120s: out of memory", name);
    s->image = image;
    s->xml.p = (const char *)file.p;
    s->xml.end = s->xml.p + file.n;
    int rc = read_all(s);
    for (size_t i = 0; i < s->n_peripherals && rc == TL_OK; i++)
        rc = tell_peripheral(s, &s->peripherals[i]);
    free(s->regs);
    free(s->peripherals);
    free(s);
    if (rc == TL_NOMEM)
        return tl_fail_set(fail, rc, "%.120s: out of memory", name);
    return rc < 0 ? tl_fail_set(fail, TL_BAD, "%.120s: %s", name,
                                rc == TL_LIMIT ? "describes too many registers"
                                               : "is XML, but no description of a chip (SVD)")
                  : TL_OK;
}

const char *tl_image_irq(const struct tl_image *image, unsigned n)
{
    return image && image->irqs && n < IRQS ? image->irqs[n] : NULL;
}
