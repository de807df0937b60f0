/* SPDX-License-Identifier: MIT */
/*
 * Nearly all text is lines of executed instructions, so those have fast paths: fixed-width digits
 * from a table, or lines prepared once per block and copied. All other items are written one by one
 * with bounds checked once per item.
 */
#include "flow/item.h"

#include "base/digits.h"
#include "image/image.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX_ROOM 64 /* bytes for the lines of an item, at most, without its text */

unsigned tl_mode_space(uint64_t mode)
{
    static const uint8_t spaces[4][4] = {
        [TL_SEC_NS] = {TL_SPACE_EL1N, TL_SPACE_EL1N, TL_SPACE_EL2, TL_SPACE_EL3},
        [TL_SEC_S] = {TL_SPACE_EL1S, TL_SPACE_EL1S, TL_SPACE_EL2S, TL_SPACE_EL3},
        [TL_SEC_REALM] = {TL_SPACE_EL1R, TL_SPACE_EL1R, TL_SPACE_EL2R, TL_SPACE_ROOT},
        [TL_SEC_ROOT] = {TL_SPACE_ROOT, TL_SPACE_ROOT, TL_SPACE_ROOT, TL_SPACE_ROOT},
    };
    const unsigned level = tl_mode_privilege(mode), security = tl_mode_security(mode);
    if (tl_mode_arch(mode) != TL_ARCH_ARM || level > 3 || security > TL_SEC_ROOT)
        return TL_SPACE_ANY;
    return spaces[security][level];
}

char *tl_mode_text(uint64_t mode, char out[static 32])
{
    static const char *const security[] = {"ns", "s", "realm", "root"};
    static const char *const riscv[] = {"u", "s", "h", "m", "vu", "vs", "d"};
    const unsigned privilege = tl_mode_privilege(mode), sec = tl_mode_security(mode);
    const char *isa = tl_isa_name(tl_mode_isa(mode));
    switch (tl_mode_arch(mode)) {
    case TL_ARCH_ARM:
        snprintf(out, 32, "el%c%s%s.%s", privilege < 4 ? '0' + (int)privilege : '-',
                 sec < 4 ? "." : "", sec < 4 ? security[sec] : "", isa);
        break;
    case TL_ARCH_RISCV:
        snprintf(out, 32, "%s.%s",
                 privilege < sizeof riscv / sizeof *riscv ? riscv[privilege] : "-", isa);
        break;
    case TL_ARCH_X86:
        snprintf(out, 32, "ring%c.%s", privilege < 4 ? '0' + (int)privilege : '-', isa);
        break;
    default:
        snprintf(out, 32, "%s", isa);
        break;
    }
    return out;
}

bool tl_item_restarts_time(const struct tl_item *item)
{
    return item->kind == TL_ITEM_NOTE && item->text &&
           strncmp(item->text, TL_NOTE_TIME_RESTART, sizeof TL_NOTE_TIME_RESTART - 1) == 0;
}

const char *tl_gap_name(enum tl_gap gap)
{
    static const char *const names[TL_GAP_KINDS] = {
        [TL_GAP_OVERFLOW] = "overflow",
        [TL_GAP_SYNC] = "sync",
        [TL_GAP_BAD_PACKET] = "bad-packet",
        [TL_GAP_NO_IMAGE] = "no-image",
        [TL_GAP_NO_PATH] = "no-path",
        [TL_GAP_DISCARD] = "discard",
        [TL_GAP_OFF] = "off",
        [TL_GAP_TRANSPORT] = "transport",
        [TL_GAP_SWITCHED_OUT] = "switched-out",
    };
    return gap < TL_GAP_KINDS ? names[gap] : "-";
}

#define ROW(d)                                                                                     \
    d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9" d "a" d "b" d "c" d "d" d "e" d "f"

/* Two hex digits for each byte value. */
static const char pairs[] = ROW("0") ROW("1") ROW("2") ROW("3") ROW("4") ROW("5") ROW("6") ROW("7")
    ROW("8") ROW("9") ROW("a") ROW("b") ROW("c") ROW("d") ROW("e") ROW("f");

