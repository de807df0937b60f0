/* SPDX-License-Identifier: MIT */
/*
 * Counts lines of the packet listing, which is the same for all formats, instead of asking each
 * decoder. Every byte is decoded as often as there are questions, so callers pass a capture's
 * beginning.
 */
#include "cli/setupevidence.h"

#include "decode/decode.h"

#include <stdlib.h>
#include <string.h>

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    return TL_OK;
}

static struct tl_evidence *of_stream(struct tl_evidences *all,
                                     const struct tl_decode_stream *stream)
{
    const struct tl_source *const source = stream ? stream->source : NULL;
    return source && source->id < TL_EVIDENCE_IDS ? &all->of[source->id] : NULL;
}

/* The hexadecimal number behind a field's name; false: the packet lacks it. */
static bool field(const char *line, const char *name, uint64_t *out)
{
    const char *const at = strstr(line, name);
    *out = at ? strtoull(at + strlen(name), NULL, 16) : 0;
    return at != NULL;
}

static void take_info(struct tl_evidence *e, uint64_t info)
{
    e->info_all = e->infos ? e->info_all & (uint32_t)info : (uint32_t)info;
    e->info_any |= (uint32_t)info;
    e->infos++;
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    struct tl_evidence *const e = of_stream(context, stream);
    uint64_t value;
    if (!e)
        return TL_OK;
    e->packets++;
    e->errors += strstr(line, "BAD") != NULL || strstr(line, "RESERVED") != NULL;
    e->syncs += strstr(line, " I_ASYNC") != NULL;
    if (strstr(line, " I_TRACE_INFO") && field(line, " info=0x", &value))
        take_info(e, value);
    e->stamps += strstr(line, "TIMESTAMP") != NULL;
    e->contexts += field(line, " ctxid=0x", &value);
    e->vmids += field(line, " vmid=0x", &value);
    e->starts += strstr(line, " I_SYNC") && !strstr(line, "reason=periodic");
    e->counted += strstr(line, " I_SYNC_CYCLE") || strstr(line, " CYCLE_COUNT");
    e->wide += strstr(line, "_64IS") && field(line, " addr=0x", &value) && value >> 32;
    return TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct tl_evidences *const all = context;
    struct tl_evidence *const e = of_stream(all, loss->stream);
    if (e)
        e->errors += loss->fault ? loss->bytes : 0;
    else if (strstr(loss->reason, "not in the configuration"))
        all->unnamed = true;
    else
        all->errors += loss->fault ? loss->bytes : 0;
    return TL_OK;
}

int tl_evidence_list(const struct tl_setup *setup, struct tl_bytes bytes, struct tl_evidences *out)
{
    const struct tl_decode_sink sink = {
        .context = out, .items = on_items, .packet = on_packet, .loss = on_loss};
    struct tl_decode *decode = NULL;
    struct tl_fail fail = {0};
    *out = (struct tl_evidences){0};
    int rc = tl_decode_new(&decode, setup, NULL, &sink, &fail);
    if (rc == TL_OK)
        rc = tl_decode_push(decode, bytes.p, bytes.n);
    if (rc == TL_OK)
        rc = tl_decode_finish(decode);
    tl_decode_free(decode);
    for (size_t i = 0; i < TL_EVIDENCE_IDS; i++) {
        out->packets += out->of[i].packets;
        out->errors += out->of[i].errors;
    }
    return rc == TL_NOMEM ? rc : TL_OK;
}
