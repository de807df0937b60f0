/* SPDX-License-Identifier: MIT */
/*
 * Fast number and text formatting into existing memory, without printf, for output with tens of
 * millions of lines. Each tl_put function returns the position after its output. Also hex digit
 * parsing. Header only, thread-safe.
 */
#ifndef TL_BASE_DIGITS_H
#define TL_BASE_DIGITS_H

#include <stdint.h>
#include <string.h>

/* Write text without its NUL. */
static inline uint8_t *tl_put_text(uint8_t *p, const char *text)
{
    const size_t n = strlen(text);
    return (uint8_t *)memcpy(p, text, n) + n;
}

/* Write up to 20 digits. */
static inline uint8_t *tl_put_decimal(uint8_t *p, uint64_t value)
{
    uint8_t digits[20];
    unsigned n = 0;
    do {
        digits[n++] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n)
        *p++ = digits[--n];
    return p;
}

/* Write up to 16 digits, without leading zeros. */
static inline uint8_t *tl_put_hex(uint8_t *p, uint64_t value)
{
    unsigned shift = value ? (63 - (unsigned)__builtin_clzll(value)) / 4 * 4 : 0;
    for (;; shift -= 4) {
        *p++ = (uint8_t) "0123456789abcdef"[value >> shift & 15];
        if (shift == 0)
            return p;
    }
}

/* Value of a hexadecimal digit; -1 if it is not one. */
static inline int tl_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
