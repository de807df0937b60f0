/* SPDX-License-Identifier: MIT */
/*
 * Reads the parts of a shard from memory, the store, a mapped file or the raw bytes, whichever has
 * them. Readers need not know which, so that a trace can be read while it is decoded, sealed or
 * made virtual.
 */
#include "shard/view.h"

#include "base/cancel.h"
#include "base/crc32c.h"
#include "shard/sums.h"
#include "stf/zstf.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Read together with the footer, so that most shards are opened with one read. */
#define TAIL_READ (96u << 10)
#define FRAME_MAX (256u << 20) /* maximum plain bytes of a frame or item block */

struct tl_view *tl_view_new(void)
{
    struct tl_view *view = calloc(1, sizeof(*view));
    if (!view)
        return NULL;
    atomic_init(&view->refs, 1);
    view->index.version = TL_SHARD_VERSION;
    return view;
}

struct tl_view *tl_view_get(struct tl_view *view)
{
    atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
    return view;
}

static void drop_blobs(struct tl_view *view)
{
    for (size_t i = 0; view->frames && i < view->index.n_frames; i++)
        tl_blob_put(view->frames[i]);
    for (size_t i = 0; view->items && i < view->index.n_chunks; i++)
        tl_blob_put(view->items[i]);
    free(view->frames);
    free(view->items);
    view->frames = view->items = NULL;
}

void tl_view_make_virtual(struct tl_view *view, tl_view_make *make, void *maker)
{
    drop_blobs(view);
    view->make = make;
    view->maker = maker;
}

int tl_view_over(struct tl_view **out, struct tl_view *base)
{
    const struct tl_shard_index *const of = &base->index;
    struct tl_view *const view = tl_view_new();
    if (!view)
        return TL_NOMEM;
    view->frames = calloc(of->n_frames + 1, sizeof(struct tl_blob *));
    view->items = calloc(of->n_chunks + 1, sizeof(struct tl_blob *));
    struct tl_shard_frame *const frames = calloc(of->n_frames + 1, sizeof(*frames));
    if (!view->frames || !view->items || !frames) {
        free(frames);
        tl_view_put(view);
        return TL_NOMEM;
    }
    if (of->n_frames > 0)
        memcpy(frames, of->frames, of->n_frames * sizeof(*frames));
    view->base = tl_view_get(base);
    view->open = base->open;
    view->index = *of;
    view->index.frames = frames;
    *out = view;
    return TL_OK;
}

struct tl_view_file {
    struct tl_bytes bytes; /* n == 0: it cannot be mapped */
};

static void unmap(struct tl_view_file *file)
{
    if (file && file->bytes.n > 0)
        munmap((void *)(uintptr_t)file->bytes.p, file->bytes.n);
    free(file);
}

/* Read what is not in memory. False: it cannot be read, or the file was cut short. */
static bool populate(struct tl_bytes bytes)
{
    return madvise((void *)(uintptr_t)bytes.p, bytes.n, MADV_POPULATE_READ) == 0;
}

/* NULL: out of memory. */
static const struct tl_view_file *file_of(struct tl_view *view)
{
    struct tl_view_file *file = atomic_load(&view->file), *none = NULL;
    if (file)
        return file;
    file = calloc(1, sizeof(*file));
    if (!file)
        return NULL;
    if (!view->backend || !view->backend->ops->map ||
        view->backend->ops->map(view->backend, view->key, &file->bytes, NULL) < 0)
        file->bytes = (struct tl_bytes){0};
    else
        (void)!populate(file->bytes);
    if (atomic_compare_exchange_strong(&view->file, &none, file))
        return file;
    unmap(file); /* another reader was first */
    return none;
}

/* Are these whole pages in memory? That is cheaper to ask than to populate them. */
static bool is_resident(struct tl_bytes pages, size_t page)
{
    unsigned char in_memory[256];
    for (size_t at = 0; at < pages.n; at += sizeof(in_memory) * page) {
        const size_t left = pages.n - at;
        const size_t n = left < sizeof(in_memory) * page ? left : sizeof(in_memory) * page;
        if (mincore((void *)(uintptr_t)(pages.p + at), n, in_memory) < 0)
            return false;
        for (size_t i = 0; i < (n + page - 1) / page; i++)
            if (!(in_memory[i] & 1))
                return false;
    }
    return true;
}

