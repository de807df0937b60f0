/* SPDX-License-Identifier: MIT */
/* Parsing of search queries. */
#include "query/seek.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void say(struct tl_sought *s, const char *format, ...) TL_PRINTF(2, 3);

static void say(struct tl_sought *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->what, sizeof s->what, format, args);
    va_end(args);
}

void tl_sought_fini(struct tl_sought *s)
{
    free(s->symbols);
    free(s->wanted);
}

/* ---- addresses and encodings ---------------------------------------------------------------- */

static int want_pc(struct tl_sought *s, uint64_t from, uint64_t to)
{
    s->kind = TL_FIND_PC;
    s->pc_from = from;
    s->pc_to = to > from ? to : from == UINT64_MAX ? from : from + 1;
    if (s->pc_to - s->pc_from == 1)
        say(s, "address 0x%llx", (unsigned long long)from);
    else
        say(s, "addresses 0x%llx to 0x%llx", (unsigned long long)s->pc_from,
            (unsigned long long)s->pc_to);
    return TL_OK;
}

static int want_opcode(struct tl_sought *s, const char *text, struct tl_fail *fail)
{
    const char *const digits = strncasecmp(text, "0x", 2) ? text : text + 2;
    const size_t n = strspn(digits, "0123456789abcdefABCDEFxX");
    if (n == 0 || n % 2 || digits[n] || n > 30)
        return tl_fail_set(fail, TL_USAGE,
                           "\"%.40s\" is no encoding: give 4, 8, or for x86 2 to 30 hex digits, x "
                           "for those that do not matter",
                           text);
    s->kind = TL_FIND_OPCODE;
    s->text = digits;
    say(s, "opcode %.40s", digits);
    return TL_OK;
}

static int want_mnemonic(struct tl_sought *s, const char *text, struct tl_fail *fail)
{
    if (!*text)
        return tl_fail_set(fail, TL_USAGE, "which mnemonic?");
    s->kind = TL_FIND_MNEMONIC;
    s->text = text;
    say(s, "instructions %.80s", text);
    return TL_OK;
}

/* ---- functions ------------------------------------------------------------------------------ */

static const struct tl_symbol *find_symbol(const struct tl_sought *s, const char *name, size_t size)
{
    size_t n = 0;
    const struct tl_symbol *const symbols = s->image ? tl_image_symbols(s->image, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(symbols[i].name, name, size) == 0 && symbols[i].name[size] == '\0')
            return &symbols[i];
    return NULL;
}

static int no_symbol(const char *name, struct tl_fail *fail)
{
    return tl_fail_set(fail, TL_NOTFOUND, "the trace's images have no symbol \"%.80s\"", name);
}

static int want_symbol(struct tl_sought *s, const char *name, struct tl_fail *fail)
{
    const struct tl_symbol *const symbol = find_symbol(s, name, strlen(name));
    if (!symbol)
        return no_symbol(name, fail);
    s->kind = TL_FIND_SYMBOL;
    s->text = symbol->name;
    s->pc_from = symbol->address;
    s->pc_to = symbol->address + (symbol->size ? symbol->size : 1);
    say(s, "%.80s", name);
    return TL_OK;
}

enum fit { FIT_EXACT, FIT_PATTERN, FIT_PART };

static bool name_fits(const char *name, const char *text, enum fit fit)
{
    switch (fit) {
    case FIT_EXACT:
        return strcmp(name, text) == 0;
    case FIT_PATTERN:
        return tl_text_fits(text, name);
    default:
        return strcasestr(name, text) != NULL;
    }
}

/* Include other names for the same address: the flow uses one of them. */
static void want_aliases(struct tl_sought *s, const struct tl_symbol *symbols)
{
    for (size_t i = 1; i < s->n_symbols; i++)
        if (s->symbols[i - 1] && symbols[i].address == symbols[i - 1].address &&
            symbols[i].layer == symbols[i - 1].layer)
            s->symbols[i] = 1;
    for (size_t i = s->n_symbols; i-- > 1;)
        if (s->symbols[i] && symbols[i].address == symbols[i - 1].address &&
            symbols[i].layer == symbols[i - 1].layer)
            s->symbols[i - 1] = 1;
}

