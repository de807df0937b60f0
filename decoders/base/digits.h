/* SPDX-License-Identifier: MIT */
/*
 * Numbers and texts into memory that is there, without printf: of some lines there are tens of
 * millions. Each returns the place behind what it put. And digits read. Header only, thread-safe.
 */
#ifndef TL_BASE_DIGITS_H
#define TL_BASE_DIGITS_H

#include <stdint.h>
#include <string.h>

/* Without its NUL. */
static inline uint8_t *tl_put_text(uint8_t *p, const char *text)
{
    const size_t n = strlen(text);
    return (uint8_t *)memcpy(p, text, n) + n;
}

/* Up to 20 digits. */
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

/* Up to 16 digits, no more than it takes. */
static inline uint8_t *tl_put_hex(uint8_t *p, uint64_t value)
{
    unsigned shift = value ? (63 - (unsigned)__builtin_clzll(value)) / 4 * 4 : 0;
    for (;; shift -= 4) {
        *p++ = (uint8_t) "0123456789abcdef"[value >> shift & 15];
        if (shift == 0)
            return p;
    }
}

/* The value of a hexadecimal digit; -1: it is none. */
static inline int tl_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
