/* SPDX-License-Identifier: MIT */
/*
 * Goes from tag to tag. Comments, declarations and instructions to programs are passed over, so
 * that whoever reads sees elements only.
 */
#include "image/xml.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Go behind `end`. False: it is not there. */
static bool pass(struct tl_xml *x, const char *end)
{
    const char *const at = memmem(x->p, (size_t)(x->end - x->p), end, strlen(end));
    x->p = at ? at + strlen(end) : x->end;
    return at != NULL;
}

static bool begins(const struct tl_xml *x, const char *with)
{
    return (size_t)(x->end - x->p) >= strlen(with) && memcmp(x->p, with, strlen(with)) == 0;
}

static int end_element(struct tl_xml *x, const char *tag)
{
    if (x->depth == 0 || strcmp(x->tags[x->depth - 1], tag) != 0)
        return TL_BAD;
    x->depth--;
    return TL_XML_END;
}

/* A tag, behind its '<'. */
static int read_tag(struct tl_xml *x)
{
    const bool closes = begins(x, "/");
    const char *const begin = x->p + closes;
    char tag[TL_XML_TAG];
    size_t n = 0;
    if (!pass(x, ">"))
        return TL_BAD;
    const char *const end = x->p - 1;
    while (begin + n < end && !isspace((unsigned char)begin[n]) && begin[n] != '/')
        n++;
    if (n == 0)
        return TL_BAD;
    snprintf(tag, sizeof tag, "%.*s", (int)(n < sizeof tag ? n : sizeof tag - 1), begin);
    if (closes)
        return end_element(x, tag);
    if (x->depth == TL_XML_DEPTH)
        return TL_BAD;
    memcpy(x->tags[x->depth++], tag, sizeof tag);
    x->attributes = (struct tl_bytes){(const uint8_t *)begin + n, (size_t)(end - begin) - n};
    x->ends = end[-1] == '/';
    return TL_XML_BEGIN;
}

int tl_xml_next(struct tl_xml *x)
{
    if (x->ends) {
        x->ends = false;
        x->text.n = 0;
        x->depth--;
        return TL_XML_END;
    }
    for (;;) {
        const char *const text = x->p;
        if (!pass(x, "<"))
            return x->depth == 0 ? TL_EOF : TL_BAD;
        x->text = (struct tl_bytes){(const uint8_t *)text, (size_t)(x->p - 1 - text)};
        if (!begins(x, "?") && !begins(x, "!"))
            return read_tag(x);
        if (!pass(x, begins(x, "!--") ? "-->" : ">"))
            return TL_BAD;
    }
}

struct tl_bytes tl_xml_attribute(const struct tl_xml *x, const char *name)
{
    const size_t n = strlen(name);
    const uint8_t *p = x->attributes.p, *const last = p + x->attributes.n;
    while ((p = memmem(p, (size_t)(last - p), name, n))) {
        const uint8_t *const value = p + n + 2; /* behind `="` */
        if (value < last && isspace(p[-1]) && p[n] == '=') {
            const uint8_t *const end = memchr(value, value[-1], (size_t)(last - value));
            return (struct tl_bytes){value, end ? (size_t)(end - value) : 0};
        }
        p += n;
    }
    return (struct tl_bytes){NULL, 0};
}

/* ---- texts ----------------------------------------------------------------------------------- */

static struct tl_bytes trimmed(struct tl_bytes text)
{
    while (text.n > 0 && isspace(*text.p)) {
        text.p++;
        text.n--;
    }
    while (text.n > 0 && isspace(text.p[text.n - 1]))
        text.n--;
    return text;
}

void tl_xml_word(char out[static TL_XML_WORD], struct tl_bytes text)
{
    text = trimmed(text);
    out[0] = '\0';
    for (size_t i = 0; i < text.n; i++)
        if (text.n >= TL_XML_WORD || (!isalnum(text.p[i]) && !strchr("_.-,[]%:", text.p[i])))
            return;
    for (size_t i = 0; i < text.n; i++)
        out[i] = (char)text.p[i];
    out[text.n] = '\0';
}

bool tl_xml_number(uint64_t *out, struct tl_bytes text)
{
    char digits[TL_XML_WORD], *end;
    tl_xml_word(digits, text);
    errno = 0;
    *out = strtoull(digits, &end, strncasecmp(digits, "0x", 2) == 0 ? 16 : 10);
    return isdigit((unsigned char)digits[0]) && *end == '\0' && errno == 0;
}
