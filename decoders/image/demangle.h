/* SPDX-License-Identifier: MIT */
/*
 * C++ and Rust names as in the source: "std::vector<int>::push_back(int&&)" for
 * _ZNSt6vectorIiE9push_backEOi. The only place that calls the demanglers, those of GNU libiberty:
 * C++ (Itanium), Rust's older and newer mangling. Names come from files and may be hostile: their
 * output may be exponentially longer than the input, so it ends after a few kilobytes, which also
 * bounds the time. Needs up to 512 KiB of stack. Thread-safe.
 */
#ifndef TL_IMAGE_DEMANGLE_H
#define TL_IMAGE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define TL_MANGLED_MAX 4096 /* longer names are not demangled */
#define TL_DEMANGLED   4096 /* size of a demangled name, including the final NUL */

/* Where the mangled name begins: Mach-O files have another underscore in front. */
static inline const char *tl_mangled_begin(const char *name)
{
    return name[0] == '_' && name[1] == '_' && (name[2] == 'Z' || name[2] == 'R') ? name + 1 : name;
}

/* May the name be mangled? */
static inline bool tl_is_mangled(const char *name)
{
    const char *const begin = tl_mangled_begin(name);
    return begin[0] == '_' && (begin[1] == 'Z' || begin[1] == 'R');
}

/*
 * Write the demangled name to `out`. A version or "@plt" behind the name is kept; a name that is
 * too long ends in "…". Returns its length; 0: `name` is not mangled.
 */
size_t tl_demangle(const char *name, char out[static TL_DEMANGLED]);

/*
 * Reduce a demangled name to that of the function, in place: without return type, arguments,
 * qualifiers and what compilers append ("[clone .cold]"). `templates`: without template arguments,
 * too. "void f<int>(char)" becomes "f<int>", or "f". Other names remain as they are.
 */
void tl_demangled_base(char *name, bool templates);
/* Drop the template arguments of the function alone, in place: "A<int>::f<char>" becomes
 * "A<int>::f".
 */
void tl_drop_last_template(char *name);

/*
 * Write a name to `out` so that it fits `size` bytes: template arguments are replaced by "<…>" as
 * needed, then the arguments by "(…)"; then the end is cut off and replaced by "…". Returns `out`.
 */
char *tl_name_fit(const char *name, char *out, size_t size);

#endif
