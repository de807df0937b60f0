/* SPDX-License-Identifier: MIT */
/*
 * Converts wrapped STF bytes to plain ones as they come: zstd, gzip, xz, .zstf. The wrapping is
 * recognised by its first bytes, since names of files are not reliable.
 */
#include "stf/file.h"

#include "stf/stand.h"

#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define PIECE      (256u << 10) /* plain bytes per call */
#define XZ_MEMORY  (UINT64_C(256) << 20)
#define HEAD_BYTES TL_ZSTF_HEAD

struct tl_stf_unpack {
    int wrap; /* enum tl_stf_wrap, or -1 while `head` fills */
    uint8_t head[HEAD_BYTES];
    size_t n_head, need; /* bytes of head available; bytes needed for a decision */
    size_t head_used;    /* bytes of head already decompressed */
    uint64_t offset;     /* bytes of the wrapped stream consumed */
    uint64_t index;      /* .zstf: E, 0: unknown */
    bool between;        /* at the end of a frame, member or stream */
    uint8_t magic[4];    /* .zstf, between chunks: possible beginning of the next one */
    size_t n_magic;
    uint64_t strange, strange_at; /* bytes that belong to no chunk; offset of the first one */
    uint64_t frames;              /* number of complete frames */
    uint8_t count[8];             /* .zstf: beginning of the index: the number of chunks */
    size_t n_count;
    bool done;         /* remaining input is ignored */
    uint64_t frame_at; /* offset of the unfinished frame, member or stream */
    ZSTD_DCtx *zstd;
    z_stream gzip;
    lzma_stream xz;
};

