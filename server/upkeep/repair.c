/* SPDX-License-Identifier: MIT */
/*
 * Checks every stored byte, and rebuilds what can be derived from intact data. What cannot be is
 * reported as lost, and all else is served as before.
 */
#include "base/cancel.h"
#include "lake/mirror.h"
#include "lake_images.h"
#include "lake_traces.h"
#include "lake_upkeep.h"
#include "share/share.h"
#include "store/hash.h"
#include "upkeep/backfill.h"
#include "upkeep/checkup.h"
#include "upkeep/rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NAMES        256 /* traces read at once */
#define MIRROR_LOOKS 25  /* checks of an outdated copy of a catalog row, 20 ms apart */

int tl_checkup_line(struct tl_checkup *c, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    return tl_buf_printf(c->report, "%s\n", line);
}

static int on_raw(void *context, const struct tl_spool_damage *d)
{
    struct tl_checkup *c = context;
    c->findings++;
    if (d->n == 0) {
        c->raw_heads++;
        return tl_checkup_line(c, "%s: offset 0x%llx: the segment's head is damaged", d->key,
                               (unsigned long long)d->at);
    }
    c->raw_lost++;
    const uint64_t span[2] = {d->offset, d->offset + d->n};
    if (tl_buf_add(&c->lost, span, sizeof(span)) < 0)
        return TL_NOMEM;
    return tl_checkup_line(c,
                           "%s: offset 0x%llx: raw bytes 0x%llx to 0x%llx are damaged or missing",
                           d->key, (unsigned long long)d->at, (unsigned long long)d->offset,
                           (unsigned long long)(d->offset + d->n - 1));
}

/* ---- images --------------------------------------------------------------------------------- */

/* Check one image by its hash; with repair, a damaged one is removed, to be uploaded again. */
static int check_image(struct tl_checkup *c, const char *hash)
{
    struct tl_buf content = {0};
    char key[96], found[TL_HASH_TEXT];
    snprintf(key, sizeof(key), "i/%.64s", hash + 7);
    int r = tl_cancel_rest();
    if (r >= 0)
        r = tl_backend_get_all(c->lake->backend, key, &content, c->fail);
    const bool missing = r == TL_NOTFOUND;
    if (r >= 0)
        r = tl_hash_text((struct tl_bytes){content.p, content.n}, found);
    tl_buf_fini(&content);
    if (missing || (r >= 0 && strcmp(found, hash) != 0)) {
        c->findings++;
        c->images++;
        r = tl_checkup_line(c, "%s: offset 0x0: the image is %s; upload it again", key,
                            missing ? "missing" : "damaged");
        if (r >= 0 && c->repair && !missing)
            r = c->lake->backend->ops->remove(c->lake->backend, key, c->fail);
        if (r >= 0 && c->repair)
            r = c->lake->catalog->ops->remove_image(c->lake->catalog, hash, c->fail);
    }
    return r;
}

/* Check the copy of an image's name, which only the catalog has otherwise. */
static int check_name(struct tl_checkup *c, const struct tl_image_row *row)
{
    struct tl_buf name = {0};
    char key[96];
    snprintf(key, sizeof(key), "n/%.64s", row->hash + 7);
    int r = tl_backend_get_all(c->lake->backend, key, &name, c->fail);
    const bool same =
        r >= 0 && name.n == strlen(row->name) && memcmp(name.p, row->name, name.n) == 0;
    tl_buf_fini(&name);
    if (same || (r < 0 && r != TL_NOTFOUND))
        return same ? TL_OK : r;
    c->findings++;
    r = tl_checkup_line(c, "%s: offset 0x0: the name of an image is damaged or missing%s", key,
                        c->repair ? "; written anew" : "");
    const struct tl_bytes text = {(const uint8_t *)row->name, strlen(row->name)};
    return r < 0 || !c->repair ? r : tl_backend_put(c->lake->backend, key, text, c->fail);
}