/* Write `n` hex digits, an even number. */
static inline uint8_t *put_digits(uint8_t *p, uint64_t value, unsigned n)
{
    for (unsigned i = n / 2; i-- > 0; p += 2)
        memcpy(p, pairs + 2 * (value >> (8 * i) & 255), 2);
    return p;
}

typedef uint8_t sixteen __attribute__((vector_size(16)));

/*
 * Write the 16 hex digits of 8 bytes, that of the lowest bits first. Digits are computed side by
 * side in any processor's vectors: cold code of Intel PT is decoded to text with 11 % fewer
 * instructions than by `pairs`.
 */
static inline void put_sixteen(uint8_t *p, uint64_t bytes)
{
    const sixteen all = (sixteen)(uint64_t __attribute__((vector_size(16)))){bytes},
                  digits = __builtin_shufflevector(all >> 4, all & 15, 0, 16, 1, 17, 2, 18, 3, 19,
                                                   4, 20, 5, 21, 6, 22, 7, 23),
                  letters = (sixteen)(digits > 9),
                  text = digits + '0' + (letters & ('a' - '0' - 10));
    memcpy(p, &text, sizeof text);
}

/* Write an address: all 16 digits. */
static inline uint8_t *put_pc(uint8_t *p, uint64_t value)
{
    put_sixteen(p, __builtin_bswap64(value));
    return p + 16;
}

static uint8_t *put_known(uint8_t *p, bool known, uint64_t value)
{
    return known ? tl_put_hex(p, value) : tl_put_text(p, "-");
}

/* Write an item's pc, or "-". */
static uint8_t *put_place(uint8_t *p, const struct tl_item *item)
{
    return item->flags & TL_ITEM_HAS_PC ? put_pc(p, item->pc) : tl_put_text(p, "-");
}

/* Write bytes in their order; of four or more some twice, rather than one by one. */
static inline uint8_t *put_bytes(uint8_t *p, const uint8_t *bytes, unsigned n)
{
    const size_t digits = 2 * (size_t)n;
    unsigned i = 0;
    if (n >= 8) {
        for (; i < n - 8; i += 8)
            put_sixteen(p + 2 * (size_t)i, tl_le64(bytes + i));
        put_sixteen(p + digits - 16, tl_le64(bytes + n - 8));
    } else if (n >= 4) {
        uint8_t ends[16]; /* the digits of the first four and of the last four */
        put_sixteen(ends, tl_le32(bytes) | (uint64_t)tl_le32(bytes + n - 4) << 32);
        memcpy(p, ends, 8);
        memcpy(p + digits - 8, ends + 8, 8);
    } else {
        for (; i < n; i++)
            put_digits(p + 2 * (size_t)i, bytes[i], 2);
    }
    return p + digits;
}

static uint8_t *put_insn(uint8_t *p, uint64_t pc, uint64_t encoding, unsigned size)
{
    *p++ = 'I';
    *p++ = ' ';
    p = put_pc(p, pc);
    *p++ = ' ';
    p = put_digits(p, encoding, size * 2);
    *p++ = '\n';
    return p;
}

/* Fast path for blocks of 4-byte little-endian instructions only, which make up most text. */
static int fixed_text(struct tl_buf *out, const struct tl_block *b, uint32_t n)
{
    const size_t line = 2 + 16 + 1 + 8 + 1;
    if (tl_buf_reserve(out, n * line) < 0)
        return TL_NOMEM;
    uint8_t *p = out->p + out->n;
    for (uint32_t i = 0; i < n; i++)
        p = put_insn(p, b->pc + i * 4ULL, tl_le32(b->code + i * 4ULL), 4);
    out->n += n * line;
    return TL_OK;
}

