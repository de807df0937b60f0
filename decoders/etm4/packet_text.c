/* SPDX-License-Identifier: MIT */
/*
 * Names follow from the header byte where the packet type is not enough, since the reference
 * decoder names the formats of a packet and listings are compared with its. Lines go to a fixed
 * buffer: their fields are bounded.
 */
#include "etm4/packet_text.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *address_name(uint8_t header)
{
    switch (header) {
    case 0x82:
        return "I_ADDR_CTXT_L_32IS0";
    case 0x83:
        return "I_ADDR_CTXT_L_32IS1";
    case 0x85:
        return "I_ADDR_CTXT_L_64IS0";
    case 0x86:
        return "I_ADDR_CTXT_L_64IS1";
    case 0x95:
        return "I_ADDR_S_IS0";
    case 0x96:
        return "I_ADDR_S_IS1";
    case 0x9a:
        return "I_ADDR_L_32IS0";
    case 0x9b:
        return "I_ADDR_L_32IS1";
    case 0x9d:
        return "I_ADDR_L_64IS0";
    case 0x9e:
        return "I_ADDR_L_64IS1";
    default:
        return "I_ADDR_MATCH";
    }
}

static const char *source_name(uint8_t header)
{
    static const char *const names[] = {"I_SRC_ADDR_S_IS0",   "I_SRC_ADDR_S_IS1",
                                        "I_SCR_ADDR_L_32IS0", "I_SRC_ADDR_L_32IS1",
                                        "I_SRC_ADDR_L_64IS0", "I_SRC_ADDR_L_64IS1"};
    return header >= 0xb4 && header <= 0xb9 ? names[header - 0xb4] : "I_SRC_ADDR_MATCH";
}

static const char *atom_name(uint8_t header)
{
    if (header >= 0xf8)
        return "I_ATOM_F3";
    if (header >= 0xf6)
        return "I_ATOM_F1";
    if (header == 0xf5 || (header >= 0xd5 && header <= 0xd7))
        return "I_ATOM_F5";
    if (header >= 0xdc && header <= 0xdf)
        return "I_ATOM_F4";
    if (header >= 0xd8 && header <= 0xdb)
        return "I_ATOM_F2";
    return "I_ATOM_F6";
}

static const char *conditional_name(uint8_t header)
{
    if (header == 0x43)
        return "I_COND_FLUSH";
    if (header < 0x43)
        return "I_COND_I_F2";
    if (header < 0x48)
        return "I_COND_RES_F4";
    if (header < 0x50)
        return "I_COND_RES_F2";
    if (header < 0x60)
        return "I_COND_RES_F3";
    if (header == 0x6c)
        return "I_COND_I_F1";
    return header == 0x6d ? "I_COND_I_F3" : "I_COND_RES_F1";
}

static const char *cancel_name(uint8_t header)
{
    if (header >= 0x38)
        return "I_CANCEL_F3";
    if (header >= 0x34)
        return "I_CANCEL_F2";
    return header == 0x2f ? "I_CANCEL_F1_MISPRED" : "I_CANCEL_F1";
}

static const char *cycles_name(uint8_t header)
{
    if (header >= 0x10)
        return "I_CCNT_F3";
    return header >= 0x0e ? "I_CCNT_F1" : "I_CCNT_F2";
}

static const char *bad_name(uint64_t code)
{
    static const char *const names[] = {"I_RESERVED", "I_RESERVED_CFG", "I_BAD_SEQUENCE"};
    return names[code < 3 ? code : 2];
}