/* Has the file been cut short since it was mapped? The rest of its last page then reads as zeros.
 */
static bool is_cut(const struct tl_view *view, const struct tl_view_file *file)
{
    uint64_t size;
    return view->backend->ops->size(view->backend, view->key, &size, NULL) == TL_OK &&
           size < file->bytes.n;
}

struct tl_bytes tl_view_map(struct tl_view *view, uint64_t offset, size_t n)
{
    const struct tl_view_file *const file = file_of(view);
    if (!file || offset > file->bytes.n || n > file->bytes.n - offset || is_cut(view, file))
        return (struct tl_bytes){0};
    const struct tl_bytes bytes = {file->bytes.p + offset, n};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)bytes.p & (page - 1);
    const struct tl_bytes pages = {bytes.p - before, n + before};
    if (!is_resident(pages, page) && !populate(pages))
        return (struct tl_bytes){0};
    return bytes;
}

void tl_view_put(struct tl_view *view)
{
    if (!view || atomic_fetch_sub_explicit(&view->refs, 1, memory_order_acq_rel) != 1)
        return;
    drop_blobs(view);
    if (view->base)
        free(view->index.frames);
    else
        tl_shard_index_fini(&view->index);
    tl_view_put(view->base);
    if (view->counts)
        tl_codecount_fini(view->counts);
    free(view->counts);
    if (view->calls)
        tl_shard_calls_fini(view->calls);
    free(view->calls);
    free(atomic_load(&view->head));
    free(atomic_load(&view->apart));
    unmap(atomic_load(&view->file));
    free(view);
}

struct tl_view_head {
    size_t n;
    uint8_t bytes[];
};

static struct tl_bytes kept_bytes(const struct tl_view_head *head)
{
    return head ? (struct tl_bytes){head->bytes, head->n} : (struct tl_bytes){0};
}

static void keep_bytes(_Atomic(struct tl_view_head *) *at, struct tl_bytes head)
{
    struct tl_view_head *const kept = malloc(sizeof(*kept) + head.n);
    struct tl_view_head *none = NULL;
    if (!kept || head.n == 0) {
        free(kept);
        return;
    }
    kept->n = head.n;
    memcpy(kept->bytes, head.p, head.n);
    if (!atomic_compare_exchange_strong(at, &none, kept))
        free(kept); /* another reader was first */
}

struct tl_bytes tl_view_head(const struct tl_view *view)
{
    return kept_bytes(atomic_load(&view->head));
}

void tl_view_keep_head(struct tl_view *view, struct tl_bytes head)
{
    keep_bytes(&view->head, head);
}

struct tl_bytes tl_view_apart(const struct tl_view *view)
{
    return kept_bytes(atomic_load(&view->apart));
}

void tl_view_keep_apart(struct tl_view *view, struct tl_bytes head)
{
    keep_bytes(&view->apart, head);
}

/* ---- stored shards ------------------------------------------------------------------------- */

static int damaged(struct tl_fail *fail, uint64_t offset, const char *key, const char *what)
{
    return tl_fail_at(fail, TL_BAD, offset, "%s: %s is damaged; decode the trace again", key, what);
}

/* Read the body frame into `body`, from the store only if `tail` does not contain it. */
static int read_body(struct tl_backend *backend, const char *key, uint64_t size,
                     const struct tl_buf *tail, const struct tl_shard_footer *footer,
                     struct tl_buf *body, struct tl_fail *fail)
{
    const uint64_t tail_at = size - tail->n;
    if (footer->body >= tail_at)
        return tl_buf_add(body, tail->p + (footer->body - tail_at), footer->body_size);
    return backend->ops->get(backend, key, footer->body, footer->body_size, body, fail);
}

