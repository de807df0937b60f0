/* SPDX-License-Identifier: MIT */
#include "ingest/remake.h"

#include "base/cancel.h"
#include "ingest/resume.h"
#include "lake/lakeint.h"
#include "stf/close.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MARK_MOST   (UINT64_C(1) << 30) /* plain bytes of one */
#define SLICE_BYTES (64u << 10)

static char *mark_key(char out[static 192], const struct tl_gen *gen, const uint64_t *offset)
{
    const int n = snprintf(out, 192, "t/%s/%" PRIu64 "/" TL_MARKS, gen->trace, gen->number);
    if (offset)
        snprintf(out + n, 192 - (size_t)n, "/%016" PRIx64, *offset);
    return out;
}

/* ---- marks ---------------------------------------------------------------------------------- */

static int note_mark(struct tl_gen *gen, uint64_t offset)
{
    pthread_mutex_lock(&gen->lock);
    const int r = tl_grow(&gen->marks, &gen->cap_marks, gen->n_marks + 1, sizeof(*gen->marks));
    if (r >= 0)
        gen->marks[gen->n_marks++] = offset;
    pthread_mutex_unlock(&gen->lock);
    return r;
}

static int save_lane(struct tl_lane *lane, struct tl_checkpoint *c)
{
    const int r = tl_grow(&c->lanes, &c->cap_lanes, c->n_lanes + 1, sizeof(*c->lanes));
    if (r < 0)
        return r;
    struct tl_checkpoint_lane *saved = &c->lanes[c->n_lanes++];
    *saved = (struct tl_checkpoint_lane){0};
    struct tl_state state = {.out = &saved->build};
    snprintf(saved->name, sizeof(saved->name), "%s", lane->name);
    pthread_mutex_lock(&lane->lock);
    tl_build_mark(lane->build, &state);
    pthread_mutex_unlock(&lane->lock);
    return state.rc;
}

#define WAITING 16

struct tl_mark_object {
    uint64_t offset;
    struct tl_buf bytes;
};

static int store_mark(struct tl_gen *gen)
{
    struct tl_checkpoint c = {.offset = atomic_load(&gen->decoded)};
    struct tl_buf plain = {0}, packed = {0};
    struct tl_packer *packer = NULL; /* gen->packer is at work beside the decoding */
    int r = tl_resume_whose(gen);
    if (r >= 0)
        r = tl_decode_save(gen->decode, &c.decode);
    for (size_t i = 0; r >= 0 && i < gen->n_by_stream; i++)
        if (gen->by_stream[i])
            r = save_lane(gen->by_stream[i], &c);
    if (r >= 0)
        r = tl_checkpoint_encode(&c, gen->whose, &plain);
    if (r >= 0)
        r = tl_packer_new(&packer);
    if (r >= 0)
        r = tl_packer_bytes(packer, (struct tl_bytes){plain.p, plain.n}, &packed);
    if (r >= 0 && !gen->mark_objects &&
        !(gen->mark_objects = calloc(WAITING, sizeof(*gen->mark_objects))))
        r = TL_NOMEM;
    if (r >= 0) {
        gen->mark_objects[gen->n_mark_objects++] = (struct tl_mark_object){c.offset, packed};
        packed = (struct tl_buf){0};
    }
    tl_packer_free(packer);
    tl_checkpoint_fini(&c);
    tl_buf_fini(&plain);
    tl_buf_fini(&packed);
    if (gen->n_mark_objects == WAITING)
        tl_mark_flush(gen);
    return r;
}

void tl_mark_drop(struct tl_gen *gen)
{
    for (size_t i = 0; i < gen->n_mark_objects; i++)
        tl_buf_fini(&gen->mark_objects[i].bytes);
    free(gen->mark_objects);
    gen->mark_objects = NULL;
    gen->n_mark_objects = 0;
}

