/* SPDX-License-Identifier: MIT */
/*
 * Functions of texts that SQLite has, too, but at a cost that nothing bounds: its printf() writes
 * 2,000,000,000 characters one by one though a text may have a million, and its instr(), replace()
 * and trim() take the square of a text's length. A function cannot be interrupted, so each must be
 * short.
 */
#include "sql/functions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WIDEST 1000 /* width and precision in a format, bytes of a set of characters */

static_assert(WIDEST == 1000, "as the messages say");

/* ---- instr(), replace() ---------------------------------------------------------------------- */

/* Characters of UTF-8 in front of `end`. */
static sqlite3_int64 characters(const uint8_t *p, const uint8_t *end)
{
    sqlite3_int64 n = 0;
    for (; p < end; p++)
        n += (*p & 0xc0) != 0x80;
    return n;
}

void tl_sql_tell_instr(sqlite3_context *context, int n, sqlite3_value **values)
{
    const int type = sqlite3_value_type(values[0]), other = sqlite3_value_type(values[1]);
    const bool bytes = type == SQLITE_BLOB && other == SQLITE_BLOB;
    (void)n;
    if (type == SQLITE_NULL || other == SQLITE_NULL)
        return;
    const uint8_t *const text =
        bytes ? sqlite3_value_blob(values[0]) : sqlite3_value_text(values[0]);
    const uint8_t *const part =
        bytes ? sqlite3_value_blob(values[1]) : sqlite3_value_text(values[1]);
    const size_t text_n = (size_t)sqlite3_value_bytes(values[0]),
                 part_n = (size_t)sqlite3_value_bytes(values[1]);
    if (part_n > 0 && (!text || !part)) {
        sqlite3_result_int(context, 0);
        return;
    }
    const uint8_t *const found = part_n == 0 ? text : memmem(text, text_n, part, part_n);
    sqlite3_result_int64(context, part_n == 0 ? 1
                                  : !found    ? 0
                                  : bytes     ? found - text + 1
                                              : characters(text, found) + 1);
}

/* The text that was made, or why there is none. */
static void tell(sqlite3_context *context, sqlite3_str *out)
{
    const int error = sqlite3_str_errcode(out), n = sqlite3_str_length(out);
    char *const text = sqlite3_str_finish(out);
    if (error == SQLITE_TOOBIG)
        sqlite3_result_error_toobig(context);
    else if (error != SQLITE_OK)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_text(context, text ? text : "", n, SQLITE_TRANSIENT);
    sqlite3_free(text);
}

void tl_sql_tell_replaced(sqlite3_context *context, int n, sqlite3_value **values)
{
    const char *texts[3];
    size_t sizes[3];
    (void)n;
    for (int i = 0; i < 3; i++) {
        texts[i] = (const char *)sqlite3_value_text(values[i]);
        sizes[i] = (size_t)sqlite3_value_bytes(values[i]);
        if (!texts[i])
            return;
    }
    sqlite3_str *const out = sqlite3_str_new(sqlite3_context_db_handle(context));
    const char *at = texts[0], *const end = at + sizes[0], *found;
    while (sizes[1] > 0 && sqlite3_str_errcode(out) == SQLITE_OK &&
           (found = memmem(at, (size_t)(end - at), texts[1], sizes[1]))) {
        sqlite3_str_append(out, at, (int)(found - at));
        sqlite3_str_append(out, texts[2], (int)sizes[2]);
        at = found + sizes[1];
    }
    sqlite3_str_append(out, at, (int)(end - at));
    tell(context, out);
}

/* ---- trim() ---------------------------------------------------------------------------------- */