static int read_index(struct tl_shard_index *index, struct tl_backend *backend, const char *key,
                      struct tl_fail *fail)
{
    struct tl_buf tail = {0}, body = {0};
    struct tl_shard_footer footer;
    uint64_t size;
    int r = tl_cancel_check();
    if (r >= 0)
        r = backend->ops->size(backend, key, &size, fail);
    if (r >= 0 && size < TL_SHARD_FOOTER + TL_ZSTF_HEAD)
        r = damaged(fail, 0, key, "the shard");
    if (r >= 0) {
        const uint64_t n = size < TAIL_READ ? size : TAIL_READ;
        r = backend->ops->get(backend, key, size - n, n, &tail, fail);
        if (r >= 0 && tail.n != n)
            r = damaged(fail, size, key, "the shard");
    }
    if (r >= 0 && tl_shard_footer_read(tail.p + tail.n - TL_SHARD_FOOTER, size, &footer) < 0)
        r = damaged(fail, size - TL_SHARD_FOOTER, key, "the index's footer");
    if (r >= 0)
        r = read_body(backend, key, size, &tail, &footer, &body, fail);
    if (r >= 0) {
        r = tl_shard_index_decode(index, (struct tl_bytes){body.p, body.n}, &footer);
        if (r == TL_BAD)
            damaged(fail, footer.body, key, "the index");
    }
    tl_buf_fini(&tail);
    tl_buf_fini(&body);
    return r;
}

int tl_view_open(struct tl_view **out, struct tl_backend *backend, const char *key,
                 struct tl_fail *fail)
{
    struct tl_view *view = tl_view_new();
    if (!view)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    view->backend = backend;
    snprintf(view->key, sizeof(view->key), "%s", key);
    const int r = read_index(&view->index, backend, key, fail);
    if (r < 0) {
        tl_view_put(view);
        return r;
    }
    *out = view;
    return TL_OK;
}

/* Read and unpack `size` packed bytes at `offset` with checksum `crc` to `out`. */
static int stored_bytes(const struct tl_view *view, uint64_t offset, uint32_t size, uint32_t crc,
                        uint32_t plain, struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_buf packed = {0};
    const size_t before = out->n;
    int r = view->backend->ops->get(view->backend, view->key, offset, size, &packed, fail);
    if (r >= 0 && (packed.n != size || tl_crc32c(0, packed.p, packed.n) != crc))
        r = damaged(fail, offset, view->key, "a block");
    if (r >= 0) {
        r = tl_unpack((struct tl_bytes){packed.p, packed.n}, FRAME_MAX, out);
        if (r == TL_BAD || r == TL_LIMIT || (r >= 0 && out->n - before != plain))
            r = damaged(fail, offset, view->key, "a block");
    }
    tl_buf_fini(&packed);
    return r;
}

size_t tl_view_frame_of(const struct tl_view *view, size_t i)
{
    const struct tl_shard_index *const index = &view->index;
    const size_t frame = index->chunks[i].stf;
    return frame < index->n_frames ? frame : index->n_frames;
}

int tl_view_part(struct tl_view *view, size_t from, size_t to, bool packed, struct tl_view **out,
                 struct tl_fail *fail)
{
    if (view->make)
        return view->make(view->maker, view, from, to, packed, out, fail);
    *out = tl_view_get(view);
    return TL_OK;
}

/*
 * Read a part of a virtual shard that is not stored, or of a regenerated one that was not
 * regenerated.
 */
static int of_made(const struct tl_view *view, size_t frame, size_t i, struct tl_buf *out,
                   struct tl_fail *fail,
                   int (*read)(const struct tl_view *, size_t, struct tl_buf *, struct tl_fail *))
{
    struct tl_view *const of = view->base ? view->base : (struct tl_view *)(uintptr_t)view;
    struct tl_view *made;
    int r = of->make(of->maker, of, frame, frame + 1, false, &made, fail);
    if (r < 0)
        return r;
    r = read(made, i, out, fail);
    tl_view_put(made);
    return r;
}