void tl_mark_flush(struct tl_gen *gen)
{
    struct tl_object objects[WAITING];
    char keys[WAITING][192];
    const size_t n = gen->n_mark_objects;
    for (size_t i = 0; i < n; i++) {
        const struct tl_buf *bytes = &gen->mark_objects[i].bytes;
        objects[i] = (struct tl_object){mark_key(keys[i], gen, &gen->mark_objects[i].offset),
                                        {bytes->p, bytes->n}};
    }
    struct tl_backend *backend = gen->lake->backend;
    if (n > 0 && backend->ops->put_all(backend, objects, n, NULL) >= 0)
        for (size_t i = 0; i < n; i++)
            if (note_mark(gen, gen->mark_objects[i].offset) < 0)
                break; /* found when they are listed */
    tl_mark_drop(gen);
}

bool tl_can_mark(struct tl_decode *decode)
{
    struct tl_buf state = {0};
    const int r = tl_decode_save(decode, &state);
    tl_buf_fini(&state);
    return r >= 0 || r == TL_AGAIN;
}

void tl_mark(struct tl_gen *gen)
{
    if (gen->completed == gen->mark_completed)
        return;
    const int r = store_mark(gen);
    if (r != TL_AGAIN) /* a little later */
        gen->mark_completed = gen->completed;
}

static int add_mark(void *context, const char *key, uint64_t size)
{
    struct tl_buf *offsets = context;
    const char *slash = strrchr(key, '/');
    const uint64_t offset = slash ? strtoull(slash + 1, NULL, 16) : 0;
    return tl_buf_add(offsets, &offset, sizeof(offset));
}

/* Of a generation that an earlier run of the server has decoded. They are noted when all are
 * listed: the store may be locked while it lists. */
static int know_marks(struct tl_gen *gen, struct tl_fail *fail)
{
    struct tl_backend *backend = gen->lake->backend;
    struct tl_buf offsets = {0};
    char key[192];
    pthread_mutex_lock(&gen->marks_lock);
    int r = gen->marks_known
                ? TL_OK
                : backend->ops->list(backend, mark_key(key, gen, NULL), add_mark, &offsets, fail);
    for (size_t i = 0; r >= 0 && i < offsets.n; i += sizeof(uint64_t)) {
        uint64_t offset;
        memcpy(&offset, offsets.p + i, sizeof(offset));
        r = note_mark(gen, offset); /* perhaps once more: that does no harm */
    }
    gen->marks_known = gen->marks_known || r >= 0;
    pthread_mutex_unlock(&gen->marks_lock);
    tl_buf_fini(&offsets);
    return r == TL_NOTFOUND ? TL_OK : r;
}

/* The last mark in front of `*offset`, at most; false: there is none. */
static bool last_mark(struct tl_gen *gen, uint64_t *offset)
{
    bool found = false;
    uint64_t best = 0;
    pthread_mutex_lock(&gen->lock);
    for (size_t i = 0; i < gen->n_marks; i++)
        if (gen->marks[i] <= *offset && (!found || gen->marks[i] > best)) {
            best = gen->marks[i];
            found = true;
        }
    pthread_mutex_unlock(&gen->lock);
    *offset = best;
    return found;
}

/* ---- a shard --------------------------------------------------------------------------------- */

struct remake {
    struct tl_gen *gen;
    struct tl_lane *lane;
    const struct tl_shard_row *row;
    struct tl_decode *decode;
    struct tl_build *build; /* NULL: its stream has not been announced */
    size_t stream;
    uint64_t at;  /* raw bytes decoded */
    bool others;  /* a mark is another program's */
    bool damaged; /* raw bytes are */
    struct tl_view *view;
    void (*each)(void *context, struct tl_view *view);
    void *context;
};

static int on_seal(void *context, struct tl_view *view)
{
    struct remake *m = context;
    tl_shard_key(view->key, m->gen->trace, m->gen->number, m->lane->name, view->index.row.number);
    if (m->each)
        m->each(m->context, view);
    if (view->index.row.number == m->row->number && !m->view)
        m->view = view;
    else
        tl_view_put(view);
    return TL_OK;
}

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct remake *m = context;
    if (strcmp(stream->name, m->lane->name) != 0)
        return TL_OK;
    const struct tl_build_options options = {.protocol = stream->protocol,
                                             .isa = stream->isa,
                                             .shard_insns = m->gen->lake->options.shard_insns,
                                             .image = tl_gen_image(m->gen),
                                             .packing = m->gen->lake->packing,
                                             .seal = on_seal,
                                             .context = m,
                                             .sealed = m->row->number,
                                             .sealed_position = m->row->first};
    m->stream = stream->index;
    tl_build_free(m->build);
    m->build = NULL;
    return tl_build_new(&m->build, &options);
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct remake *m = context;
    return m->build && stream->index == m->stream ? tl_build_items(m->build, items, n) : TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    return TL_OK;
}