/* Check the uploaded images that `setup` names (NULL: all). */
static int check_images(struct tl_checkup *c, const char *setup)
{
    struct tl_image_row *rows;
    size_t n;
    int r = tl_lake_images(c->lake, &rows, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        char build_id[80];
        snprintf(build_id, sizeof(build_id), "build-id:%s", rows[i].build_id);
        const bool used = !setup || strstr(setup, rows[i].hash) ||
                          (rows[i].build_id[0] && strstr(setup, build_id));
        if (!used || !tl_hash_valid(rows[i].hash))
            continue;
        r = check_name(c, &rows[i]);
        if (r >= 0)
            r = check_image(c, rows[i].hash);
    }
    free(rows);
    return r;
}

/* ---- a trace -------------------------------------------------------------------------------- */

static int check_mirror(struct tl_checkup *c)
{
    enum tl_mirror_state state;
    int r = tl_trace_mirror_check(c->trace, &state, c->fail);
    /* If the row was changed a moment ago, its copy is about to be written. */
    for (int i = 0; r >= 0 && state == TL_MIRROR_OLD && i < MIRROR_LOOKS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        r = tl_trace_mirror_check(c->trace, &state, c->fail);
    }
    if (r == TL_NOTFOUND) /* the trace may have just begun */
        state = c->trace->complete ? TL_MIRROR_DAMAGED : TL_MIRROR_SAME;
    else if (r < 0)
        return r;
    if (state == TL_MIRROR_SAME)
        return TL_OK;
    c->findings++;
    r = tl_checkup_line(c, "m/%s: offset 0x0: the copy of its catalog row is damaged or old%s",
                        c->trace->id, c->repair ? "; written anew" : "");
    if (r >= 0 && c->repair)
        tl_trace_mirror(c->trace);
    return r;
}

/* Report what is lost with a shard that cannot be restored. */
static int report_lost_shards(struct tl_checkup *c, const char *why)
{
    return tl_checkup_line(
        c, "%s: %d damaged shard%s cannot be made again: %s; all other shards are served",
        c->trace->id, c->shards, c->shards == 1 ? "" : "s", why);
}

/* `gen`: the generation that was checked. */
static int repair_trace(struct tl_checkup *c, const struct tl_gen *gen)
{
    int r = TL_OK;
    if (c->raw_heads > 0) {
        r = tl_spool_mend(c->lake->backend, c->trace->id, c->fail);
        if (r >= 0)
            r = tl_checkup_line(c, "%s: heads of segments were written anew", c->trace->id);
    }
    if (r >= 0 && c->raw_lost > 0)
        r = tl_checkup_line(
            c,
            "%s: damaged raw bytes are lost, nothing else holds them; decoded anew there "
            "will be a gap, all other bytes are served",
            c->trace->id);
    if (r < 0 || c->shards == 0)
        return r;
    if (c->raw_removed)
        return report_lost_shards(c, "the raw bytes were removed by retention");
    if (c->raw_lost > 0)
        return report_lost_shards(c,
                                  "raw bytes are damaged, too; `redecode` makes them anew, with a "
                                  "gap where raw bytes are lost");
    if (c->images > 0)
        return report_lost_shards(c, "its images are damaged; upload them again");
    pthread_mutex_lock(&c->trace->lock);
    const bool making = c->trace->making && c->trace->making != c->trace->serving;
    const bool made = c->trace->serving != gen;
    pthread_mutex_unlock(&c->trace->lock);
    if (made)
        return tl_checkup_line(c, "%s: the raw bytes have been decoded again meanwhile",
                               c->trace->id);
    if (making)
        return tl_checkup_line(c, "%s: the raw bytes are being decoded already", c->trace->id);
    r = tl_checkup_line(c, "%s: decoding the raw bytes again", c->trace->id);
    return r < 0 ? r : tl_lake_redecode(c->lake, c->trace->id, NULL, c->fail);
}