const char *tl_etm4_packet_name(const struct tl_etm4_packet *packet)
{
    static const char *const names[TL_ETM4_TYPES] = {
        [TL_ETM4_NOT_SYNC] = "I_NOT_SYNC",
        [TL_ETM4_ASYNC] = "I_ASYNC",
        [TL_ETM4_TRACE_INFO] = "I_TRACE_INFO",
        [TL_ETM4_TRACE_ON] = "I_TRACE_ON",
        [TL_ETM4_DISCARD] = "I_DISCARD",
        [TL_ETM4_OVERFLOW] = "I_OVERFLOW",
        [TL_ETM4_TIMESTAMP] = "I_TIMESTAMP",
        [TL_ETM4_TS_MARKER] = "I_TS_MARKER",
        [TL_ETM4_COMMIT] = "I_COMMIT",
        [TL_ETM4_MISPREDICT] = "I_MISPREDICT",
        [TL_ETM4_CONTEXT] = "I_CTXT",
        [TL_ETM4_Q] = "I_Q",
        [TL_ETM4_EVENT] = "I_EVENT",
        [TL_ETM4_EXCEPTION_RETURN] = "I_EXCEPT_RTN",
        [TL_ETM4_FUNCTION_RETURN] = "I_FUNC_RET",
        [TL_ETM4_IGNORE] = "I_IGNORE",
        [TL_ETM4_PE_RESET] = "I_PE_RESET",
        [TL_ETM4_TRANSACTION_START] = "I_TRANS_ST",
        [TL_ETM4_TRANSACTION_COMMIT] = "I_TRANS_COMMIT",
        [TL_ETM4_ITE] = "I_ITE",
        [TL_ETM4_INCOMPLETE] = "I_INCOMPLETE_EOT",
    };
    switch (packet->type) {
    case TL_ETM4_ATOM:
        return atom_name(packet->header);
    case TL_ETM4_ADDRESS:
        return address_name(packet->header);
    case TL_ETM4_SOURCE_ADDRESS:
        return source_name(packet->header);
    case TL_ETM4_CYCLE_COUNT:
        return cycles_name(packet->header);
    case TL_ETM4_CANCEL:
        return cancel_name(packet->header);
    case TL_ETM4_CONDITIONAL:
        return conditional_name(packet->header);
    case TL_ETM4_DATA_MARKER:
        return packet->header < 0x28 ? "I_NUM_DS_MKR" : "I_UNNUM_DS_MKR";
    case TL_ETM4_EXCEPTION:
        return packet->flags & TL_ETM4_TRANSACTION_FAILED ? "I_TRANS_FAIL" : "I_EXCEPT";
    case TL_ETM4_BAD:
        return bad_name(packet->value);
    default:
        return packet->type < TL_ETM4_TYPES ? names[packet->type] : "I_UNKNOWN";
    }
}

/* ---- fields -------------------------------------------------------------------------------- */

struct line {
    char *p;
    size_t n;
};

static void TL_PRINTF(2, 3) add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(line->p + line->n, TL_ETM4_TEXT_MAX - line->n, format, arguments);
    va_end(arguments);
    if (n > 0 && (size_t)n < TL_ETM4_TEXT_MAX - line->n)
        line->n += (size_t)n;
}

static void add_atoms(struct line *line, unsigned n, uint64_t bits)
{
    char text[65];
    for (unsigned k = 0; k < n && k < 64; k++)
        text[k] = bits >> k & 1 ? 'E' : 'N';
    text[n < 64 ? n : 64] = '\0';
    if (n > 0)
        add(line, " atoms=%s", text);
}

static void add_address(struct line *line, const struct tl_etm4_packet *packet)
{
    if (packet->flags & TL_ETM4_EXACT)
        add(line, " match=%u", packet->n);
    add(line, " addr=0x%016" PRIx64, packet->value);
}

static void add_context(struct line *line, const struct tl_etm4_packet *packet)
{
    const uint32_t flags = packet->flags;
    if ((flags & TL_ETM4_HAS_CONTEXT) == 0)
        return;
    add(line, " el=%u sf=%d ns=%d", flags >> TL_ETM4_EL_SHIFT & 3, (flags & TL_ETM4_SF) != 0,
        (flags & TL_ETM4_NS) != 0);
    if (flags & TL_ETM4_NSE)
        add(line, " nse=1");
    if (flags & TL_ETM4_HAS_CTXID)
        add(line, " ctxid=0x%" PRIx32, packet->context_id);
    if (flags & TL_ETM4_HAS_VMID)
        add(line, " vmid=0x%" PRIx32, packet->vmid);
}