static int plain_items(const struct tl_view *view, size_t i, struct tl_buf *out,
                       struct tl_fail *fail)
{
    const size_t end = out->n + view->index.chunks[i].items_plain;
    const int r = view->items[i] ? tl_blob_plain(view->items[i], out) : TL_OK;
    /* More of a growing shard may have been regenerated than the view has; but what is told of a
     * missing range may be longer than the log of what is missing. */
    if (view->open && view->base && !view->incomplete && out->n > end)
        out->n = end;
    return r;
}

static int plain_frame(const struct tl_view *view, size_t i, struct tl_buf *out,
                       struct tl_fail *fail)
{
    return view->frames[i] ? tl_blob_plain(view->frames[i], out) : TL_OK;
}

int tl_view_items(const struct tl_view *view, size_t i, struct tl_buf *out, struct tl_fail *fail)
{
    const struct tl_chunk *c = &view->index.chunks[i];
    const int r = tl_cancel_check();
    if (r < 0)
        return r;
    if (view->make || (view->base && !view->items[i] && c->items_plain > 0))
        return of_made(view, tl_view_frame_of(view, i), i, out, fail, plain_items);
    if (!view->backend)
        return plain_items(view, i, out, fail);
    if (c->items_size == 0)
        return TL_OK;
    return stored_bytes(view, c->items_offset, c->items_size, c->items_crc, c->items_plain, out,
                        fail);
}

