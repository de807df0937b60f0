/* SPDX-License-Identifier: MIT */
/*
 * Writes decoded streams as text or files while all of them are being decoded at once. Text of all
 * streams but the first is held back in temporary files, so that the output is one stream after
 * another whatever the order in which threads decode.
 */
#include "out/decode_out.h"

#include "base/crew.h"
#include "base/whole.h"
#include "out/annotate.h"
#include "out/itemjson.h"
#include "out/jsonwrite.h"
#include "out/stf_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLUSH_AT = 1 << 16, PIECE = 1 << 18 };

/* Output of one stream. Text of all but the first one is held back in unnamed temporary files. */
struct lane {
    char name[32];
    char *path; /* of the STF file */
    FILE *file; /* standard output if `is_first` */
    struct tl_buf text;
    struct tl_itemjson json;
    struct tl_cli_stf *stf;
    bool left_out;
    bool titled; /* its name precedes its text */
    bool is_first;
    bool begun; /* its name has been written */
};

struct tl_decode_out {
    enum tl_decode_out_kind kind;
    struct tl_decode_out_place place;
    struct tl_crew *crew;      /* borrowed */
    struct tl_zstf_pool *pool; /* of the STF of all lanes */
    struct tl_crew_work work;  /* the pool's work */
    bool offered;              /* `work` has been offered to the crew */
    struct lane **lanes;       /* indexed by stream */
    size_t n;
    size_t cap;
    struct tl_fail fail; /* error between new and finish */
};

static bool pack_piece(void *context)
{
    return tl_zstf_pool_work(context);
}