uint32_t tl_item_text_insn(uint8_t *out, uint64_t pc, const uint8_t *code, uint32_t size,
                           uint32_t encoding, enum tl_isa isa)
{
    if (!tl_isa_is_x86(isa) && (size == 2 || size == 4))
        return (uint32_t)(put_insn(out, pc, encoding, size) - out);
    uint8_t *p = put_pc(tl_put_text(out, "I "), pc);
    *p++ = ' ';
    p = put_bytes(p, code, size);
    *p++ = '\n';
    return (uint32_t)(p - out);
}

/* Append the first `n` lines prepared in the block, one for each instruction. */
static inline int ready_text(struct tl_buf *out, const struct tl_block *b, uint32_t n)
{
    uint32_t size = b->coded_size;
    if (n < b->n) {
        const uint8_t *p = b->coded;
        for (; n > 0; n--)
            p = (const uint8_t *)memchr(p, '\n', b->coded + size - p) + 1;
        size = (uint32_t)(p - b->coded);
    }
    if (tl_buf_reserve(out, size) < 0)
        return TL_NOMEM;
    if (size > 0) /* a buffer that holds nothing has no memory */
        memcpy(out->p + out->n, b->coded, size);
    out->n += size;
    return TL_OK;
}

/* `ready`: blocks with `coded` have their lines prepared. */
static inline int block_text(struct tl_buf *out, const struct tl_block *b, uint32_t n, bool ready)
{
    if (b->whole)
        return b->reported->text(b, n, out);
    if (ready && b->coded)
        return ready_text(out, b, n);
    if (b->isa == TL_ISA_A64 || b->isa == TL_ISA_A32)
        return fixed_text(out, b, n);
    for (uint32_t i = 0, at = 0; i < n && at < b->size; i++) {
        struct tl_insn insn;
        tl_block_insn(b, at, &insn);
        if (tl_buf_reserve(out, LINE_MAX_ROOM) < 0)
            return TL_NOMEM;
        out->n += tl_item_text_insn(out->p + out->n, b->pc + at, b->code + at, insn.size,
                                    insn.encoding, (enum tl_isa)b->isa);
        at += insn.size;
    }
    return TL_OK;
}

static int path_text(struct tl_buf *out, const struct tl_item *item, bool ready)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < item->n; i++) {
        const struct tl_block *const b = tl_path_block(item->path[i]);
        rc = block_text(out, b, b->n, ready);
    }
    return rc;
}

/* The form of a channel, if it is told, and the payload in this form. */
static uint8_t *put_form(uint8_t *p, const struct tl_item *item)
{
    char value[TL_PORT_VALUE];
    if (item->sub == TL_PORT_UNKNOWN)
        return p;
    p = tl_put_text(tl_put_text(p, " "), tl_port_form_name(item->sub));
    if (item->n <= 8 && tl_port_value(item->sub, tl_item_payload(item), item->n, value))
        p = tl_put_text(tl_put_text(p, " "), value);
    return p;
}

/* Up to 8 bytes are printed as a number, more as bytes in memory order. */
static int software_text(struct tl_buf *out, const struct tl_item *item)
{
    const char *const name = item->name ? item->name : "-";
    if (tl_buf_reserve(out, 2 * LINE_MAX_ROOM + strlen(name) + (size_t)item->n * 2) < 0)
        return TL_NOMEM;
    uint8_t *p = out->p + out->n, *const begin = p;
    p = tl_put_text(tl_put_text(tl_put_text(p, "S "), name), " ");
    if (item->flags & TL_ITEM_HAS_PC && strcmp(name, "stm") == 0) {
        p = tl_put_text(tl_put_hex(p, item->pc >> 32), ".");
        p = tl_put_hex(p, item->pc & UINT32_MAX);
    } else {
        p = put_known(p, item->flags & TL_ITEM_HAS_PC, item->pc);
    }
    *p++ = ' ';
    if (item->n == 0)
        *p++ = '-';
    else if (item->n > 8)
        p = put_bytes(p, item->data, item->n);
    else
        for (uint32_t i = item->n; i-- > 0;)
            p = put_digits(p, item->data[i], 2);
    p = put_form(p, item);
    *p++ = '\n';
    out->n += (size_t)(p - begin);
    return TL_OK;
}