int tl_view_frame(const struct tl_view *view, size_t i, struct tl_buf *out, struct tl_fail *fail)
{
    const struct tl_shard_frame *f = &view->index.frames[i];
    const int r = tl_cancel_check();
    if (r < 0)
        return r;
    if (view->make || (view->base && !view->frames[i]))
        return of_made(view, i, i, out, fail, plain_frame);
    if (!view->backend)
        return plain_frame(view, i, out, fail);
    return stored_bytes(view, f->offset, f->size, f->crc, f->plain, out, fail);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Add the packed sizes of these blobs, packing them if necessary. */
static int add_sizes(struct tl_blob *const *blobs, size_t n, struct tl_packer *packer, size_t *sum)
{
    for (size_t i = 0; i < n; i++) {
        struct tl_bytes bytes = {0};
        int r = tl_cancel_check();
        if (r >= 0 && blobs[i])
            r = tl_blob_packed(blobs[i], packer, &bytes);
        if (r < 0)
            return r;
        *sum += bytes.n;
    }
    return TL_OK;
}

/* Reserve memory for the whole shard at once, which is nearly always sufficient. */
static int reserve(const struct tl_view *view, struct tl_packer *packer, struct tl_buf *out)
{
    size_t n = TL_ZSTF_HEAD + tl_sums_size(&view->index) + tl_shard_index_about(&view->index);
    int r = add_sizes(view->frames, view->index.n_frames, packer, &n);
    if (r >= 0)
        r = add_sizes(view->items, view->index.n_chunks, packer, &n);
    return r < 0 ? r : tl_buf_reserve(out, n);
}

static int write_frames(const struct tl_view *view, struct tl_zstf_writer *writer,
                        uint64_t per_chunk, struct tl_packer *packer, struct tl_shard_index *index,
                        struct tl_buf *out)
{
    int r = reserve(view, packer, out);
    if (r >= 0)
        r = tl_zstf_writer_begin(writer, out);
    for (size_t i = 0; r >= 0 && i < index->n_frames; i++) {
        struct tl_shard_frame *f = &index->frames[i];
        struct tl_bytes bytes;
        r = tl_blob_packed(view->frames[i], packer, &bytes);
        if (r < 0)
            return r;
        const uint64_t left = index->row.markers - f->marker;
        f->offset = out->n;
        f->size = (uint32_t)bytes.n;
        f->crc = tl_crc32c(0, bytes.p, bytes.n);
        r = tl_zstf_writer_frame(writer, bytes, f->plain, left < per_chunk ? left : per_chunk,
                                 f->pc, out);
    }
    return r;
}

static int write_items(const struct tl_view *view, struct tl_packer *packer,
                       struct tl_shard_index *index, struct tl_buf *out)
{
    for (size_t i = 0; i < index->n_chunks; i++) {
        struct tl_bytes bytes = {0};
        struct tl_chunk *c = &index->chunks[i];
        int r = view->items[i] ? tl_blob_packed(view->items[i], packer, &bytes) : TL_OK;
        if (r < 0)
            return r;
        c->items_offset = out->n;
        c->items_size = (uint32_t)bytes.n;
        c->items_crc = bytes.n > 0 ? tl_crc32c(0, bytes.p, bytes.n) : 0;
        r = tl_buf_add(out, bytes.p, bytes.n);
        if (r < 0)
            return r;
    }
    return TL_OK;
}

/* Write the private index, after the chunk index. */
static int write_private(const struct tl_view *view, struct tl_packer *packer,
                         struct tl_shard_index *index, struct tl_buf *out)
{
    const size_t sums = out->n;
    struct tl_shard_footer footer;
    int r = tl_buf_reserve(out, tl_sums_size(index));
    if (r < 0)
        return r;
    out->n += tl_sums_size(index);
    r = write_items(view, packer, index, out);
    if (r >= 0)
        r = tl_shard_index_encode(index, sums, packer, out);
    if (r >= 0)
        r = tl_shard_footer_read(out->p + out->n - TL_SHARD_FOOTER, out->n, &footer);
    if (r >= 0)
        tl_sums_put(index, &footer, out->p + sums);
    return r;
}

/* Copy the parts of the index that receive offsets, borrow the rest. */
static int borrow_index(const struct tl_shard_index *from, struct tl_shard_index *to)
{
    *to = *from;
    to->chunks = malloc((from->n_chunks + 1) * sizeof(*to->chunks));
    to->frames = malloc((from->n_frames + 1) * sizeof(*to->frames));
    if (!to->chunks || !to->frames) {
        free(to->chunks);
        free(to->frames);
        return TL_NOMEM;
    }
    memcpy(to->chunks, from->chunks, from->n_chunks * sizeof(*to->chunks));
    memcpy(to->frames, from->frames, from->n_frames * sizeof(*to->frames));
    return TL_OK;
}

int tl_view_encode(const struct tl_view *view, uint64_t markers_per_chunk, struct tl_packer *packer,
                   struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_shard_index index;
    struct tl_zstf_writer *writer = NULL;
    uint8_t head[TL_ZSTF_HEAD];
    int r = borrow_index(&view->index, &index);
    if (r < 0)
        return tl_fail_set(fail, r, "no memory");
    r = tl_zstf_writer_new(&writer, markers_per_chunk, 0);
    if (r >= 0)
        r = write_frames(view, writer, markers_per_chunk, packer, &index, out);
    if (r >= 0)
        r = tl_zstf_writer_finish(writer, (struct tl_bytes){0}, out, head);
    if (r >= 0)
        r = write_private(view, packer, &index, out);
    if (r >= 0)
        memcpy(out->p, head, sizeof(head));
    tl_zstf_writer_free(writer);
    free(index.chunks);
    free(index.frames);
    return r < 0 ? tl_fail_set(fail, r, "cannot make a shard: %s", tl_err_name(r)) : TL_OK;
}

int tl_view_encode_index(const struct tl_view *view, struct tl_packer *packer, struct tl_buf *out,
                         struct tl_fail *fail)
{
    struct tl_shard_index index;
    int r = borrow_index(&view->index, &index);
    if (r < 0)
        return tl_fail_set(fail, r, "no memory");
    for (size_t i = 0; i < index.n_frames; i++)
        index.frames[i].offset = index.frames[i].size = index.frames[i].crc = 0;
    for (size_t i = 0; i < index.n_chunks; i++)
        index.chunks[i].items_offset = index.chunks[i].items_size = index.chunks[i].items_crc = 0;
    r = tl_shard_index_pack(&index, packer, out);
    free(index.chunks);
    free(index.frames);
    return r < 0 ? tl_fail_set(fail, r, "cannot make a shard's index: %s", tl_err_name(r)) : TL_OK;
}