static int check_trace(struct tl_checkup *c, const char *id)
{
    int r = tl_cancel_rest();
    if (r < 0)
        return r;
    c->trace = tl_lake_find_trace(c->lake, id);
    if (!c->trace)
        return tl_no_trace(c->lake, c->fail, id);
    if (c->repair) {
        r = tl_trace_pin(c->trace, TL_PIN_ASK, c->fail);
        if (r < 0) {
            tl_trace_put(c->trace);
            return r;
        }
    }
    pthread_mutex_lock(&c->trace->lock);
    struct tl_gen *gen = tl_gen_get(c->trace->serving);
    const uint64_t raw_bytes = c->trace->raw_bytes;
    const bool raw_removed = c->trace->raw_removed;
    char *setup = strdup(c->trace->setup);
    pthread_mutex_unlock(&c->trace->lock);
    c->raw_lost = c->raw_heads = c->shards = c->images = 0;
    tl_buf_reset(&c->lost);
    c->raw_removed = raw_removed;
    r = setup ? TL_OK : TL_NOMEM;
    if (r >= 0 && !raw_removed)
        r = tl_spool_audit(c->lake->backend, id, raw_bytes, on_raw, c, c->fail);
    struct tl_lane *lane;
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++)
        r = tl_check_lane(c, gen, lane);
    if (r >= 0)
        r = check_mirror(c);
    if (r >= 0)
        r = check_images(c, setup);
    if (r >= 0 && c->repair)
        r = repair_trace(c, gen);
    free(setup);
    tl_gen_put(gen);
    if (c->repair)
        tl_trace_unpin(c->trace);
    tl_trace_put(c->trace);
    return r;
}

/* One of all traces. A trace of another server, that does not release it, is checked only. */
static int check_one_of_all(struct tl_checkup *c, const char *id)
{
    const bool repair = c->repair;
    int r = check_trace(c, id);
    if (r == TL_AGAIN && repair) {
        c->repair = false;
        r = tl_checkup_line(c, "%s: another server works on it; it is checked, not repaired", id);
        if (r >= 0)
            r = check_trace(c, id);
        c->repair = repair;
    }
    /* Deleted meanwhile; or its rows are damaged, which has been reported. */
    return r == TL_NOTFOUND || r == TL_BAD ? TL_OK : r;
}

static int on_catalog(void *context, const char *finding)
{
    struct tl_checkup *c = context;
    c->findings++;
    return tl_checkup_line(c, "catalog: %.400s", finding);
}

/* Report an object of the lake's own, of which `r` is the check's result. */
static int report_own(struct tl_checkup *c, int r, const char *finding, const char *mended)
{
    if (r != TL_BAD)
        return r;
    c->findings++;
    return tl_checkup_line(c, "%s%s", finding, c->repair ? mended : "");
}

static int check_own(struct tl_checkup *c)
{
    const int r = report_own(c, tl_lake_clock_check(c->lake, c->repair),
                             "k/clock: offset 0x0: the lake's clock is damaged", "; written anew");
    return r < 0 ? r
                 : report_own(c, tl_backfill_check(c->lake, c->repair),
                              "k/calls: offset 0x0: what is known of counts of calls is damaged",
                              "; the next start looks at all of them");
}

static int check_all(struct tl_checkup *c)
{
    struct tl_names names = {0};
    int r = c->lake->catalog->ops->check(c->lake->catalog, true, on_catalog, c, c->fail);
    if (r >= 0)
        r = check_own(c);
    if (r < 0)
        return r;
    for (int more = 1; r >= 0 && more > 0;) {
        tl_buf_reset(&names.text);
        more = tl_lake_names(c->lake, NAMES, &names, c->fail);
        r = more < 0 ? more : r;
        for (size_t at = 0; r >= 0 && at < names.text.n;) {
            const char *const id = (const char *)names.text.p + at;
            at += strlen(id) + 1;
            r = check_one_of_all(c, id);
        }
    }
    tl_buf_fini(&names.text);
    return r < 0 ? r : check_images(c, NULL);
}

int tl_lake_verify(struct tl_lake *lake, const char *id, bool repair, struct tl_buf *report,
                   struct tl_fail *fail)
{
    struct tl_checkup c = {.lake = lake, .report = report, .fail = fail, .repair = repair};
    int r = tl_rows_verify(lake, id, repair, report, fail);
    c.findings = r > 0 ? r : 0;
    /* Nothing else can be read of a trace whose rows are damaged. */
    if (r >= 0)
        r = !*id ? check_all(&c) : r == 0 || repair ? check_trace(&c, id) : TL_OK;
    tl_packer_free(c.packer);
    tl_buf_fini(&c.lost);
    return r < 0 ? r : c.findings;
}