/* Is it the magic number of a zstd frame or skippable frame? Source: RFC 8878, 3.1. */
static bool is_magic(const uint8_t *p)
{
    return tl_le32(p) == ZSTD_MAGICNUMBER ||
           (tl_le32(p) & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

int tl_stf_sniff(struct tl_bytes head)
{
    static const struct {
        const char *magic;
        uint8_t n, wrap;
    } known[] = {
        {"\1STF", 4, TL_STF_PLAIN},
        {"ZSTF", 4, TL_STF_ZSTF},
        {"\x1f\x8b", 2, TL_STF_GZIP},
        {"\xfd"
         "7zXZ\0",
         6, TL_STF_XZ},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (head.n >= known[i].n && memcmp(head.p, known[i].magic, known[i].n) == 0)
            return known[i].wrap;
    }
    /* pzstd begins with a skippable frame */
    return head.n >= 4 && is_magic(head.p) ? TL_STF_ZSTD : TL_BAD;
}

int tl_stf_unpack_new(struct tl_stf_unpack **out)
{
    struct tl_stf_unpack *const u = calloc(1, sizeof *u);
    if (!u)
        return TL_NOMEM;
    u->wrap = -1;
    u->need = 6;
    *out = u;
    return TL_OK;
}

void tl_stf_unpack_free(struct tl_stf_unpack *unpack)
{
    if (!unpack)
        return;
    ZSTD_freeDCtx(unpack->zstd);
    if (unpack->wrap == TL_STF_GZIP)
        inflateEnd(&unpack->gzip);
    if (unpack->wrap == TL_STF_XZ)
        lzma_end(&unpack->xz);
    free(unpack);
}

size_t tl_stf_unpack_bytes(const struct tl_stf_unpack *u)
{
    const size_t zstd = u->zstd ? ZSTD_sizeof_DCtx(u->zstd) : 0;
    return zstd + (u->wrap == TL_STF_XZ ? (size_t)lzma_memusage(&u->xz) : 0);
}

static int bad(const struct tl_stf_unpack *u, struct tl_fail *fail, const char *text)
{
    return tl_fail_at(fail, TL_BAD, u->offset, "%s", text);
}

static int begin_zstd(struct tl_stf_unpack *u)
{
    u->between = true;
    u->zstd = ZSTD_createDCtx();
    return u->zstd ? TL_OK : TL_NOMEM;
}

static int begin_gzip(struct tl_stf_unpack *u)
{
    u->wrap = inflateInit2(&u->gzip, 15 + 16) == Z_OK ? TL_STF_GZIP : -1;
    return u->wrap < 0 ? TL_NOMEM : TL_OK;
}

static int begin_xz(struct tl_stf_unpack *u)
{
    u->xz = (lzma_stream)LZMA_STREAM_INIT;
    const lzma_ret ret = lzma_stream_decoder(&u->xz, XZ_MEMORY, LZMA_CONCATENATED);
    u->wrap = ret == LZMA_OK ? TL_STF_XZ : -1;
    return u->wrap < 0 ? TL_NOMEM : TL_OK;
}

static int zstf_head(struct tl_stf_unpack *u, struct tl_fail *fail)
{
    u->index = tl_le64(u->head + 12);
    u->head_used = TL_ZSTF_HEAD;
    if (u->index && u->index <= TL_ZSTF_HEAD)
        return tl_fail_at(fail, TL_BAD, 12, "the chunk index lies within the head");
    return begin_zstd(u);
}

/* Enough of the head is available: determine the format. */
static int decide(struct tl_stf_unpack *u, struct tl_fail *fail)
{
    const int wrap = tl_stf_sniff((struct tl_bytes){u->head, u->n_head});
    if (wrap < 0)
        return tl_fail_at(fail, TL_BAD, 0,
                          "neither STF nor .zstf, nor gzip, xz or zstd of STF: wrong file?");
    if (wrap == TL_STF_ZSTF && u->n_head < TL_ZSTF_HEAD) {
        u->need = TL_ZSTF_HEAD;
        return TL_AGAIN;
    }
    int result = TL_OK;
    if (wrap == TL_STF_ZSTF)
        result = zstf_head(u, fail);
    else if (wrap == TL_STF_ZSTD)
        result = begin_zstd(u);
    else if (wrap == TL_STF_GZIP)
        result = begin_gzip(u);
    else if (wrap == TL_STF_XZ)
        result = begin_xz(u);
    if (result == TL_NOMEM)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    u->wrap = result < 0 ? -1 : wrap;
    return result;
}

int tl_stf_unpack_chunks(struct tl_stf_unpack *unpack, uint64_t offset, uint64_t index)
{
    struct tl_stf_unpack *const u = unpack;
    if (!u->zstd && begin_zstd(u) < 0)
        return TL_NOMEM;
    ZSTD_DCtx_reset(u->zstd, ZSTD_reset_session_only);
    u->wrap = TL_STF_ZSTF;
    u->n_head = u->head_used = 0;
    u->offset = offset;
    u->index = index;
    u->between = true;
    u->done = false;
    u->n_magic = 0;
    u->n_count = sizeof u->count + 1; /* chunks before this point are not counted */
    return TL_OK;
}

uint64_t tl_stf_unpack_strange(const struct tl_stf_unpack *unpack, uint64_t *offset)
{
    *offset = unpack->strange_at;
    return unpack->strange;
}

/*
 * After a chunk: skip bytes up to the next chunk or the chunk index. Returns true if u->magic
 * contains the first four bytes of a chunk; otherwise `in` is exhausted or everything is done.
 */
static bool find_chunk(struct tl_stf_unpack *u, struct tl_bytes *in)
{
    while (u->n_magic < sizeof u->magic || !is_magic(u->magic)) {
        if (u->n_magic == sizeof u->magic) {
            if (u->offset == TL_ZSTF_HEAD && !u->index)
                return true; /* zstd will report the error */
            if (!u->index) { /* the index of a file whose head was not completed */
                u->done = true;
                in->p += in->n;
                in->n = 0;
                return false;
            }
            u->strange_at = u->strange++ ? u->strange_at : u->offset;
            memmove(u->magic, u->magic + 1, --u->n_magic);
            u->offset++;
        }
        if (u->index && u->offset + u->n_magic == u->index) {
            if (u->n_magic)
                u->strange_at = u->strange ? u->strange_at : u->offset;
            u->strange += u->n_magic;
            u->offset = u->index;
            u->done = true;
            return false;
        }
        if (in->n == 0)
            return false;
        u->magic[u->n_magic++] = *in->p++;
        in->n--;
    }
    return true;
}

static int push_frame(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_buf *out,
                      struct tl_fail *fail)
{
    size_t n = in->n;
    if (u->index && n > u->index - u->offset)
        n = (size_t)(u->index - u->offset);
    ZSTD_inBuffer i = {in->p, n, 0};
    ZSTD_outBuffer o = {out->p + out->n, PIECE, 0};
    const size_t result = ZSTD_decompressStream(u->zstd, &o, &i);
    u->frame_at = u->between ? u->offset : u->frame_at;
    if (ZSTD_isError(result))
        return bad(u, fail,
                   ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge
                       ? "zstd's window is larger than 128 MiB; compress again, without --long=28 "
                         "or more"
                       : "a chunk cannot be decompressed: damaged");
    if (i.pos || o.pos)
        u->between = result == 0;
    u->frames += u->between;
    out->n += o.pos;
    in->p += i.pos;
    in->n -= i.pos;
    u->offset += i.pos;
    if (u->index && u->offset == u->index && u->between)
        u->done = true;
    else if (u->index && u->offset == u->index && i.pos == 0 && o.pos == 0)
        return bad(u, fail, "the last chunk is cut by the chunk index");
    return TL_OK;
}

static int push_zstd(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_buf *out,
                     struct tl_fail *fail)
{
    if (u->wrap != TL_STF_ZSTF || !u->between)
        return push_frame(u, in, out, fail);
    if (!find_chunk(u, in))
        return TL_OK;
    struct tl_bytes magic = {u->magic, sizeof u->magic};
    u->n_magic = 0;
    return push_frame(u, &magic, out, fail);
}

static int push_gzip(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_buf *out,
                     struct tl_fail *fail)
{
    const uInt n = in->n > PIECE ? PIECE : (uInt)in->n;
    if (u->between && n) {
        inflateReset(&u->gzip);
        u->between = false;
        u->frame_at = u->offset;
    }
    u->gzip.next_in = (Bytef *)(uintptr_t)in->p;
    u->gzip.avail_in = n;
    u->gzip.next_out = out->p + out->n;
    u->gzip.avail_out = PIECE;
    const int result = inflate(&u->gzip, Z_NO_FLUSH);
    const size_t used = n - u->gzip.avail_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return bad(u, fail, "the gzip stream is damaged");
    u->between = result == Z_STREAM_END;
    out->n += PIECE - u->gzip.avail_out;
    in->p += used;
    in->n -= used;
    u->offset += used;
    return TL_OK;
}

static int push_xz(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_buf *out,
                   struct tl_fail *fail, lzma_action action)
{
    u->xz.next_in = in->p;
    u->xz.avail_in = in->n;
    u->xz.next_out = out->p + out->n;
    u->xz.avail_out = PIECE;
    const lzma_ret result = lzma_code(&u->xz, action);
    const size_t used = in->n - u->xz.avail_in;
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
        return bad(u, fail,
                   result == LZMA_MEMLIMIT_ERROR ? "the xz stream wants more than 256 MiB of memory"
                                                 : "the xz stream is damaged");
    u->between = result == LZMA_STREAM_END;
    out->n += PIECE - u->xz.avail_out;
    in->p += used;
    in->n -= used;
    u->offset += used;
    return TL_OK;
}

static int push_plain(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_buf *out)
{
    const size_t n = in->n < PIECE ? in->n : PIECE;
    memcpy(out->p + out->n, in->p, n);
    out->n += n;
    in->p += n;
    in->n -= n;
    u->offset += n;
    return TL_OK;
}

/* Decompress bytes. `out` has space for PIECE bytes. */
static int push(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_buf *out,
                struct tl_fail *fail)
{
    switch (u->wrap) {
    case TL_STF_ZSTF:
    case TL_STF_ZSTD:
        return push_zstd(u, in, out, fail);
    case TL_STF_GZIP:
        return push_gzip(u, in, out, fail);
    case TL_STF_XZ:
        return push_xz(u, in, out, fail, LZMA_RUN);
    default:
        return push_plain(u, in, out);
    }
}

static int fill_head(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_fail *fail)
{
    while (u->wrap < 0) {
        while (u->n_head < u->need && in->n) {
            u->head[u->n_head++] = *in->p++;
            in->n--;
        }
        if (u->n_head < u->need)
            return TL_AGAIN;
        const int result = decide(u, fail);
        if (result < 0 && result != TL_AGAIN)
            return result;
    }
    u->offset = u->head_used;
    return TL_OK;
}

int tl_stf_unpack_push(struct tl_stf_unpack *unpack, struct tl_bytes *in, struct tl_buf *out,
                       struct tl_fail *fail)
{
    if (unpack->wrap < 0) {
        const int result = fill_head(unpack, in, fail);
        if (result < 0)
            return result == TL_AGAIN ? TL_OK : result;
    }
    if (unpack->done) {
        while (unpack->n_count < sizeof unpack->count && in->n > 0) {
            unpack->count[unpack->n_count++] = *in->p++;
            in->n--;
        }
        in->p += in->n;
        in->n = 0;
        return TL_OK;
    }
    if (tl_buf_reserve(out, PIECE) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (unpack->head_used == unpack->n_head)
        return push(unpack, in, out, fail);
    struct tl_bytes head = {unpack->head + unpack->head_used, unpack->n_head - unpack->head_used};
    const int result = push(unpack, &head, out, fail);
    unpack->head_used = unpack->n_head - head.n;
    return result;
}

int tl_stf_unpack_finish(struct tl_stf_unpack *unpack, struct tl_fail *fail)
{
    if (unpack->wrap < 0)
        return tl_fail_at(fail, TL_BAD, 0, "no STF: only %zu bytes of it", unpack->n_head);
    const uint64_t chunks = tl_le64(unpack->count);
    if (unpack->index && unpack->done && unpack->n_count == sizeof unpack->count &&
        unpack->frames < chunks)
        return tl_fail_at(fail, TL_BAD, unpack->strange ? unpack->strange_at : unpack->index,
                          "%llu of %llu chunks are damaged: what follows them is reported as if it "
                          "followed",
                          (unsigned long long)(chunks - unpack->frames),
                          (unsigned long long)chunks);
    if (unpack->done || unpack->wrap == TL_STF_PLAIN)
        return TL_OK;
    if (unpack->n_magic > 0 && unpack->offset > TL_ZSTF_HEAD && !unpack->index)
        return TL_OK; /* the beginning of an index */
    if (unpack->index && unpack->offset < unpack->index)
        return bad(unpack, fail, "the .zstf is cut off before its chunk index");
    if (unpack->wrap == TL_STF_XZ) {
        uint8_t none[64];
        struct tl_buf room = {.p = none, .cap = sizeof none};
        struct tl_bytes in = {none, 0};
        unpack->xz.next_in = in.p;
        unpack->xz.avail_in = 0;
        unpack->xz.next_out = room.p;
        unpack->xz.avail_out = sizeof none;
        unpack->between = lzma_code(&unpack->xz, LZMA_FINISH) == LZMA_STREAM_END;
    }
    return unpack->between ? TL_OK : bad(unpack, fail, "the compressed stream is cut");
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

static int push_packed(struct tl_stf_unpack *u, struct tl_bytes *in, struct tl_buf *out)
{
    tl_buf_reset(out);
    if (u->wrap == TL_STF_GZIP)
        return push_gzip(u, in, out, NULL);
    return u->wrap == TL_STF_XZ ? push_xz(u, in, out, NULL, LZMA_RUN)
                                : push_frame(u, in, out, NULL);
}

/* Decompressors cannot save their state: bring a new one to the same position. */
static int unpack_again(struct tl_stf_unpack *u, tl_stf_reread *reread, const void *context)
{
    enum { SOME = 1 << 20 };
    struct tl_buf packed = {0}, gone = {0};
    const uint64_t end = u->offset;
    int rc = tl_buf_reserve(&gone, PIECE);
    for (u->offset = u->frame_at; rc >= 0 && u->offset < end;) {
        const uint64_t n = end - u->offset < SOME ? end - u->offset : SOME;
        tl_buf_reset(&packed);
        rc = reread(context, u->offset, n, &packed);
        struct tl_bytes in = {packed.p, packed.n};
        for (bool more = rc >= 0; more && rc >= 0;) {
            const size_t before = in.n;
            rc = push_packed(u, &in, &gone);
            more = in.n < before || gone.n > 0;
        }
        if (rc >= 0 && (in.n > 0 || u->between))
            rc = TL_BAD;
    }
    tl_buf_fini(&packed);
    tl_buf_fini(&gone);
    return rc;
}

static int begin_again(struct tl_stf_unpack *u, int wrap, tl_stf_reread *reread,
                       const void *context)
{
    const bool between = u->between, zstd = wrap == TL_STF_ZSTF || wrap == TL_STF_ZSTD;
    int rc = TL_OK;
    if (zstd)
        rc = begin_zstd(u);
    else if (wrap == TL_STF_GZIP)
        rc = begin_gzip(u);
    else if (wrap == TL_STF_XZ)
        rc = begin_xz(u);
    if (rc < 0)
        return rc;
    u->wrap = wrap;
    u->between = zstd; /* its frame begins with its first bytes */
    if (!between && wrap >= 0 && wrap != TL_STF_PLAIN)
        rc = unpack_again(u, reread, context);
    u->between = between;
    return rc;
}

void tl_stf_unpack_state(struct tl_stf_unpack *u, tl_stf_reread *reread, const void *context,
                         struct tl_state *s)
{
    uint8_t wrap = (uint8_t)(u->wrap + 1);
    tl_state_u8(s, &wrap, TL_STF_ZSTD + 1);
    tl_state_bytes(s, u->head, sizeof u->head);
    tl_state_size(s, &u->need, HEAD_BYTES);
    tl_state_size(s, &u->n_head, HEAD_BYTES);
    tl_state_size(s, &u->head_used, u->n_head);
    tl_state_u64(s, &u->offset);
    tl_state_u64(s, &u->index);
    tl_state_bool(s, &u->between);
    tl_state_bool(s, &u->done);
    tl_state_bytes(s, u->magic, sizeof u->magic);
    tl_state_size(s, &u->n_magic, sizeof u->magic);
    tl_state_u64(s, &u->strange);
    tl_state_u64(s, &u->strange_at);
    tl_state_u64(s, &u->frames);
    tl_state_bytes(s, u->count, sizeof u->count);
    tl_state_size(s, &u->n_count, sizeof u->count + 1);
    tl_state_u64(s, &u->frame_at);
    tl_state_check(s, u->need >= 6 && u->frame_at <= u->offset &&
                          (!u->index || u->offset <= u->index));
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, begin_again(u, (int)wrap - 1, reread, context));
}