/* Write any other item; at most LINE_MAX_ROOM bytes plus the item's text. */
static uint8_t *put_line(uint8_t *p, const struct tl_item *item)
{
    char mode[32];
    switch (item->kind) {
    case TL_ITEM_UNKNOWN:
        p = put_pc(tl_put_text(p, "N "), item->pc);
        break;
    case TL_ITEM_BRANCH:
    case TL_ITEM_TARGET:
        p = put_place(tl_put_text(p, "B "), item);
        p = put_pc(tl_put_text(p, " "), item->value);
        break;
    case TL_ITEM_EXCEPTION:
        p = tl_put_text(tl_put_text(p, "X "), item->text ? item->text : "-");
        p = tl_put_text(p, " ");
        p = tl_exception_number(item->sub) < 0
                ? tl_put_text(p, "-")
                : tl_put_decimal(p, (uint64_t)tl_exception_number(item->sub));
        p = put_place(tl_put_text(p, " "), item);
        break;
    case TL_ITEM_ERET:
        p = tl_put_text(p, "R");
        break;
    case TL_ITEM_MODE:
        p = tl_put_text(tl_put_text(p, "M "), tl_mode_text(item->value, mode));
        break;
    case TL_ITEM_CONTEXT:
        p = put_known(tl_put_text(p, "C "), item->flags & TL_ITEM_HAS_PC, item->pc);
        p = put_known(tl_put_text(p, " "), item->flags & TL_ITEM_HAS_VALUE, item->value);
        break;
    case TL_ITEM_TIME:
        p = tl_put_text(p, item->sub == TL_TIME_SOURCE ? "A time " : "T ");
        p = tl_put_decimal(p, item->value);
        break;
    case TL_ITEM_CYCLES:
        p = tl_put_decimal(tl_put_text(p, "Y "), item->value);
        break;
    case TL_ITEM_EVENT:
        p = tl_put_hex(tl_put_text(p, "V "), item->value);
        break;
    case TL_ITEM_GAP:
        if (item->flags & TL_ITEM_HAS_PC)
            p = tl_put_text(put_pc(tl_put_text(p, "B - "), item->pc), "\n");
        p = tl_put_text(tl_put_text(p, "G "), tl_gap_name(item->sub));
        if (item->flags & TL_ITEM_HAS_VALUE)
            p = tl_put_decimal(tl_put_text(p, " "), item->value);
        if (item->flags & TL_ITEM_HAS_VALUE && item->flags & TL_ITEM_AT_LEAST)
            p = tl_put_text(p, "+");
        break;
    case TL_ITEM_TRACE_ON:
        p = tl_put_text(p, "O");
        break;
    case TL_ITEM_NOTE:
        p = tl_put_text(tl_put_text(p, "A "), item->text ? item->text : "-");
        break;
    case TL_ITEM_HARDWARE:
        p = tl_put_text(tl_put_text(p, "H "), item->text ? item->text : "-");
        break;
    default:
        return p;
    }
    *p++ = '\n';
    return p;
}

static inline int item_text(struct tl_buf *out, const struct tl_item *item, bool ready)
{
    if (item->kind == TL_ITEM_BLOCK)
        return block_text(out, item->block, item->n, ready);
    if (item->kind == TL_ITEM_PATH)
        return path_text(out, item, ready);
    if (item->kind == TL_ITEM_SOFTWARE)
        return software_text(out, item);
    const size_t text = tl_item_has_text(item->kind) && item->text ? strlen(item->text) : 0;
    if (tl_buf_reserve(out, LINE_MAX_ROOM + text) < 0)
        return TL_NOMEM;
    uint8_t *const p = out->p + out->n;
    out->n += (size_t)(put_line(p, item) - p);
    return TL_OK;
}

int tl_item_text(struct tl_buf *out, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (item_text(out, &items[i], false) < 0)
            return TL_NOMEM;
    return TL_OK;
}

int tl_item_text_coded(struct tl_buf *out, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (item_text(out, &items[i], true) < 0)
            return TL_NOMEM;
    return TL_OK;
}
