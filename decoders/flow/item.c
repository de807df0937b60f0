/* SPDX-License-Identifier: MIT */
#include "flow/item.h"

#include "image/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_ROOM 64 /* of a line without a text of its own */

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
    static const char riscv[] = "ushm";
    const unsigned privilege = tl_mode_privilege(mode), sec = tl_mode_security(mode);
    const char *isa = tl_isa_name(tl_mode_isa(mode));
    switch (tl_mode_arch(mode)) {
    case TL_ARCH_ARM:
        snprintf(out, 32, "el%c%s%s.%s", privilege < 4 ? '0' + (int)privilege : '-',
                 sec < 4 ? "." : "", sec < 4 ? security[sec] : "", isa);
        break;
    case TL_ARCH_RISCV:
        snprintf(out, 32, "%c.%s", privilege < 4 ? riscv[privilege] : '-', isa);
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
    };
    return gap < TL_GAP_KINDS ? names[gap] : "-";
}

#define ROW(d)                                                                                     \
    d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9" d "a" d "b" d "c" d "d" d "e" d "f"

/* Two digits of each byte. */
static const char pairs[] = ROW("0") ROW("1") ROW("2") ROW("3") ROW("4") ROW("5") ROW("6") ROW("7")
    ROW("8") ROW("9") ROW("a") ROW("b") ROW("c") ROW("d") ROW("e") ROW("f");

/* `n` digits, an even number. */
static inline char *put_hex(char *p, uint64_t value, unsigned n)
{
    for (unsigned i = n / 2; i-- > 0; p += 2)
        memcpy(p, pairs + 2 * (value >> (8 * i) & 255), 2);
    return p;
}

static char *put_bytes(char *p, const uint8_t *bytes, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p = put_hex(p, bytes[i], 2);
    return p;
}

static char *put_insn(char *p, uint64_t pc, uint64_t encoding, unsigned size)
{
    *p++ = 'I';
    *p++ = ' ';
    p = put_hex(p, pc, 16);
    *p++ = ' ';
    p = put_hex(p, encoding, size * 2);
    *p++ = '\n';
    return p;
}

/* All instructions 4 bytes, little-endian: by far the most text there is. */
static int fixed_text(struct tl_buf *out, const struct tl_block *b, uint32_t n)
{
    const size_t line = 2 + 16 + 1 + 8 + 1;
    if (tl_buf_reserve(out, n * line) < 0)
        return TL_NOMEM;
    char *p = (char *)out->p + out->n;
    for (uint32_t i = 0; i < n; i++)
        p = put_insn(p, b->pc + i * 4ULL, tl_le32(b->code + i * 4ULL), 4);
    out->n += n * line;
    return TL_OK;
}

static int block_text(struct tl_buf *out, const struct tl_block *b, uint32_t n)
{
    if (b->whole)
        return b->told->text(b, n, out);
    if (b->isa == TL_ISA_A64 || b->isa == TL_ISA_A32)
        return fixed_text(out, b, n);
    for (uint32_t i = 0, at = 0; i < n && at < b->size; i++) {
        struct tl_insn insn;
        tl_block_insn(b, at, &insn);
        if (tl_buf_reserve(out, LINE_MAX_ROOM) < 0)
            return TL_NOMEM;
        char *p = (char *)out->p + out->n, *const begin = p;
        if (insn.size == 2 || insn.size == 4) {
            p = put_insn(p, b->pc + at, insn.encoding, insn.size);
        } else {
            p = put_hex(memcpy(p, "I ", 2) + 2, b->pc + at, 16);
            *p++ = ' ';
            p = put_bytes(p, b->code + at, insn.size);
            *p++ = '\n';
        }
        out->n += (size_t)(p - begin);
        at += insn.size;
    }
    return TL_OK;
}

