/* SPDX-License-Identifier: MIT */
/*
 * Parses search queries to sets of addresses or kinds of events. All forms become ranges of
 * addresses before anything is searched, so that shards need to know only these.
 */
#include "query/seek.h"

#include "base/hash.h"
#include "image/names.h"
#include "query/seek_data.h"
#include "query/seek_lines.h"

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
    free(s->own);
    free(s->memory);
    free(s->ranges);
    free(s->symbols);
    free(s->wanted);
}

int tl_sought_failed(int r, struct tl_fail *fail)
{
    if (r == TL_UNSUPPORTED)
        return tl_fail_set(fail, r, "mnemonics need LLVM's library, which is not installed here");
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

/* ---- addresses and encodings ---------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
    const struct tl_sought_range *const x = a, *const y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Make room for ranges, of which there are none then. */
static int begin_ranges(struct tl_sought *s, size_t n)
{
    free(s->ranges);
    s->n_ranges = 0;
    s->ranges = calloc(n, sizeof *s->ranges);
    return s->ranges ? TL_OK : TL_NOMEM;
}

static void add_range(struct tl_sought *s, uint64_t from, uint64_t size)
{
    const uint64_t to = size < UINT64_MAX - from ? from + size : UINT64_MAX;
    s->ranges[s->n_ranges++] = (struct tl_sought_range){from, to};
}

static void end_ranges(struct tl_sought *s)
{
    size_t n = 0;
    s->pc_to = 0;
    qsort(s->ranges, s->n_ranges, sizeof *s->ranges, by_begin);
    for (size_t i = 0; i < s->n_ranges; i++) {
        if (n == 0 || by_begin(&s->ranges[n - 1], &s->ranges[i]) != 0)
            s->ranges[n++] = s->ranges[i];
        s->pc_to = s->ranges[i].to > s->pc_to ? s->ranges[i].to : s->pc_to;
    }
    s->n_ranges = n;
    s->pc_from = s->ranges[0].from;
}

static int want_pc(struct tl_sought *s, uint64_t from, uint64_t to)
{
    if (begin_ranges(s, 1) < 0)
        return TL_NOMEM;
    add_range(s, from, to > from ? to - from : 1);
    end_ranges(s);
    s->kind = TL_FIND_PC;
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

static int no_symbol(const char *name, struct tl_fail *fail)
{
    char text[100];
    return tl_fail_set(fail, TL_NOTFOUND, "the trace's images have no symbol \"%s\"",
                       tl_name_fit(name, text, sizeof text));
}

/* Mark the symbols that a text of `n` bytes names. TL_NOTFOUND: none. */
static int mark_named(struct tl_sought *s, const char *name, size_t n, enum tl_naming naming)
{
    if (!s->image)
        return TL_NOTFOUND;
    tl_image_symbols(s->image, &s->n_symbols);
    free(s->symbols);
    s->symbols = calloc(s->n_symbols + 1, 1);
    if (!s->symbols)
        return TL_NOMEM;
    return tl_image_named(s->image, name, n, naming, s->symbols) ? TL_OK : TL_NOTFOUND;
}

/* A file that is mapped several times has its symbols each time: the name's place in memory and
 * the offset in a page tell which function it is. */
static uint64_t identity(const struct tl_symbol *symbol)
{
    enum { PAGE = 4096 };
    return tl_mix64(tl_mix64((uintptr_t)symbol->name + symbol->address % PAGE) + symbol->size);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *const x = a, *const y = b;
    return (*x > *y) - (*x < *y);
}

/* Count the different functions among the marked symbols. */
static int count_functions(struct tl_sought *s)
{
    size_t n = 0, all;
    const struct tl_symbol *const symbols = tl_image_symbols(s->image, &all);
    uint64_t *const seen = malloc((s->n_symbols + 1) * sizeof *seen);
    if (!seen)
        return TL_NOMEM;
    for (size_t i = 0; i < s->n_symbols; i++)
        if (s->symbols[i])
            seen[n++] = identity(&symbols[i]);
    qsort(seen, n, sizeof *seen, by_number);
    s->functions = n > 0;
    for (size_t i = 1; i < n; i++)
        s->functions += seen[i] != seen[i - 1];
    free(seen);
    return TL_OK;
}

/* Describe what is wanted: one function by its own name, several by what was asked for. */
static void say_functions(struct tl_sought *s, const char *before, const char *name)
{
    char text[100];
    size_t one = 0;
    while (one < s->n_symbols && !s->symbols[one])
        one++;
    if (s->functions == 1)
        say(s, "%s%s", before, tl_name_fit(tl_image_symbol_told(s->image, one), text, sizeof text));
    else
        say(s, "%s%zu functions: %s", before, s->functions,
            tl_name_fit(name, text, sizeof text - 20));
}

/* The ranges of the marked symbols: all of each, or the byte at an offset. */
static int want_marked(struct tl_sought *s, bool whole, uint64_t offset)
{
    size_t n;
    const struct tl_symbol *const symbols = tl_image_symbols(s->image, &n);
    if (begin_ranges(s, n) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < n; i++)
        if (s->symbols[i])
            add_range(s, symbols[i].address + offset,
                      whole && symbols[i].size ? symbols[i].size : 1);
    end_ranges(s);
    return TL_OK;
}

static int want_symbol(struct tl_sought *s, const char *name, struct tl_fail *fail)
{
    int r = mark_named(s, name, strlen(name), TL_NAMING_WHOLE);
    if (r == TL_NOTFOUND)
        return no_symbol(name, fail);
    if (r >= 0)
        r = want_marked(s, true, 0);
    if (r >= 0)
        r = count_functions(s);
    if (r < 0)
        return r;
    s->kind = TL_FIND_SYMBOL;
    say_functions(s, "", name);
    return TL_OK;
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

/* Calls of the functions of this name; otherwise of all that match it or contain it;
 * TL_NOTFOUND. */
static int want_calls(struct tl_sought *s, const char *name, struct tl_fail *fail)
{
    size_t n = 0;
    int r = mark_named(s, name, strlen(name), TL_NAMING_PARTS);
    if (r == TL_NOTFOUND)
        return no_symbol(name, fail);
    if (r >= 0)
        r = count_functions(s);
    if (r < 0)
        return r;
    say_functions(s, "calls of ", name);
    want_aliases(s, tl_image_symbols(s->image, &n));
    free(s->wanted);
    if (!(s->wanted = calloc(n, sizeof *s->wanted)))
        return TL_NOMEM;
    s->n_wanted = 0;
    for (size_t i = 0; i < n; i++)
        if (s->symbols[i])
            s->wanted[s->n_wanted++] = (uint32_t)i;
    s->kind = TL_FIND_CALL;
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
            "context, event, hardware, software, gap, trace-on, note, branch, unknown, cycles, "
            "time",
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

/* Search for accesses to memory that a trace tells; `text`: to which. */
static int want_data(struct tl_sought *s, const char *text, struct tl_fail *fail)
{
    say(s, "accesses to %.100s", text);
    return tl_sought_data(s, text, false, fail);
}

static int want_written(struct tl_sought *s, const char *text, struct tl_fail *fail)
{
    say(s, "writes to %.100s", text);
    return tl_sought_data(s, text, true, fail);
}

/* Search in what programs print. */
static int want_line(struct tl_sought *s, const char *text, struct tl_fail *fail)
{
    if (!*text || strlen(text) > TL_LINE_PATTERN)
        return tl_fail_set(fail, TL_USAGE, "which text? Give 1 to %d bytes of it", TL_LINE_PATTERN);
    s->kind = TL_FIND_LINE;
    s->kinds = 1u << TL_ITEM_SOFTWARE | 1u << TL_ITEM_HARDWARE;
    s->text = text;
    say(s, "text %.100s", text);
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

bool tl_sought_addresses(const char *text, uint64_t *from, uint64_t *to)
{
    const char *end;
    if (!read_hex(text, &end, from))
        return false;
    *to = *from;
    if (*end == '\0')
        return true;
    return (*end == ':' || *end == '-') && read_hex(end + 1, &end, to) && *end == '\0' &&
           *to > *from;
}

/* The same, but no word like "add": without 0x it must contain a decimal digit. */
static bool is_address(const char *text, uint64_t *from, uint64_t *to)
{
    return strpbrk(text, "0123456789") && tl_sought_addresses(text, from, to);
}

/* Parse "main+0x10". */
static bool is_offset(const char *text, size_t *n, uint64_t *offset)
{
    const char *const plus = strrchr(text, '+');
    const char *end;
    *n = plus ? (size_t)(plus - text) : 0;
    return *n > 0 && read_hex(plus + 1, &end, offset) && *end == '\0';
}

/* The addresses at this offset in the functions of a name of `n` bytes. TL_NOTFOUND. */
static int want_offset(struct tl_sought *s, const char *text, size_t n, uint64_t offset)
{
    int r = mark_named(s, text, n, TL_NAMING_WHOLE);
    if (r >= 0)
        r = want_marked(s, false, offset);
    if (r < 0)
        return r;
    s->kind = TL_FIND_PC;
    if (s->n_ranges == 1)
        say(s, "address 0x%llx", (unsigned long long)s->pc_from);
    else
        say(s, "%zu addresses: %.90s", s->n_ranges, text);
    return TL_OK;
}

/* Can a stream of the trace tell accesses to memory? */
static bool tells_data(const struct tl_setup *setup)
{
    bool tells = false;
    for (size_t i = 0; i < setup->n_sources; i++)
        tells |= setup->sources[i].protocol == TL_PROTO_ITM ||
                 setup->sources[i].protocol == TL_PROTO_ETM3;
    return tells;
}

static const struct prefix {
    const char *name;
    int (*want)(struct tl_sought *s, const char *text, struct tl_fail *fail);
} prefixes[] = {
    {"call:", want_calls},  {"event:", want_event},   {"opcode:", want_opcode},
    {"op:", want_mnemonic}, {"symbol:", want_symbol}, {"process:", want_process},
    {"data:", want_data},   {"text:", want_line},     {"written:", want_written},
};

static int want_text(struct tl_sought *s, const struct tl_setup *setup, const char *text,
                     struct tl_fail *fail)
{
    uint64_t from, to, offset;
    size_t n_name;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t n = strlen(prefixes[i].name);
        if (strncmp(text, prefixes[i].name, n) == 0)
            return prefixes[i].want(s, text + n, fail);
    }
    if (strncmp(text, "pc:", 3) == 0)
        text += 3;
    if (is_event(s, text))
        return want_event(s, text, fail);
    if (is_offset(text, &n_name, &offset)) {
        const int r = want_offset(s, text, n_name, offset);
        if (r != TL_NOTFOUND)
            return r;
    }
    if (tells_data(setup) && tl_image_variables_named(s->image, text, NULL, 0) > 0)
        return want_data(s, text, fail);
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
    s->own = strndup(request->text ? request->text : "", TL_DEMANGLED);
    if (!s->own)
        return TL_NOMEM;
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
    case TL_FIND_LINE:
        return want_line(s, s->own, fail);
    case TL_FIND_TEXT:
        return want_text(s, setup, s->own, fail);
    default:
        return tl_fail_set(fail, TL_USAGE, "look for an address, a symbol or an event");
    }
}