/* Calls of the function of this name; otherwise of all that match it or contain it; TL_NOTFOUND. */
static int want_calls(struct tl_sought *s, const char *name, struct tl_fail *fail)
{
    size_t n = 0, named = 0;
    const struct tl_symbol *const symbols = s->image ? tl_image_symbols(s->image, &n) : NULL;
    enum fit fit = find_symbol(s, name, strlen(name)) ? FIT_EXACT
                   : strpbrk(name, "*?")              ? FIT_PATTERN
                                                      : FIT_PART;
    if (!s->symbols && !(s->symbols = calloc(n + 1, 1)))
        return TL_NOMEM;
    s->n_symbols = n;
    const char *one = name;
    for (size_t i = 0; *name && i < n; i++)
        if (name_fits(symbols[i].name, name, fit)) {
            s->symbols[i] = 1;
            one = symbols[i].name;
            named++;
        }
    if (named == 0)
        return no_symbol(name, fail);
    want_aliases(s, symbols);
    free(s->wanted);
    if (!(s->wanted = calloc(n, sizeof *s->wanted)))
        return TL_NOMEM;
    s->n_wanted = 0;
    for (size_t i = 0; i < n; i++)
        if (s->symbols[i])
            s->wanted[s->n_wanted++] = (uint32_t)i;
    s->kind = TL_FIND_CALL;
    if (named == 1)
        say(s, "calls of %.80s", one);
    else
        say(s, "calls of %zu functions: %.60s", named, name);
    return TL_OK;
}

int tl_sought_function(struct tl_sought *s, struct tl_gen *gen, uint32_t function)
{
    *s = (struct tl_sought){.kind = TL_FIND_CALL, .gap = -1, .image = tl_gen_image(gen)};
    if (s->image)
        tl_image_symbols(s->image, &s->n_symbols);
    s->symbols = calloc(s->n_symbols + 1, 1);
    s->wanted = malloc(sizeof *s->wanted);
    if (!s->symbols || !s->wanted || function >= s->n_symbols)
        return TL_NOMEM;
    s->symbols[function] = 1;
    s->wanted[s->n_wanted++] = function;
    return TL_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

static bool same(const char *text, size_t n, const char *name)
{
    return strlen(name) == n && strncmp(text, name, n) == 0;
}

/* Parse a kind of items, several separated by commas, or a reason for gaps. */
static bool is_event(struct tl_sought *s, const char *name)
{
    s->gap = -1;
    s->kinds = 0;
    for (const char *rest = name;;) {
        const size_t n = strcspn(rest, ",");
        unsigned kind = 1;
        while (kind < TL_ITEM_KINDS && !same(rest, n, tl_item_kind_name(kind)))
            kind++;
        if (kind == TL_ITEM_KINDS)
            break;
        s->kinds |= 1u << kind;
        if (!rest[n])
            return true;
        rest += n + 1;
    }
    for (int gap = 0; gap < TL_GAP_KINDS; gap++)
        if (strcmp(tl_gap_name((enum tl_gap)gap), name) == 0) {
            s->kinds = 1u << TL_ITEM_GAP;
            s->gap = gap;
            return true;
        }
    return false;
}

static int want_event(struct tl_sought *s, const char *name, struct tl_fail *fail)
{
    if (!is_event(s, name))
        return tl_fail_set(
            fail, TL_USAGE,
            "there is no event kind \"%.40s\"; there are exception, return, mode, "
            "context, event, software, gap, trace-on, note, branch, unknown, cycles, time",
            name);
    s->kind = TL_FIND_EVENT;
    say(s, "%s%.100s", s->gap < 0 ? "" : "gap ", name);
    return TL_OK;
}

/* Search for the begin of execution of a process or thread. */
static int want_process(struct tl_sought *s, const char *name, struct tl_fail *fail)
{
    if (!*name)
        return tl_fail_set(fail, TL_USAGE, "which process? Give its name, or a number");
    s->kind = TL_FIND_EVENT;
    s->gap = -1;
    s->kinds = 1u << TL_ITEM_NOTE;
    s->process = name;
    say(s, "process %.100s", name);
    return TL_OK;
}

/* Does a context of the trace have this name? */
static bool is_process(const struct tl_setup *setup, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < setup->n_contexts; i++)
        is |= strcmp(setup->contexts[i].name, name) == 0;
    return is;
}

/* ---- any kind ------------------------------------------------------------------------------- */