/* Up to 8 bytes are a number, more are bytes in memory order. */
static int software_text(struct tl_buf *out, const struct tl_item *item)
{
    char channel[24] = "-";
    const bool has_master = item->name && strcmp(item->name, "stm") == 0;
    if (item->flags & TL_ITEM_HAS_PC && has_master)
        snprintf(channel, sizeof channel, "%" PRIx64 ".%" PRIx64, item->pc >> 32,
                 item->pc & UINT32_MAX);
    else if (item->flags & TL_ITEM_HAS_PC)
        snprintf(channel, sizeof channel, "%" PRIx64, item->pc);
    int rc = tl_buf_printf(out, "S %s %s ", item->name ? item->name : "-", channel);
    if (rc < 0 || tl_buf_reserve(out, (size_t)item->n * 2 + 2) < 0)
        return TL_NOMEM;
    char *p = (char *)out->p + out->n, *const begin = p;
    if (item->n == 0)
        *p++ = '-';
    else if (item->n > 8)
        p = put_bytes(p, item->data, item->n);
    else
        for (uint32_t i = item->n; i-- > 0;)
            p = put_hex(p, item->data[i], 2);
    *p++ = '\n';
    out->n += (size_t)(p - begin);
    return TL_OK;
}

static int exception_text(struct tl_buf *out, const struct tl_item *item)
{
    const char *name = item->text ? item->text : "-";
    if (item->flags & TL_ITEM_HAS_PC)
        return tl_buf_printf(out, "X %s %u %016" PRIx64 "\n", name, item->sub, item->pc);
    return tl_buf_printf(out, "X %s %u -\n", name, item->sub);
}

static int context_text(struct tl_buf *out, const struct tl_item *item)
{
    char context[24] = "-", vmid[24] = "-";
    if (item->flags & TL_ITEM_HAS_PC)
        snprintf(context, sizeof context, "%" PRIx64, item->pc);
    if (item->flags & TL_ITEM_HAS_VALUE)
        snprintf(vmid, sizeof vmid, "%" PRIx64, item->value);
    return tl_buf_printf(out, "C %s %s\n", context, vmid);
}

static int gap_text(struct tl_buf *out, const struct tl_item *item)
{
    const char *name = tl_gap_name(item->sub);
    if (item->flags & TL_ITEM_HAS_VALUE)
        return tl_buf_printf(out, "G %s %" PRIu64 "%s\n", name, item->value,
                             item->flags & TL_ITEM_AT_LEAST ? "+" : "");
    return tl_buf_printf(out, "G %s\n", name);
}

static int item_text(struct tl_buf *out, const struct tl_item *item)
{
    char mode[32];
    switch (item->kind) {
    case TL_ITEM_BLOCK:
        return block_text(out, item->block, item->n);
    case TL_ITEM_UNKNOWN:
        return tl_buf_printf(out, "N %016" PRIx64 "\n", item->pc);
    case TL_ITEM_BRANCH:
    case TL_ITEM_TARGET:
        if (item->flags & TL_ITEM_HAS_PC)
            return tl_buf_printf(out, "B %016" PRIx64 " %016" PRIx64 "\n", item->pc, item->value);
        return tl_buf_printf(out, "B - %016" PRIx64 "\n", item->value);
    case TL_ITEM_EXCEPTION:
        return exception_text(out, item);
    case TL_ITEM_ERET:
        return tl_buf_add(out, "R\n", 2);
    case TL_ITEM_MODE:
        return tl_buf_printf(out, "M %s\n", tl_mode_text(item->value, mode));
    case TL_ITEM_CONTEXT:
        return context_text(out, item);
    case TL_ITEM_TIME:
        return tl_buf_printf(out, "%s %" PRIu64 "\n", item->sub == TL_TIME_SOURCE ? "A time" : "T",
                             item->value);
    case TL_ITEM_CYCLES:
        return tl_buf_printf(out, "Y %" PRIu64 "\n", item->value);
    case TL_ITEM_EVENT:
        return tl_buf_printf(out, "V %" PRIx64 "\n", item->value);
    case TL_ITEM_SOFTWARE:
        return software_text(out, item);
    case TL_ITEM_GAP:
        return gap_text(out, item);
    case TL_ITEM_TRACE_ON:
        return tl_buf_add(out, "O\n", 2);
    case TL_ITEM_NOTE:
        return tl_buf_printf(out, "A %s\n", item->text);
    default:
        return TL_OK;
    }
}

int tl_item_text(struct tl_buf *out, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (item_text(out, &items[i]) < 0)
            return TL_NOMEM;
    return TL_OK;
}
