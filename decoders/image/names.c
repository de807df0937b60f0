/* SPDX-License-Identifier: MIT */
/*
 * Names of functions as people read them, and searches by them. Demangled names are kept by symbol,
 * since the same few names are shown again and again; a search by name demangles all of them once.
 */
#include "image/names.h"

#include "base/pattern.h"
#include "base/spelling.h"
#include "image/image_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The demangled name, or the name itself. */
static const char *demangled(const struct tl_image *image, size_t symbol)
{
    const char *const raw = image->symbols.v[symbol].name;
    if (!image->symbols.demangled || !tl_is_mangled(raw))
        return raw;
    _Atomic(char *) *const kept = &image->symbols.demangled[symbol];
    char *name = atomic_load_explicit(kept, memory_order_acquire);
    if (name)
        return name;
    char text[TL_DEMANGLED], *none = NULL;
    const size_t n = tl_demangle(raw, text);
    char *const copy = strdup(n ? text : raw);
    if (!copy)
        return raw;
    if (atomic_compare_exchange_strong(kept, &none, copy))
        return copy;
    free(copy); /* another thread was faster */
    return none;
}

const char *tl_image_symbol_name(const struct tl_image *image, size_t symbol)
{
    return tl_spelling_is_mangled() ? image->symbols.v[symbol].name : demangled(image, symbol);
}

/* ---- search ---------------------------------------------------------------------------------- */

/* What a name is compared with. */
struct wish {
    const char *text;
    size_t n;
    enum step {
        WHOLE,
        ANY_ARGUMENTS,
        ANY_TEMPLATE,
        PATTERN,
        PART,
        STEPS,
        WORD
    } step; /* WORD: alone */
    bool has_pattern;
    uint32_t program; /* + 1; 0: any */
};

/* Can it be within a word of a name? Words of read_block are "read" and "block". */
static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool has_word(const char *name, const char *word, size_t n)
{
    for (const char *p = name; *p; p++)
        if ((p == name || !is_of_word(p[-1])) && strncasecmp(p, word, n) == 0 && !is_of_word(p[n]))
            return true;
    return false;
}

static bool fits(const struct wish *w, const char *name)
{
    switch (w->step) {
    case PATTERN:
        return w->has_pattern && tl_text_fits(w->text, name);
    case WORD:
        return has_word(name, w->text, w->n);
    case PART:
        return !w->has_pattern && strcasestr(name, w->text) != NULL;
    default:
        return strncmp(name, w->text, w->n) == 0 && name[w->n] == '\0';
    }
}

/* Does the function's name fit, without its return type and arguments? */
static bool base_fits(const struct wish *w, const char *name, bool templates)
{
    char base[TL_DEMANGLED];
    if (strlen(name) >= sizeof base)
        return false;
    strcpy(base, name);
    tl_demangled_base(base, templates);
    if (w->step == ANY_TEMPLATE && !templates) /* those of its class may be given */
        tl_drop_last_template(base);
    return fits(w, base);
}

/* Does the name fit without its version (foo@@V2; foo@plt is another function)? `clones`: also
 * without what tells a copy that the compiler made (foo.isra.0, foo(int) [clone .isra.0]). */
static bool stem_fits(const struct wish *w, const char *name, bool is_mangled, bool clones)
{
    const char *const version = strchr(name, '@');
    size_t n = version && strcmp(version, "@plt") != 0 ? (size_t)(version - name) : strlen(name);
    const char *const clone = !clones || n < 2 ? NULL
                              : is_mangled     ? strstr(name, " [clone ")
                                               : memchr(name + 1, '.', n - 1);
    n = clone ? (size_t)(clone - name) : n;
    return n == w->n && memcmp(name, w->text, n) == 0;
}

/* Does one of the spellings fit? Only mangled names have arguments. */
static bool either_fits(const struct wish *w, const char *raw, const char *name)
{
    if (name == raw && (w->step == ANY_ARGUMENTS || w->step == ANY_TEMPLATE))
        return stem_fits(w, raw, false, w->step == ANY_TEMPLATE);
    if (name == raw)
        return fits(w, raw);
    switch (w->step) {
    case ANY_ARGUMENTS:
        return base_fits(w, name, false) || stem_fits(w, name, true, false);
    case ANY_TEMPLATE:
        return base_fits(w, name, true) || base_fits(w, name, false) ||
               stem_fits(w, name, true, true);
    case PATTERN:
        return fits(w, raw) || fits(w, name) || base_fits(w, name, false) ||
               base_fits(w, name, true);
    default:
        return fits(w, raw) || fits(w, name);
    }
}

static bool alias_fits(const struct wish *w, const char *raw)
{
    char name[TL_DEMANGLED];
    return either_fits(w, raw, tl_demangle(raw, name) ? name : raw);
}

static bool is_of(const struct wish *w, const struct tl_symbol *symbol)
{
    return w->program == 0 || w->program == symbol->program;
}

static size_t take(const struct tl_image *image, const struct wish *w, uint8_t *wanted)
{
    const struct tl_symbols *const symbols = &image->symbols;
    size_t found = 0;
    for (size_t i = 0; i < symbols->n; i++)
        if (is_of(w, &symbols->v[i]) && either_fits(w, symbols->v[i].name, demangled(image, i)))
            found += wanted[i] ^ 1, wanted[i] = 1;
    for (size_t i = 0; i < symbols->n_aliases; i++) {
        const struct tl_alias *const alias = &symbols->aliases[i];
        if (!wanted[alias->symbol] && is_of(w, &symbols->v[alias->symbol]) &&
            alias_fits(w, alias->name))
            found += wanted[alias->symbol] = 1;
    }
    return found;
}

size_t tl_image_named(const struct tl_image *image, const char *text, size_t n,
                      enum tl_naming naming, uint8_t *wanted)
{
    char name[TL_DEMANGLED];
    const uint32_t program = n < sizeof name ? tl_program_of_name(image, text, &n) : 0;
    if (program) {
        memcpy(name, text, n);
        name[n] = '\0';
        text = name;
    }
    struct wish w = {
        .text = text, .n = n, .has_pattern = strpbrk(text, "*?") != NULL, .program = program};
    size_t found = 0;
    if (naming == TL_NAMING_PARTS && n > 2 && text[0] == '"' && text[n - 1] == '"') {
        w = (struct wish){.text = text + 1, .n = n - 2, .step = WORD, .program = program};
        return take(image, &w, wanted);
    }
    const enum step end = naming == TL_NAMING_WHOLE ? PATTERN : STEPS;
    for (w.step = WHOLE; n > 0 && found == 0 && w.step < end; w.step++)
        found = take(image, &w, wanted);
    return found;
}
