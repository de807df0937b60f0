/* SPDX-License-Identifier: MIT */
/*
 * Demangling within bounds. The library's functions that return an allocated name cannot be
 * stopped; those with a callback can be left by a jump when the output is full, and hold no memory
 * then.
 */
#include "image/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

static const char more[] = "\xe2\x80\xa6"; /* … */

struct sink {
    jmp_buf full;
    char *out;
    size_t n;
};

static void take(const char *text, size_t n, void *context)
{
    struct sink *const s = context;
    const size_t room = TL_DEMANGLED - sizeof more - s->n;
    const size_t some = n < room ? n : room;
    if (some > 0) /* without text there may be no address */
        memcpy(s->out + s->n, text, some);
    s->n += some;
    if (some < n)
        longjmp(s->full, 1);
}

/* Do not cut a character of several bytes. */
static size_t whole_characters(const char *text, size_t n)
{
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* Returns the length, 0: not a name of this kind. `*full`: it is cut off. */
static size_t run(const char *mangled, bool rust, char *out, bool *full)
{
    struct sink s = {.out = out};
    struct sink *const volatile sink = &s; /* survives the jump */
    *full = false;
    if (setjmp(s.full)) {
        *full = true;
        return whole_characters(out, sink->n);
    }
    const int ok = rust ? rust_demangle_callback(mangled, DMGL_PARAMS, take, &s)
                        : cplus_demangle_v3_callback(mangled, DMGL_PARAMS | DMGL_ANSI, take, &s);
    return ok ? s.n : 0;
}

size_t tl_demangle(const char *name, char out[static TL_DEMANGLED])
{
    char mangled[TL_MANGLED_MAX + 1];
    bool full;
    out[0] = '\0';
    if (!tl_is_mangled(name))
        return 0;
    const char *const begin = tl_mangled_begin(name);
    const size_t n = strcspn(begin, "@"), length = strnlen(begin, TL_MANGLED_MAX + 1);
    if (length > TL_MANGLED_MAX)
        return 0;
    memcpy(mangled, begin, n);
    mangled[n] = '\0';
    size_t size = run(mangled, true, out, &full);
    if (size == 0)
        size = run(mangled, false, out, &full);
    if (size == 0)
        return 0;
    const char *const rest = full ? more : begin + n;
    const size_t n_rest = strlen(rest), room = TL_DEMANGLED - 1 - size;
    memcpy(out + size, rest, n_rest < room ? n_rest : room);
    size += n_rest < room ? n_rest : room;
    out[size] = '\0';
    return size;
}

/* ---- parts of a name ------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Is there "operator" at `at`, as a word? */
static bool is_operator(const char *name, size_t at)
{
    static const char word[] = "operator";
    return strncmp(name + at, word, sizeof word - 1) == 0 &&
           !is_letter(name[at + sizeof word - 1]) && (at == 0 || !is_letter(name[at - 1]));
}

/* Length of an operator's name at `at`, up to what can follow it: "operator<<", "operator()". */
static size_t operator_size(const char *name, size_t at)
{
    size_t n = at + strlen("operator");
    if (strncmp(name + n, "()", 2) == 0)
        return n + 2 - at;
    n += strspn(name + n, "<>=!-+*/%^&|~,");
    return n - at;
}

static bool opens(char c)
{
    return c == '(' || c == '<' || c == '[' || c == '{';
}

static bool closes(char c)
{
    return c == ')' || c == '>' || c == ']' || c == '}';
}

/* The end of the bracket that opens at `at`; the end of the name if it does not close. */
static size_t bracket_end(const char *name, size_t at)
{
    size_t depth = 0;
    for (size_t i = at; name[i]; i++) {
        if (opens(name[i]))
            depth++;
        else if (closes(name[i]) && !(name[i] == '>' && i > 0 && name[i - 1] == '-') &&
                 --depth == 0)
            return i + 1;
    }
    return strlen(name);
}

/* Where the parts of a name are: the function is [from, to), its argument list begins at `to`. */
struct parts {
    size_t from, to;
};

/* The last argument list at the top is the function's; a name that is in a function, such as that
 * of a lambda, has that function's list in front. */
static struct parts find_parts(const char *name)
{
    struct parts p = {0, strlen(name)};
    bool named = false; /* an operator's name follows, in which spaces are part of it */
    for (size_t i = 0; name[i];) {
        if (is_operator(name, i)) {
            named = true;
            i += operator_size(name, i);
        } else if (name[i] == '(') {
            const size_t end = bracket_end(name, i);
            const bool inner =
                strncmp(name + end, "::", 2) == 0 || strncmp(name + end, " const::", 8) == 0;
            if (!inner && i > p.from) {
                p.to = i;
                return p;
            }
            named = false;
            i = end;
        } else if (opens(name[i])) {
            i = bracket_end(name, i);
        } else {
            if (name[i] == ' ' && !named)
                p.from = i + 1;
            i++;
        }
    }
    p.from = 0; /* no argument list: not a function's name, so nothing is a return type */
    return p;
}

/* Remove template arguments, except those in the name of an operator. */
static void drop_templates(char *name)
{
    size_t kept = 0;
    for (size_t i = 0; name[i];) {
        const size_t n = is_operator(name, i) ? operator_size(name, i) : 1;
        if (n == 1 && name[i] == '<' && kept > 0) {
            i = bracket_end(name, i);
            if (kept >= 2 && name[kept - 1] == ':') /* Rust: "f::<u8>" */
                kept -= 2;
            continue;
        }
        memmove(name + kept, name + i, n);
        kept += n;
        i += n;
    }
    name[kept] = '\0';
}

void tl_demangled_base(char *name, bool templates)
{
    const struct parts p = find_parts(name);
    memmove(name, name + p.from, p.to - p.from);
    name[p.to - p.from] = '\0';
    if (templates)
        drop_templates(name);
}

void tl_drop_last_template(char *name)
{
    size_t i = 0, last = 0; /* where a list of template arguments begins behind which nothing is */
    while (name[i]) {
        const bool is_list = name[i] == '<' && i > 0;
        last = is_list ? i : 0;
        i += is_list ? bracket_end(name, i) - i : is_operator(name, i) ? operator_size(name, i) : 1;
    }
    if (last > 2 && name[last - 1] == ':') /* Rust: "f::<u8>" */
        last -= 2;
    if (last > 1 && name[last - 1] == ' ') /* "operator< <int>" */
        last--;
    if (last > 0)
        name[last] = '\0';
}

/* ---- shortening ------------------------------------------------------------------------------ */

/* Copy with the contents of each bracket of this kind at the top replaced by "…". */
static size_t elide(const char *name, char bracket, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; name[i] && n + 8 < size;) {
        const size_t whole = is_operator(name, i) ? operator_size(name, i) : 1;
        if (whole == 1 && name[i] == bracket) {
            const size_t end = bracket_end(name, i);
            const bool empty = end - i <= 2;
            out[n++] = bracket;
            memcpy(out + n, more, empty ? 0 : sizeof more - 1);
            n += empty ? 0 : sizeof more - 1;
            out[n++] = bracket == '<' ? '>' : ')';
            i = end;
            continue;
        }
        for (size_t k = 0; k < whole && n + 8 < size; k++)
            out[n++] = name[i + k];
        i += whole;
    }
    out[n] = '\0';
    return n;
}

char *tl_name_fit(const char *name, char *out, size_t size)
{
    char shorter[TL_DEMANGLED], shortest[TL_DEMANGLED];
    const char *fitting = name;
    if (strlen(name) >= size) {
        elide(name, '<', shorter, sizeof shorter);
        fitting = shorter;
    }
    if (strlen(fitting) >= size) {
        elide(shorter, '(', shortest, sizeof shortest);
        fitting = shortest;
    }
    const size_t n = strlen(fitting);
    if (n < size) {
        memcpy(out, fitting, n + 1);
    } else if (size >= sizeof more) {
        const size_t kept = whole_characters(fitting, size - sizeof more);
        memcpy(out, fitting, kept);
        memcpy(out + kept, more, sizeof more);
    } else if (size > 0) {
        out[0] = '\0';
    }
    return out;
}