int tl_decode_out_new(struct tl_decode_out **out, enum tl_decode_out_kind kind,
                      const struct tl_decode_out_place *place, struct tl_crew *crew,
                      struct tl_fail *fail)
{
    const char *const dir = place->dir;
    *out = NULL;
    if (kind == TL_OUT_STF && mkdir(dir, 0777) != 0 && errno != EEXIST)
        return tl_fail_set(fail, TL_IO, "%.150s: %s", dir, strerror(errno));
    struct tl_decode_out *const o = calloc(1, sizeof *o);
    if (!o)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (kind == TL_OUT_STF && tl_cli_stf_pool(&o->pool, 1 + tl_crew_threads(crew)) < 0) {
        free(o);
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    o->crew = crew;
    o->work = (struct tl_crew_work){.piece = pack_piece, .context = o->pool};
    o->offered = o->pool && tl_crew_threads(crew) > 0 && tl_crew_offer(crew, &o->work) == TL_OK;
    o->kind = kind;
    o->place = *place;
    *out = o;
    return TL_OK;
}

/* DIR/STREAM.zstf, or DIR/BUFFER.STREAM.zstf. NULL: out of memory. */
static char *path_of(const struct tl_decode_out_place *place, const char *stream)
{
    const char *const buffer = place->buffer ? place->buffer : "";
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s%s.zstf", place->dir, buffer, *buffer ? "." : "", stream) < 0)
        return NULL;
    for (char *p = path + strlen(place->dir) + 1; *p; p++)
        if (*p == '/' || (unsigned char)*p < ' ')
            *p = '_';
    return path;
}

bool tl_decode_out_wants(const struct tl_decode_out_place *place, const char *stream)
{
    for (size_t i = 0; i < place->n_streams; i++)
        if (strcmp(place->streams[i], stream) == 0)
            return true;
    return place->n_streams == 0;
}

int tl_decode_out_form(const struct tl_decode_out_place *place, struct tl_buf *out,
                       const struct tl_item *items, size_t n)
{
    return place->coded ? tl_item_text_coded(out, items, n) : tl_item_text(out, items, n);
}

int tl_decode_out_stream(struct tl_decode_out *out, const struct tl_decode_stream *stream)
{
    if (tl_grow(&out->lanes, &out->cap, out->n + 1, sizeof *out->lanes) < 0)
        return TL_NOMEM;
    struct lane *const lane = calloc(1, sizeof *lane);
    if (!lane)
        return TL_NOMEM;
    out->lanes[out->n++] = lane;
    snprintf(lane->name, sizeof lane->name, "%s", stream->name);
    lane->json = (struct tl_itemjson){
        .buffer = out->place.buffer, .stream = lane->name, .protocol = stream->protocol};
    lane->titled = !out->place.json;
    lane->left_out = !tl_decode_out_wants(&out->place, lane->name);
    if (lane->left_out)
        return TL_OK;
    const char *const first = out->kind == TL_OUT_TEXT ? out->place.first : NULL;
    lane->is_first = first && (!first[0] || strcmp(first, lane->name) == 0);
    if (out->kind == TL_OUT_TEXT && !(lane->file = lane->is_first ? stdout : tmpfile()))
        return TL_IO;
    if (lane->file)
        setvbuf(lane->file, NULL, _IONBF, 0); /* it gets large pieces */
    if (out->kind != TL_OUT_STF)
        return TL_OK;
    lane->path = path_of(&out->place, lane->name);
    return lane->path ? tl_cli_stf_new(&lane->stf, lane->path, out->place.input, stream->isa,
                                       out->pool, &out->fail)
                      : TL_NOMEM;
}

static int put(struct lane *lane, struct tl_bytes text)
{
    if (lane->is_first && !lane->begun && lane->titled && text.n > 0) {
        lane->begun = true;
        if (fprintf(lane->file, "# stream %s\n", lane->name) < 0)
            return TL_IO;
    }
    return tl_write_all(lane->file, text.p, text.n) ? TL_OK : TL_IO;
}

static int flush(struct lane *lane)
{
    const int rc = put(lane, (struct tl_bytes){lane->text.p, lane->text.n});
    tl_buf_reset(&lane->text);
    return rc;
}

int tl_decode_out_text(struct tl_decode_out *out, const struct tl_decode_stream *stream,
                       struct tl_bytes text)
{
    struct lane *const lane = out->lanes[stream->index];
    if (lane->left_out)
        return TL_OK;
    const int rc = flush(lane);
    return rc < 0 ? rc : put(lane, text);
}

/* Piece by piece, so that the text stays in the same few pages. */
static int put_item(const struct tl_decode_out_place *place, struct lane *lane,
                    const struct tl_item *item)
{
    enum { STEPS = 64 };
    struct tl_item piece = *item;
    uint32_t left = item->kind == TL_ITEM_PATH ? item->n : 0;
    for (int rc = TL_OK;; piece.path += STEPS) {
        if (item->kind == TL_ITEM_PATH)
            piece.n = left < STEPS ? left : STEPS;
        rc = tl_decode_out_form(place, &lane->text, &piece, 1);
        if (rc >= 0 && lane->text.n >= FLUSH_AT)
            rc = flush(lane);
        if (rc < 0 || left <= STEPS)
            return rc;
        left -= STEPS;
    }
}

int tl_decode_out_items(struct tl_decode_out *out, const struct tl_decode_stream *stream,
                        const struct tl_item *items, size_t n)
{
    if (out->lanes[stream->index]->left_out)
        return TL_OK;
    if (out->kind == TL_OUT_STF)
        return tl_cli_stf_items(out->lanes[stream->index]->stf, items, n);
    if (out->kind != TL_OUT_TEXT)
        return TL_OK;
    struct lane *const lane = out->lanes[stream->index];
    if (out->place.json) {
        const int rc = tl_itemjson_add(&lane->json, items, n, &lane->text);
        return rc < 0 || lane->text.n < FLUSH_AT ? rc : flush(lane);
    }
    int rc = tl_buf_reserve(&lane->text, 2 * FLUSH_AT);
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = put_item(&out->place, lane, &items[i]);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct lane *const *)a)->name, (*(struct lane *const *)b)->name);
}

/* Copy the file `fd` to standard output, inside the kernel if possible. */
static int copy_out(int fd)
{
    for (ssize_t got = 1; got > 0;) {
        got = sendfile(STDOUT_FILENO, fd, NULL, 1 << 30);
        if (got < 0 && errno != EINVAL && errno != ENOSYS)
            return TL_IO;
        if (got == 0)
            return TL_OK;
    }
    char piece[PIECE];
    ssize_t got;
    while ((got = read(fd, piece, sizeof piece)) > 0)
        if (fwrite(piece, 1, (size_t)got, stdout) != (size_t)got)
            return TL_IO;
    return got < 0 ? TL_IO : TL_OK;
}

