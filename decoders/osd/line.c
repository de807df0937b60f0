/* SPDX-License-Identifier: MIT */
/*
 * A packet of Open SoC Debug as one line of a listing. The words of packets that are not
 * interpreted are printed in full, so that a listing loses nothing.
 */
#include "osd/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
    char *p;
    size_t n;
    size_t size;
};

static void TL_PRINTF(2, 3) put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->p + t->n, t->size - t->n, format, args);
    va_end(args);
    if (n > 0)
        t->n = t->n + (size_t)n < t->size ? t->n + (size_t)n : t->size - 1;
}

static void put_words(struct text *t, const struct tl_di_packet *packet)
{
    for (unsigned i = TL_DI_HEADER; i < packet->n; i++)
        put(t, "%s%04x", i > TL_DI_HEADER ? " " : "", packet->words[i]);
}

static const char *const register_names[16] = {
    "REQ_READ_16",   "REQ_READ_32",  "REQ_READ_64",   "REQ_READ_128",
    "REQ_WRITE_16",  "REQ_WRITE_32", "REQ_WRITE_64",  "REQ_WRITE_128",
    "RESP_READ_16",  "RESP_READ_32", "RESP_READ_64",  "RESP_READ_128",
    "RESP_READ_ERR", "RESERVED",     "RESP_WRITE_OK", "RESP_WRITE_ERR"};

void tl_osd_line(char *out, size_t size, const struct tl_di_packet *packet,
                 const struct tl_osd_event *e)
{
    struct text t = {out, 0, size};
    const uint16_t flags = packet->words[2];
    put(&t, "@%" PRIu64 " len=%u dest=%04x src=%04x flags=%04x ", packet->offset, packet->n,
        packet->words[0], packet->words[1], flags);
    switch (e->kind) {
    case TL_OSD_REGISTER:
        put(&t, "REG %s ", register_names[TL_DI_TYPE_SUB(flags)]);
        put_words(&t, packet);
        break;
    case TL_OSD_PART:
        put(&t, "EVENT part(CONT) %u words", packet->n - TL_DI_HEADER);
        break;
    case TL_OSD_CORE_EVENT:
        put(&t,
            "CTM ts=%" PRIu32 " npc=%016" PRIx64 " pc=%016" PRIx64
            " mode=%u ret=%u call=%u modechange=%u",
            e->time, e->npc, e->pc, e->mode, e->ret, e->call, e->modechange);
        break;
    case TL_OSD_SYSTEM_EVENT:
        put(&t, "STM ts=%" PRIu32 " id=%04x value=%016" PRIx64, e->time, e->id, e->value);
        break;
    case TL_OSD_CHARACTER:
        put(&t, "UART %02x", (unsigned)e->value);
        break;
    case TL_OSD_STALL:
        put(&t, "CDM stall=%u", (unsigned)e->value);
        break;
    case TL_OSD_OVERFLOW:
        put(&t, "OVERFLOW missed=%u ", (unsigned)e->value);
        break;
    case TL_OSD_MEMORY:
        put(&t, "MAM ");
        put_words(&t, packet);
        break;
    case TL_OSD_RESERVED:
        put(&t, "RESERVED type=%u ", TL_DI_TYPE(flags));
        put_words(&t, packet);
        break;
    default:
        put(&t, "EVENT ");
        put_words(&t, packet);
    }
}