static void stop(struct remake *m)
{
    tl_decode_free(m->decode);
    tl_build_free(m->build);
    m->decode = NULL;
    m->build = NULL;
}

static int start(struct remake *m, struct tl_fail *fail)
{
    const struct tl_decode_sink sink = {
        .context = m, .stream = on_stream, .items = on_items, .loss = on_loss};
    const int r = tl_decode_new(&m->decode, &m->gen->setup, tl_gen_image(m->gen), &sink, fail);
    if (r < 0)
        return r;
    m->at = 0;
    tl_decode_paths(m->decode);
    tl_decode_code(m->decode, tl_stf_close_insn);
    return TL_OK;
}

/* Go on from a mark's bytes. TL_BAD: it is damaged, another program's, or behind the shard's begin.
 */
static int load(struct remake *m, struct tl_bytes packed)
{
    struct tl_buf plain = {0};
    struct tl_checkpoint c = {0};
    int r = tl_unpack(packed, MARK_MOST, &plain);
    if (r >= 0) {
        const struct tl_bytes bytes = {plain.p, plain.n};
        r = tl_checkpoint_decode(&c, m->gen->whose, bytes);
        m->others = m->others || (r == TL_BAD && tl_checkpoint_sound(bytes));
    }
    if (r >= 0)
        r = tl_decode_load(m->decode, (struct tl_bytes){c.decode.p, c.decode.n});
    for (size_t i = 0; r >= 0 && m->build && i < c.n_lanes; i++)
        if (strcmp(c.lanes[i].name, m->lane->name) == 0) {
            struct tl_state state = {.in = {c.lanes[i].build.p, c.lanes[i].build.n}};
            tl_build_state(m->build, &state);
            tl_state_check(&state, state.in.n == 0);
            r = state.rc;
        }
    m->at = c.offset;
    tl_checkpoint_fini(&c);
    tl_buf_fini(&plain);
    return r;
}

/* At the last mark that serves, or at the first byte. */
static int begin(struct remake *m, struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    char key[192];
    uint64_t offset = m->row->byte_first;
    int r = tl_resume_whose(m->gen);
    if (r >= 0)
        r = know_marks(m->gen, fail);
    while (r >= 0 && last_mark(m->gen, &offset)) {
        tl_buf_reset(&bytes);
        r = start(m, fail);
        if (r < 0)
            break;
        const int got =
            tl_backend_get_all(m->gen->lake->backend, mark_key(key, m->gen, &offset), &bytes, NULL);
        if (got >= 0 && load(m, (struct tl_bytes){bytes.p, bytes.n}) >= 0)
            break;
        stop(m);
        r = tl_cancel_check();
        if (offset == 0 || m->others)
            break; /* so are those in front of it */
        offset--;
    }
    tl_buf_fini(&bytes);
    return r >= 0 && !m->decode ? start(m, fail) : r;
}

/* The next raw bytes cannot be read: what comes of them is a gap, as it is where they are decoded
 * anew. */
static int pass_damage(struct remake *m, struct tl_spool_reader *reader, uint64_t end,
                       struct tl_fail *fail)
{
    uint64_t next;
    int r = tl_spool_skip(reader, m->at, end, &next, fail);
    if (r >= 0 && next == m->at)
        r = tl_fail_set(fail, TL_IO, "raw bytes cannot be read reliably");
    if (r >= 0)
        r = tl_decode_lost(m->decode, next - m->at);
    m->at = next;
    m->damaged = true;
    return r;
}