/* The same with assembly text and function for each instruction. */
static int annotate_out(int fd, const struct tl_decode_out_place *place)
{
    const struct tl_annotate_options options = {
        .disasm = true, .image = place->disasm, .sources = place->sources};
    struct tl_annotate *annotate;
    char piece[PIECE];
    ssize_t got = 1;
    int r = tl_annotate_new(&annotate, &options, stdout);
    if (r < 0)
        return r;
    while (r >= 0 && (got = read(fd, piece, sizeof piece)) > 0)
        r = tl_annotate_push(annotate, (struct tl_bytes){(uint8_t *)piece, (size_t)got});
    tl_annotate_free(annotate);
    return got < 0 ? TL_IO : r;
}

static int print_lane(struct lane *lane, const struct tl_decode_out_place *place)
{
    if (flush(lane) < 0 || fflush(lane->file) != 0)
        return TL_IO;
    if (lane->is_first)
        return TL_OK;
    const int fd = fileno(lane->file);
    const off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0 || lseek(fd, 0, SEEK_SET) != 0)
        return TL_IO;
    if (size == 0)
        return TL_OK;
    if (lane->titled && printf("# stream %s\n", lane->name) < 0)
        return TL_IO;
    if (fflush(stdout) != 0)
        return TL_IO;
    return place->disasm ? annotate_out(fd, place) : copy_out(fd);
}

static void report_file(struct tl_decode_out *out, const struct lane *lane, uint64_t insns)
{
    if (!out->place.json) {
        printf("%s: %llu instructions\n", lane->path, (unsigned long long)insns);
        return;
    }
    struct tl_json o = tl_json_begin();
    if (out->place.buffer)
        tl_json_put_text(&o, "buffer", out->place.buffer);
    tl_json_put_text(&o, "stream", lane->name);
    tl_json_put_text(&o, "file", lane->path);
    tl_json_put_u64(&o, "insns", insns);
    if (tl_json_print(&o) < 0)
        tl_fail_set(&out->fail, TL_IO, "cannot write: %s", strerror(errno));
}

static int finish_stf(struct tl_decode_out *out, struct tl_fail *fail)
{
    tl_crew_call(out->crew);
    for (size_t i = 0; i < out->n && out->fail.code == TL_OK; i++) {
        uint64_t insns;
        if (out->lanes[i]->stf && tl_cli_stf_finish(out->lanes[i]->stf, &insns) == TL_OK)
            report_file(out, out->lanes[i], insns);
    }
    if (out->fail.code != TL_OK)
        *fail = out->fail;
    return out->fail.code;
}

int tl_decode_out_finish(struct tl_decode_out *out, struct tl_fail *fail)
{
    if (out->kind == TL_OUT_STF)
        return finish_stf(out, fail);
    if (out->kind != TL_OUT_TEXT)
        return TL_OK;
    qsort(out->lanes, out->n, sizeof *out->lanes, by_name);
    for (size_t i = 0; i < out->n; i++)
        if (!out->lanes[i]->left_out && print_lane(out->lanes[i], &out->place) < 0)
            return tl_fail_set(fail, TL_IO, "cannot write: %s", strerror(errno));
    if (fflush(stdout) != 0)
        return tl_fail_set(fail, TL_IO, "cannot write: %s", strerror(errno));
    return TL_OK;
}

void tl_decode_out_free(struct tl_decode_out *out)
{
    if (!out)
        return;
    if (out->offered)
        tl_crew_withdraw(out->crew, &out->work);
    for (size_t i = 0; i < out->n; i++) {
        if (out->lanes[i]->file && !out->lanes[i]->is_first)
            fclose(out->lanes[i]->file);
        tl_cli_stf_free(out->lanes[i]->stf);
        tl_buf_fini(&out->lanes[i]->text);
        tl_itemjson_fini(&out->lanes[i]->json);
        free(out->lanes[i]->path);
        free(out->lanes[i]);
    }
    tl_zstf_pool_free(out->pool);
    free(out->lanes);
    free(out);
}
