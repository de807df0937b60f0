/* SPDX-License-Identifier: MIT */
/*
 * A doubtful event is held back until the module's next one, because only that tells a system trace
 * event from a memory transfer. Lines are those of osd-sw to the byte, so that logs can be compared
 * with diff.
 */
#include "osd/osdsw.h"

#include <inttypes.h>
#include <string.h>

#define PRINT_ID 4 /* STM events with this id contain one character each */

int tl_osdsw_log_of(const char *name)
{
    static const char *const names[] = {"osd-sw-ctm", "osd-sw-stm", "osd-sw-print"};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return TL_USAGE;
}

static int print_character(struct tl_buf *out, const struct tl_osd_event *e)
{
    const uint8_t c = (uint8_t)e->value;
    const bool is_text = e->kind == TL_OSD_SYSTEM_EVENT && e->id == PRINT_ID && e->value <= 0xff;
    return is_text ? tl_buf_add(out, &c, 1) : TL_OK;
}

int tl_osdsw_event(struct tl_buf *out, enum tl_osdsw_log log, const struct tl_osd_event *e)
{
    if (log == TL_OSDSW_PRINT)
        return print_character(out, e);
    if (e->kind == TL_OSD_OVERFLOW && e->type == (log == TL_OSDSW_CTM ? TL_OSD_CTM : TL_OSD_STM))
        return tl_buf_printf(out, "Overflow, missed %u events\n", (unsigned)e->value);
    if (log == TL_OSDSW_CTM && e->kind == TL_OSD_CORE_EVENT)
        return tl_buf_printf(out, "%08" PRIx32 " %d %d %d %d %016" PRIx64 " %016" PRIx64 "\n",
                             e->time, e->modechange, e->call, e->ret, e->mode, e->pc, e->npc);
    if (log == TL_OSDSW_STM && e->kind == TL_OSD_SYSTEM_EVENT)
        return tl_buf_printf(out, "%08" PRIx32 " %04x %016" PRIx64 "\n", e->time, e->id, e->value);
    return TL_OK;
}

/* Log the events lost before the module's type was known. */
static int log_early(struct tl_osdsw *s, struct tl_osd_module *m)
{
    struct tl_osd_event event = {.kind = TL_OSD_OVERFLOW, .type = m->type};
    int rc = TL_OK;
    for (unsigned i = 0; i < m->n_early && rc >= 0; i++) {
        event.value = m->early[i];
        rc = tl_osdsw_event(&s->out, s->log, &event);
    }
    m->n_early = 0;
    return rc;
}

static int on_packet(void *context, const struct tl_di_packet *packet)
{
    struct tl_osdsw *const s = context;
    struct tl_osd_event event;
    struct tl_osd_module *module;
    int rc = tl_osd_read(&s->reader, packet, &event, &module);
    if (rc >= 0 && module->n_early && module->type != TL_OSD_UNKNOWN && !event.doubtful)
        rc = log_early(s, module);
    if (event.doubtful) {
        s->doubtful = event;
        s->doubtful.kind = TL_OSD_SYSTEM_EVENT;
        return rc;
    }
    if (s->doubtful.doubtful && s->doubtful.src == event.src) {
        if (rc >= 0 && event.kind == TL_OSD_SYSTEM_EVENT)
            rc = tl_osdsw_event(&s->out, s->log, &s->doubtful);
        s->doubtful.doubtful = false;
    }
    return rc < 0 ? rc : tl_osdsw_event(&s->out, s->log, &event);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    tl_osd_reader_lost(&((struct tl_osdsw *)context)->reader);
    return TL_OK;
}

int tl_osdsw_init(struct tl_osdsw *s, enum tl_osdsw_log log, const struct tl_setup *setup)
{
    *s = (struct tl_osdsw){.log = log};
    const int rc = tl_osd_reader_init(&s->reader, setup);
    const struct tl_di_sink sink = {s, on_packet, on_loss};
    tl_di_init(&s->di, 0, s->reader.max_pkt_len, &sink);
    return rc;
}

int tl_osdsw_push(struct tl_osdsw *s, const uint8_t *p, size_t n)
{
    return tl_di_push(&s->di, p, n);
}

int tl_osdsw_finish(struct tl_osdsw *s)
{
    return tl_di_finish(&s->di, "");
}

void tl_osdsw_fini(struct tl_osdsw *s)
{
    tl_di_fini(&s->di);
    tl_osd_reader_fini(&s->reader);
    tl_buf_fini(&s->out);
}
