/* SPDX-License-Identifier: MIT */
/*
 * Stores names and values in one text, with offsets instead of pointers. The text moves when it
 * grows, and a request has so few fields that a linear search suffices.
 */
#include "net/fields.h"

#include "base/digits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_PAIRS 64

#define USUAL 512 /* sufficient bytes of text for most lists */

void tl_fields_fini(struct tl_fields *fields)
{
    tl_buf_fini(&fields->text);
    free(fields->at);
    *fields = (struct tl_fields){0};
}

int tl_fields_add_n(struct tl_fields *fields, const char *name, size_t name_n, const char *value,
                    size_t value_n)
{
    if (name_n > UINT32_MAX / 4 || value_n > UINT32_MAX / 4 || fields->text.n > UINT32_MAX / 4)
        return TL_LIMIT;
    int rc = tl_grow(&fields->at, &fields->cap, fields->n + 1, sizeof *fields->at);
    if (rc < 0)
        return rc;
    const size_t need = name_n + value_n + 2;
    rc = tl_buf_reserve(&fields->text, fields->text.cap == 0 && need < USUAL ? USUAL : need);
    if (rc < 0)
        return rc;
    struct tl_field *const f = &fields->at[fields->n++];
    uint8_t *const p = fields->text.p + fields->text.n;
    *f = (struct tl_field){
        .name = (uint32_t)fields->text.n,
        .value = (uint32_t)(fields->text.n + name_n + 1),
        .name_n = (uint32_t)name_n,
        .value_n = (uint32_t)value_n,
    };
    memcpy(p, name, name_n);
    p[name_n] = 0;
    memcpy(p + name_n + 1, value, value_n);
    p[name_n + 1 + value_n] = 0;
    fields->text.n += name_n + value_n + 2;
    return TL_OK;
}

int tl_fields_add(struct tl_fields *fields, const char *name, const char *value)
{
    return tl_fields_add_n(fields, name, strlen(name), value, strlen(value));
}

int tl_fields_addf(struct tl_fields *fields, const char *name, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        return TL_LIMIT;
    return tl_fields_add_n(fields, name, strlen(name), text, (size_t)n);
}

const char *tl_fields_get(const struct tl_fields *fields, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < fields->n; i++)
        if (fields->at[i].name_n == n && !strcasecmp(tl_fields_name(fields, i), name))
            return tl_fields_value(fields, i);
    return NULL;
}

/* "q=0", "q=0.000": rejected by the client. */
static bool refused(const char *parameters, const char *end)
{
    for (const char *p = parameters; p + 2 < end; p++) {
        if ((p[0] != 'q' && p[0] != 'Q') || p[1] != '=')
            continue;
        for (p += 2; p < end && (*p == '0' || *p == '.'); p++)
            ;
        return p == end || *p < '1' || *p > '9';
    }
    return false;
}

bool tl_list_has(const char *list, const char *token)
{
    const size_t n = strlen(token);
    while (list && *list) {
        list += strspn(list, " \t,");
        const char *const end = list + strcspn(list, ",");
        const char *name_end = list;
        while (name_end < end && *name_end != ';' && *name_end != ' ' && *name_end != '\t')
            name_end++;
        if ((size_t)(name_end - list) == n && !strncasecmp(list, token, n))
            return !refused(name_end, end);
        list = end;
    }
    return false;
}

int tl_percent_decode(char *text, size_t n, bool plus)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%') {
            if (n - i < 3 || tl_hex_digit(text[i + 1]) < 0 || tl_hex_digit(text[i + 2]) < 0)
                return TL_BAD;
            c = (char)(tl_hex_digit(text[i + 1]) << 4 | tl_hex_digit(text[i + 2]));
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (!c)
            return TL_BAD;
        text[out++] = c;
    }
    text[out] = 0;
    return (int)out;
}

static int add_pair(struct tl_fields *out, const char *text, size_t n)
{
    const char *const equals = memchr(text, '=', n);
    const size_t name_n = equals ? (size_t)(equals - text) : n;
    const size_t value_n = equals ? n - name_n - 1 : 0;
    if (name_n == 0 || out->n >= MAX_PAIRS)
        return name_n ? TL_LIMIT : TL_OK;
    int rc = tl_fields_add_n(out, text, name_n, equals ? equals + 1 : "", value_n);
    if (rc < 0)
        return rc;
    struct tl_field *const f = &out->at[out->n - 1];
    rc = tl_percent_decode((char *)out->text.p + f->name, name_n, true);
    if (rc < 0)
        return rc;
    f->name_n = (uint32_t)rc;
    rc = tl_percent_decode((char *)out->text.p + f->value, value_n, true);
    if (rc < 0)
        return rc;
    f->value_n = (uint32_t)rc;
    return TL_OK;
}

int tl_query_parse(struct tl_fields *out, const char *text, size_t n)
{
    for (const char *end = text + n; text < end;) {
        const char *const amp = memchr(text, '&', (size_t)(end - text));
        const char *const stop = amp ? amp : end;
        const int rc = add_pair(out, text, (size_t)(stop - text));
        if (rc < 0)
            return rc;
        text = stop + 1;
    }
    return TL_OK;
}

bool tl_names_mangled(const struct tl_fields *headers)
{
    const char *const names = tl_fields_get(headers, "tracelake-names");
    return names && strcasecmp(names, "mangled") == 0;
}
