/* SPDX-License-Identifier: MIT */
/*
 * Checks every byte of a shard: the container's head and index against the private index, each
 * frame and item block by its checksum, the private index by its own. What is damaged is said by
 * its place, so that mending can keep the rest.
 */
#include "base/cancel.h"
#include "base/crc32c.h"
#include "shard/itemlog.h"
#include "shard/sums.h"
#include "shard/walk.h"
#include "stf/zstf.h"

#include <stdlib.h>

struct check {
    struct tl_buf *report;
    const char *key;
    int findings;
    int result; /* TL_NOMEM, TL_IO */
};

static void finding(struct check *c, uint64_t offset, const char *what)
{
    c->findings++;
    if (c->result >= 0)
        c->result = tl_buf_printf(c->report, "%s: offset 0x%llx: %s\n", c->key,
                                  (unsigned long long)offset, what);
}

/* Check the container's own index, which is fully determined by the private one. */
static void check_container(struct check *c, const struct tl_buf *file,
                            const struct tl_shard_index *index, uint64_t items)
{
    const size_t n = index->n_frames;
    const uint64_t size = 8 + 24 * (uint64_t)n;
    if (file->n < TL_ZSTF_HEAD || items > file->n || items < size + TL_ZSTF_HEAD) {
        finding(c, 0, "the file is too short");
        return;
    }
    const uint64_t base = items - size;
    uint8_t head[TL_ZSTF_HEAD];
    tl_zstf_head(head, tl_le64(file->p + 4), base);
    const uint64_t markers = tl_le64(file->p + 4);
    bool good = memcmp(head, file->p, TL_ZSTF_HEAD) == 0;
    good = good && markers == tl_shard_chunk_markers(index, markers);
    for (size_t i = 0; i < n; i++) {
        const uint64_t next = i + 1 < n ? index->frames[i + 1].marker : index->row.markers;
        const uint64_t here = next - index->frames[i].marker;
        good = good && (i + 1 < n ? here == markers : here <= markers);
    }
    if (!good)
        finding(c, 0, "the head is damaged");
    const uint8_t *p = file->p + base;
    good = tl_le64(p) == n;
    for (size_t i = 0; i < n; i++) {
        const struct tl_shard_frame *f = &index->frames[i];
        const uint8_t *e = p + 8 + 24 * i;
        good = good && tl_le64(e) == f->offset && tl_le64(e + 8) == (i > 0 ? f->pc : 0) &&
               tl_le64(e + 16) == f->plain;
    }
    if (!good)
        finding(c, base, "the chunk index is damaged");
}

/* Check the sums between the chunk index and the item blocks, which older shards do not have. */
static int check_sums(struct check *c, const struct tl_buf *file,
                      const struct tl_shard_index *index, uint64_t *covered)
{
    const size_t size = tl_sums_size(index);
    struct tl_shard_footer footer;
    if (*covered > file->n || index->chunks[0].items_offset == *covered)
        return TL_OK;
    const uint8_t *const end = file->p + file->n - TL_SHARD_FOOTER;
    uint8_t *const expected = malloc(size);
    if (!expected)
        return TL_NOMEM;
    bool good = tl_shard_footer_read(end, file->n, &footer) >= 0 && size <= file->n - *covered;
    if (good) {
        tl_sums_put(index, &footer, expected);
        good = memcmp(expected, file->p + *covered, size) == 0;
    }
    free(expected);
    if (!good)
        finding(c, *covered, "the checksums are damaged");
    *covered += size;
    return TL_OK;
}

static void check_block(struct check *c, const struct tl_buf *file, uint64_t offset, uint32_t size,
                        uint32_t crc, uint64_t *covered, const char *what)
{
    if (offset != *covered)
        finding(c, offset, "blocks do not follow each other");
    *covered = offset + size;
    if (offset > file->n || size > file->n - offset || tl_crc32c(0, file->p + offset, size) != crc)
        finding(c, offset, what);
}

static int check_contents(struct check *c, struct tl_view *view, struct tl_fail *fail)
{
    struct tl_walk walk = {0};
    /* Which items are positions does not affect whether they can be read. */
    const struct tl_walk_range range = {.to = 0, .protocol = TL_PROTO_NONE};
    int r = TL_OK;
    for (size_t i = 0; i < view->index.n_chunks && r >= 0; i++) {
        struct tl_fail why = {0};
        r = tl_walk_chunk(&walk, view, i, &range, &why);
        if (r == TL_BAD) {
            finding(c, why.offset == TL_NO_OFFSET ? 0 : why.offset, why.text);
            r = TL_OK;
        } else if (r < 0 && fail) {
            *fail = why;
        }
        if (r >= 0)
            r = tl_cancel_rest();
    }
    tl_walk_fini(&walk);
    return r;
}

int tl_view_verify(struct tl_backend *backend, const char *key, struct tl_buf *report,
                   struct tl_fail *fail)
{
    struct check c = {.report = report, .key = key};
    struct tl_view *view = NULL;
    struct tl_buf file = {0};
    struct tl_fail why = {0};
    int r = tl_view_open(&view, backend, key, &why);
    if (r == TL_BAD || r == TL_NOTFOUND) {
        finding(&c, why.offset == TL_NO_OFFSET ? 0 : why.offset,
                r == TL_BAD ? "the private index is damaged" : "the shard is missing");
        return c.result < 0 ? c.result : c.findings;
    }
    if (r < 0) {
        if (fail)
            *fail = why;
        return r;
    }
    r = tl_backend_get_all(backend, key, &file, fail);
    if (r >= 0) {
        const struct tl_shard_index *index = &view->index;
        uint64_t covered = TL_ZSTF_HEAD;
        for (size_t i = 0; i < index->n_frames; i++)
            check_block(&c, &file, index->frames[i].offset, index->frames[i].size,
                        index->frames[i].crc, &covered, "a chunk is damaged");
        covered += 8 + 24 * (uint64_t)index->n_frames;
        check_container(&c, &file, index, covered);
        r = check_sums(&c, &file, index, &covered);
        for (size_t i = 0; i < index->n_chunks; i++)
            check_block(&c, &file, index->chunks[i].items_offset, index->chunks[i].items_size,
                        index->chunks[i].items_crc, &covered, "an item block is damaged");
        if (r >= 0 && c.findings == 0)
            r = check_contents(&c, view, fail);
    }
    tl_buf_fini(&file);
    tl_view_put(view);
    if (r < 0)
        return r;
    return c.result < 0 ? c.result : c.findings;
}