/* Bytes of the character that begins here. */
static size_t character_size(const char *p, const char *end)
{
    size_t n = p < end;
    while (p + n < end && ((uint8_t)p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* Characters to be trimmed. */
struct set {
    uint64_t codes[WIDEST]; /* those of up to 4 bytes: size and bytes, in order */
    size_t n;
    const char *p, *end; /* all */
};

static uint64_t code_of(const char *p, size_t n)
{
    uint64_t code = n;
    for (size_t i = 0; i < n; i++)
        code = code << 8 | (uint8_t)p[i];
    return code;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void set_of(struct set *set, const char *p, size_t n)
{
    set->n = 0;
    set->p = p;
    set->end = p + n;
    for (size_t k; p < set->end; p += k) {
        k = character_size(p, set->end);
        if (k <= 4)
            set->codes[set->n++] = code_of(p, k);
    }
    qsort(set->codes, set->n, sizeof *set->codes, compare);
}

static bool is_in(const struct set *set, const char *one, size_t n)
{
    const uint64_t code = code_of(one, n);
    if (n <= 4)
        return bsearch(&code, set->codes, set->n, sizeof code, compare) != NULL;
    size_t k; /* no character of Unicode is as long */
    for (const char *p = set->p; p < set->end; p += k) {
        k = character_size(p, set->end);
        if (k == n && memcmp(p, one, n) == 0)
            return true;
    }
    return false;
}

static void trim(sqlite3_context *context, int n, sqlite3_value **values, bool left, bool right)
{
    const char *p = (const char *)sqlite3_value_text(values[0]);
    const char *end = p ? p + sqlite3_value_bytes(values[0]) : NULL;
    const char *const given = n > 1 ? (const char *)sqlite3_value_text(values[1]) : " ";
    const size_t given_n = n > 1 ? (size_t)sqlite3_value_bytes(values[1]) : 1;
    struct set set;
    if (!p || !given)
        return;
    if (given_n > WIDEST) {
        sqlite3_result_error(context, "trim(text, set): a set of more than 1000 bytes", -1);
        return;
    }
    set_of(&set, given, given_n);
    for (size_t k; left && (k = character_size(p, end)) > 0 && is_in(&set, p, k);)
        p += k;
    while (right && end > p) {
        const char *last = end - 1;
        while (last > p && ((uint8_t)*last & 0xc0) == 0x80)
            last--;
        if (!is_in(&set, last, (size_t)(end - last)))
            break;
        end = last;
    }
    sqlite3_result_text(context, p, (int)(end - p), SQLITE_TRANSIENT);
}

void tl_sql_tell_trimmed(sqlite3_context *context, int n, sqlite3_value **values)
{
    trim(context, n, values, true, true);
}

void tl_sql_tell_trimmed_left(sqlite3_context *context, int n, sqlite3_value **values)
{
    trim(context, n, values, true, false);
}

void tl_sql_tell_trimmed_right(sqlite3_context *context, int n, sqlite3_value **values)
{
    trim(context, n, values, false, true);
}

/* ---- format() -------------------------------------------------------------------------------- */

struct format {
    const char *at;         /* next of the text */
    sqlite3_value **values; /* next argument */
    int n;                  /* left */
    char spec[48];          /* of the present one: "%-08" */
    size_t spec_n;
    bool bad;
};

static sqlite3_value *next_value(struct format *f)
{
    if (f->n == 0)
        return NULL;
    f->n--;
    return *f->values++;
}

/* A width or precision: digits, or * for an argument. */
static void take_size(struct format *f)
{
    long size = 0;
    char digits[24];
    if (*f->at == '*') {
        sqlite3_value *const value = next_value(f);
        const sqlite3_int64 given = value ? sqlite3_value_int64(value) : 0;
        size = given < -WIDEST || given > WIDEST ? WIDEST + 1 : (long)given;
        f->at++;
    } else if (*f->at >= '0' && *f->at <= '9') {
        char *end;
        size = strtol(f->at, &end, 10);
        f->at = end;
    } else {
        return;
    }
    f->bad |= size > WIDEST || size < -WIDEST;
    sqlite3_snprintf(sizeof digits, digits, "%ld", size);
    for (const char *p = digits; *p && f->spec_n < sizeof f->spec - 8; p++)
        f->spec[f->spec_n++] = *p;
}

/* What follows a '%', up to its letter, which is returned. */
static char take_spec(struct format *f)
{
    f->spec[0] = '%';
    f->spec_n = 1;
    for (; *f->at && strchr("-+ #0!,", *f->at); f->at++)
        if (f->spec_n < 10)
            f->spec[f->spec_n++] = *f->at;
    take_size(f);
    if (*f->at == '.') {
        f->spec[f->spec_n++] = '.';
        f->at++;
        take_size(f);
    }
    while (*f->at == 'l')
        f->at++;
    return *f->at ? *f->at++ : '\0';
}

/* The first character of a text, with all bytes of it; a precision would repeat it. */
static void put_character(struct format *f, sqlite3_str *out, const char *text)
{
    char one[8] = "";
    size_t n = 0;
    do
        one[n] = text[n];
    while (text[n++] && n < 4 && ((uint8_t)text[n] & 0xc0) == 0x80);
    f->bad |= memchr(f->spec, '.', f->spec_n) != NULL;
    sqlite3_snprintf(5, f->spec + f->spec_n, "s");
    if (!f->bad)
        sqlite3_str_appendf(out, f->spec, one);
}

static void put_value(struct format *f, sqlite3_str *out, char letter)
{
    sqlite3_value *const value = letter == '%' || letter == 'n' ? NULL : next_value(f);
    const char *const text = value ? (const char *)sqlite3_value_text(value) : NULL;
    char *const end = f->spec + f->spec_n;
    switch (letter) {
    case '%':
        sqlite3_str_appendchar(out, 1, '%');
        return;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        sqlite3_snprintf(5, end, "ll%c", letter);
        sqlite3_str_appendf(out, f->spec, value ? sqlite3_value_int64(value) : 0);
        return;
    case 'f':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
        sqlite3_snprintf(5, end, "%c", letter);
        sqlite3_str_appendf(out, f->spec, value ? sqlite3_value_double(value) : 0.0);
        return;
    case 'c': /* the first character, with all bytes of it */
        put_character(f, out, text ? text : "");
        return;
    case 's':
    case 'z':
    case 'q':
    case 'Q':
    case 'w':
        sqlite3_snprintf(5, end, "%c", letter == 'z' ? 's' : letter);
        sqlite3_str_appendf(out, f->spec, text);
        return;
    default:
        f->bad = true;
    }
}

void tl_sql_tell_format(sqlite3_context *context, int n, sqlite3_value **values)
{
    const char *const text = n > 0 ? (const char *)sqlite3_value_text(values[0]) : NULL;
    if (!text)
        return;
    struct format f = {.at = text, .values = values + 1, .n = n - 1};
    sqlite3_str *const out = sqlite3_str_new(sqlite3_context_db_handle(context));
    while (*f.at && !f.bad && sqlite3_str_errcode(out) == SQLITE_OK) {
        const size_t plain = strcspn(f.at, "%");
        sqlite3_str_append(out, f.at, (int)plain);
        f.at += plain;
        if (*f.at == '%') {
            f.at++;
            const char letter = take_spec(&f);
            if (!f.bad)
                put_value(&f, out, letter);
        }
    }
    if (f.bad) {
        sqlite3_free(sqlite3_str_finish(out));
        sqlite3_result_error(
            context, "format(): widths up to 1000, of %d %u %x %o %f %e %g %c %s %q %w", -1);
    } else {
        tell(context, out);
    }
}