/* Parse "0x1f", or hex digits; `*end` is after it. */
static bool read_hex(const char *text, const char **end, uint64_t *out)
{
    const char *const digits = strncasecmp(text, "0x", 2) ? text : text + 2;
    char *last;
    if (!isxdigit((unsigned char)*digits))
        return false;
    errno = 0;
    *out = strtoull(digits, &last, 16);
    *end = last;
    return errno == 0;
}

/* Parse "ADDR", "ADDR:ADDR" or "ADDR-ADDR". Without 0x it must contain a decimal digit. */
static bool is_address(const char *text, uint64_t *from, uint64_t *to)
{
    const char *end;
    if (!strpbrk(text, "0123456789") || !read_hex(text, &end, from))
        return false;
    *to = *from;
    if (*end == '\0')
        return true;
    return (*end == ':' || *end == '-') && read_hex(end + 1, &end, to) && *end == '\0' &&
           *to > *from;
}

/* Parse "main+0x10". */
static bool is_offset(const struct tl_sought *s, const char *text, uint64_t *pc)
{
    const char *const plus = strrchr(text, '+');
    const char *end;
    uint64_t offset;
    const struct tl_symbol *const symbol =
        plus ? find_symbol(s, text, (size_t)(plus - text)) : NULL;
    if (!symbol || !read_hex(plus + 1, &end, &offset) || *end != '\0')
        return false;
    *pc = symbol->address + offset;
    return true;
}

static const struct prefix {
    const char *name;
    int (*want)(struct tl_sought *s, const char *text, struct tl_fail *fail);
} prefixes[] = {
    {"call:", want_calls},  {"event:", want_event},   {"opcode:", want_opcode},
    {"op:", want_mnemonic}, {"symbol:", want_symbol}, {"process:", want_process},
};

static int want_text(struct tl_sought *s, const struct tl_setup *setup, const char *text,
                     struct tl_fail *fail)
{
    uint64_t from, to;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t n = strlen(prefixes[i].name);
        if (strncmp(text, prefixes[i].name, n) == 0)
            return prefixes[i].want(s, text + n, fail);
    }
    if (strncmp(text, "pc:", 3) == 0)
        text += 3;
    if (is_event(s, text))
        return want_event(s, text, fail);
    if (is_offset(s, text, &from))
        return want_pc(s, from, from + 1);
    if (strncasecmp(text, "0x", 2) != 0) {
        const int r = want_calls(s, text, fail);
        if (r != TL_NOTFOUND)
            return r;
        if (fail)
            fail->text[0] = '\0';
    }
    if (is_address(text, &from, &to))
        return want_pc(s, from, to);
    if (is_process(setup, text))
        return want_process(s, text, fail);
    if (isalpha((unsigned char)*text))
        return want_mnemonic(s, text, fail);
    return tl_fail_set(fail, TL_USAGE,
                       "\"%.60s\" is no function, address, event or mnemonic; give e.g. main, "
                       "main+0x10, 0x8000:0x9000, gap, op:ldr*, opcode:d503201f",
                       text);
}

int tl_sought_init(struct tl_sought *s, struct tl_gen *gen, const struct tl_find_request *request,
                   struct tl_fail *fail)
{
    *s = (struct tl_sought){.gap = -1, .image = tl_gen_image(gen)};
    const struct tl_setup *const setup = &gen->setup;
    bool changes = false;
    for (size_t i = 0; i < setup->n_images; i++) {
        const struct tl_setup_image *const image = &setup->images[i];
        changes |= image->context.has_context_id || image->context.has_vmid || image->span.from ||
                   image->span.until;
    }
    s->fixed = changes ? NULL : s->image;
    snprintf(s->own, sizeof s->own, "%s", request->text ? request->text : "");
    switch (request->kind) {
    case TL_FIND_PC:
        return want_pc(s, request->pc_from, request->pc_to);
    case TL_FIND_SYMBOL:
        return want_symbol(s, s->own, fail);
    case TL_FIND_EVENT:
        return want_event(s, s->own, fail);
    case TL_FIND_CALL:
        return want_calls(s, s->own, fail);
    case TL_FIND_MNEMONIC:
        return want_mnemonic(s, s->own, fail);
    case TL_FIND_OPCODE:
        return want_opcode(s, s->own, fail);
    case TL_FIND_TEXT:
        return want_text(s, setup, s->own, fail);
    default:
        return tl_fail_set(fail, TL_USAGE, "look for an address, a symbol or an event");
    }
}