static int push(struct remake *m, const struct tl_buf *bytes)
{
    int r = TL_OK;
    for (size_t at = 0; r >= 0 && at < bytes->n && !m->view;) {
        const size_t n = bytes->n - at < SLICE_BYTES ? bytes->n - at : SLICE_BYTES;
        r = tl_decode_push(m->decode, bytes->p + at, n);
        at += n;
        m->at += n;
        if (r >= 0)
            r = tl_cancel_check();
    }
    return r;
}

static int decode(struct remake *m, struct tl_fail *fail)
{
    struct tl_spool_reader *reader;
    struct tl_buf bytes = {0};
    const uint64_t end = atomic_load(&m->gen->decoded);
    int r = tl_spool_reader_new(&reader, m->gen->lake->backend, m->gen->trace);
    if (r < 0)
        return r;
    while (r >= 0 && !m->view && m->at < end) {
        tl_buf_reset(&bytes);
        r = tl_spool_read(reader, m->at, end, &bytes, fail);
        if (r >= 0) {
            tl_decode_arrival(m->decode, tl_spool_reader_arrival(reader));
            r = push(m, &bytes);
        } else if (r == TL_BAD) {
            r = pass_damage(m, reader, end, fail);
        }
    }
    /* The last shard of a stream ends with the capture. */
    if (r >= 0 && !m->view)
        r = tl_decode_finish(m->decode);
    if (r >= 0 && !m->view && m->build)
        r = tl_build_finish(m->build);
    tl_spool_reader_free(reader);
    tl_buf_fini(&bytes);
    return r;
}

static bool is_same(const struct tl_shard_row *a, const struct tl_shard_row *b)
{
    return a->number == b->number && a->first == b->first && a->n == b->n &&
           a->markers == b->markers && a->byte_first == b->byte_first &&
           a->byte_last == b->byte_last && a->events == b->events && a->gaps == b->gaps &&
           a->anchors == b->anchors;
}

/* Once, in the background; until then what is there is served as far as it comes out the same. */
static void decode_anew(struct tl_gen *gen)
{
    struct tl_trace *trace = tl_lake_find_trace(gen->lake, gen->trace);
    if (!trace)
        return;
    pthread_mutex_lock(&trace->lock);
    const bool may = trace->serving == gen && !trace->making && !trace->deleted;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    if (may && !atomic_exchange(&gen->renewed, true))
        (void)!tl_lake_redecode(gen->lake, gen->trace, NULL, NULL);
}

int tl_remake(struct tl_gen *gen, struct tl_lane *lane, const struct tl_shard_row *row,
              void (*each)(void *context, struct tl_view *view), void *context,
              struct tl_view **out, struct tl_fail *fail)
{
    struct remake m = {.gen = gen, .lane = lane, .row = row, .each = each, .context = context};
    *out = NULL;
    int r = begin(&m, fail);
    if (r >= 0)
        r = decode(&m, fail);
    stop(&m);
    const bool fits = r >= 0 && m.view && is_same(&m.view->index.row, row);
    const bool other = !m.damaged && !fits && (r >= 0 || r == TL_BAD);
    if (m.others || other)
        decode_anew(gen);
    if (other)
        r = tl_fail_set(
            fail, TL_AGAIN,
            "%s is being decoded anew, since this server decodes otherwise than the one "
            "before it; try again",
            gen->trace);
    else if (r == TL_BAD || (r >= 0 && !fits))
        r = tl_fail_set(fail, TL_BAD,
                        "%s/%s: the raw bytes 0x%llx to 0x%llx do not give this shard any more; "
                        "`tracelake verify --repair %s` says what is damaged",
                        gen->trace, lane->name, (unsigned long long)row->byte_first,
                        (unsigned long long)row->byte_last, gen->trace);
    else if (r < 0 && fail && fail->code == TL_OK)
        tl_fail_set(fail, (enum tl_err)r, "%s/%s: a shard cannot be made: %s", gen->trace,
                    lane->name, tl_err_name(r));
    if (r < 0)
        tl_view_put(m.view);
    else
        *out = m.view;
    return r < 0 ? r : TL_OK;
}