static void add_trace_info(struct line *line, const struct tl_etm4_packet *packet)
{
    add(line, " info=0x%x spec=%" PRIu64 " threshold=%" PRIu64, packet->n, packet->value >> 32,
        packet->value2);
    if ((uint32_t)packet->value != 0)
        add(line, " window=%" PRIu32, (uint32_t)packet->value);
}

static void add_cycles(struct line *line, const struct tl_etm4_packet *packet)
{
    if (packet->flags & TL_ETM4_HAS_COUNT)
        add(line, " cc=%" PRIu64, packet->value);
    else
        add(line, " cc=unknown");
    if (packet->flags & TL_ETM4_HAS_COMMIT)
        add(line, " commit=%" PRIu64, packet->value2);
}

static void add_q(struct line *line, const struct tl_etm4_packet *packet)
{
    if (packet->flags & TL_ETM4_HAS_COUNT)
        add(line, " count=%" PRIu64, packet->value2);
    if (packet->flags & TL_ETM4_HAS_ADDRESS)
        add_address(line, packet);
}

static void add_fields(struct line *line, const struct tl_etm4_packet *packet)
{
    switch (packet->type) {
    case TL_ETM4_NOT_SYNC:
        add(line, " bytes=%" PRIu64, packet->value);
        break;
    case TL_ETM4_TRACE_INFO:
        add_trace_info(line, packet);
        break;
    case TL_ETM4_TIMESTAMP:
        add(line, " ts=%" PRIu64, packet->value);
        if (packet->flags & TL_ETM4_HAS_COUNT)
            add(line, " cc=%" PRIu64, packet->value2);
        break;
    case TL_ETM4_CYCLE_COUNT:
        add_cycles(line, packet);
        break;
    case TL_ETM4_COMMIT:
        add(line, " commit=%" PRIu64, packet->value);
        break;
    case TL_ETM4_CANCEL:
        add_atoms(line, packet->n, packet->value2);
        add(line, " cancel=%" PRIu64, packet->value);
        break;
    case TL_ETM4_MISPREDICT:
        add_atoms(line, packet->n, packet->value2);
        break;
    case TL_ETM4_ATOM:
        add_atoms(line, packet->n, packet->value);
        break;
    case TL_ETM4_ADDRESS:
    case TL_ETM4_SOURCE_ADDRESS:
        add_address(line, packet);
        add_context(line, packet);
        break;
    case TL_ETM4_CONTEXT:
        add_context(line, packet);
        break;
    case TL_ETM4_Q:
        add_q(line, packet);
        break;
    case TL_ETM4_EVENT:
        add(line, " event=0x%" PRIx64, packet->value);
        break;
    case TL_ETM4_EXCEPTION:
        add(line, " type=0x%" PRIx64 " ret=%u", packet->value, packet->n);
        break;
    case TL_ETM4_ITE:
        add(line, " el=%u value=0x%" PRIx64, packet->n, packet->value);
        break;
    case TL_ETM4_DATA_MARKER:
    case TL_ETM4_CONDITIONAL:
        add(line, " value=0x%" PRIx64, packet->value);
        break;
    default:
        break;
    }
}

size_t tl_etm4_packet_text(char out[static TL_ETM4_TEXT_MAX], const struct tl_etm4_packet *packet,
                           unsigned id)
{
    struct line line = {out, 0};
    add(&line, "%" PRIu64 " %02x %s", packet->offset, id, tl_etm4_packet_name(packet));
    add_fields(&line, packet);
    return line.n;
}
