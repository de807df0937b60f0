/* SPDX-License-Identifier: MIT */
/*
 * Flow of real CoreSight captures compared with the reference decoder's: each snapshot, each
 * buffer, whole and byte by byte. For each stream, the sequences of instructions, exceptions
 * (number and return address), exception returns, timestamps and cycle counts are compared.
 *
 *   flow_conformance [NAME]     all snapshots, or those whose name begins with NAME
 */
#include "decode/decode.h"
#include "import/bundle.h"
#include "unit/data.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CLASSES       "IXRTY"
#define STREAMS_MAX   128
#define LINE_MAX_SIZE 512

/* Flow text by stream, sorted by name. */
struct streams {
    struct {
        char name[32];
        struct tl_buf text;
    } v[STREAMS_MAX];
    size_t n;
};

static struct tl_buf *stream_text(struct streams *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0)
            return &s->v[i].text;
    if (s->n == STREAMS_MAX)
        return NULL;
    snprintf(s->v[s->n].name, sizeof s->v[0].name, "%s", name);
    return &s->v[s->n++].text;
}

static void streams_fini(struct streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        tl_buf_fini(&s->v[i].text);
    *s = (struct streams){.n = 0};
}

/* ---- ours -------------------------------------------------------------------------------- */

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct tl_buf *text = stream_text(context, stream->name);
    return text ? tl_item_text(text, items, n) : TL_LIMIT;
}

static int load_images(struct tl_image *image, const struct tl_setup *setup, struct tl_fail *fail)
{
    for (size_t i = 0; i < setup->n_images; i++) {
        const struct tl_setup_image *m = &setup->images[i];
        struct stat st;
        if (stat(m->file, &st) != 0)
            continue; /* the snapshot refers to dumps that it does not contain */
        const int rc =
            tl_image_add_file(image, m->file, m->address, m->offset, m->length, m->space, fail);
        if (rc < 0)
            return rc;
    }
    return tl_image_freeze(image);
}

static int push_all(struct tl_decode *decode, const struct tl_buf *bytes, size_t chunk)
{
    for (size_t at = 0; at < bytes->n; at += chunk) {
        const size_t n = bytes->n - at < chunk ? bytes->n - at : chunk;
        const int rc = tl_decode_push(decode, bytes->p + at, n);
        if (rc < 0)
            return rc;
    }
    return tl_decode_finish(decode);
}

static int decode_buffer(struct streams *out, const struct tl_bundle_capture *buffer, size_t chunk,
                         struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    struct tl_image *image = NULL;
    struct tl_decode *decode = NULL;
    const struct tl_decode_sink sink = {.context = out, .items = on_items};
    int rc = tl_bundle_bytes(buffer, &bytes, fail);
    if (rc == TL_OK)
        rc = tl_image_new(&image);
    if (rc == TL_OK)
        rc = load_images(image, &buffer->setup, fail);
    if (rc == TL_OK)
        rc = tl_decode_new(&decode, &buffer->setup, image, &sink, fail);
    if (rc == TL_OK)
        rc = push_all(decode, &bytes, chunk ? chunk : bytes.n);
    tl_decode_free(decode);
    tl_image_free(image);
    tl_buf_fini(&bytes);
    return rc;
}

/* ---- the reference's --------------------------------------------------------------------- */

static int read_golden(struct streams *out, const char *path)
{
    char command[LINE_MAX_SIZE + 32], line[LINE_MAX_SIZE];
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *f = popen(command, "r");
    struct tl_buf *text = NULL;
    int rc = f ? TL_OK : TL_IO;
    while (rc == TL_OK && fgets(line, sizeof line, f)) {
        char name[32];
        if (sscanf(line, "# stream %31s", name) == 1)
            text = stream_text(out, name);
        else
            rc = text ? tl_buf_add(text, line, strlen(line)) : TL_BAD;
    }
    if (f && pclose(f) != 0)
        rc = TL_IO;
    return rc;
}

/* ---- comparison -------------------------------------------------------------------------- */

struct cursor {
    const char *p, *end;
    size_t count;
};

/* Get the next line of a class, without its line end, in a form that can be compared. Returns false
 * at the end. */
static bool next_line(struct cursor *c, char class, char out[static LINE_MAX_SIZE])
{
    while (c->p < c->end) {
        const char *line = c->p;
        const char *stop = memchr(line, '\n', (size_t)(c->end - line));
        stop = stop ? stop : c->end;
        c->p = stop < c->end ? stop + 1 : stop;
        if (*line != class || (stop - line > 1 && line[1] != ' '))
            continue;
        const char *from = line;
        if (class == 'X') { /* the last two fields: only ours has a name before them */
            int spaces = 0;
            for (from = stop; from > line && spaces < 2; from--)
                spaces += from[-1] == ' ';
        }
        snprintf(out, LINE_MAX_SIZE, "%.*s", (int)(stop - from), from);
        c->count++;
        return true;
    }
    return false;
}

/* Surplus output of the reference; nothing else may differ. docs/coresight-differences.md explains
 * each case. */
static const struct {
    const char *what;
    char class;
    size_t from, count; /* lines of the class, counted from 0 */
} surplus[] = {
    {"ete_ip", 'I', 5838, 9131}, /* straight on from a stale address, over 360 branches */
};

/* The number of the reference's lines to skip before line `at`. */
static size_t surplus_at(const char *what, char class, size_t at)
{
    for (size_t i = 0; i < sizeof surplus / sizeof surplus[0]; i++)
        if (surplus[i].class == class && surplus[i].from == at &&
            strcmp(surplus[i].what, what) == 0)
            return surplus[i].count;
    return 0;
}

static size_t compare_class(const char *what, const char *stream, char class,
                            const struct tl_buf *reference, const struct tl_buf *ours)
{
    struct cursor a = {(const char *)reference->p, (const char *)reference->p + reference->n, 0};
    struct cursor b = {(const char *)ours->p, (const char *)ours->p + ours->n, 0};
    char x[LINE_MAX_SIZE], y[LINE_MAX_SIZE];
    for (;;) {
        for (size_t skip = surplus_at(what, class, a.count); skip > 0; skip--)
            next_line(&a, class, x);
        const bool more_a = next_line(&a, class, x), more_b = next_line(&b, class, y);
        if (!more_a && !more_b)
            return 0;
        if (more_a == more_b && strcmp(x, y) == 0)
            continue;
        printf("%s %s: %c differs at %zu: reference '%s', ours '%s'\n", what, stream, class,
               a.count, more_a ? x : "(end)", more_b ? y : "(end)");
        return 1;
    }
}

static size_t compare(const char *what, struct streams *reference, struct streams *ours)
{
    size_t differences = 0;
    for (size_t i = 0; i < ours->n; i++)
        stream_text(reference, ours->v[i].name);
    for (size_t i = 0; i < reference->n; i++) {
        const char *name = reference->v[i].name;
        for (const char *class = CLASSES; *class; class ++)
            differences +=
                compare_class(what, name, *class, &reference->v[i].text, stream_text(ours, name));
    }
    return differences;
}

static bool same_text(struct streams *a, struct streams *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct tl_buf *x = &a->v[i].text, *y = stream_text(b, a->v[i].name);
        if (x->n != y->n || (x->n > 0 && memcmp(x->p, y->p, x->n) != 0))
            return false;
    }
    return a->n == b->n;
}

/* ---- snapshots --------------------------------------------------------------------------- */

static size_t buffers_done, differing;

static void check_buffer(const char *data, const char *name, const struct tl_bundle_capture *buffer,
                         bool only)
{
    char golden[LINE_MAX_SIZE], what[192];
    if (only)
        snprintf(what, sizeof what, "%.80s", name);
    else
        snprintf(what, sizeof what, "%.80s.%.64s", name, buffer->name);
    snprintf(golden, sizeof golden, "%.200s/flow/%s.flow.gz", data, what);
    if (access(golden, R_OK) != 0)
        return;
    struct streams reference = {.n = 0}, whole = {.n = 0}, bytewise = {.n = 0};
    struct tl_fail fail = {.text = ""};
    size_t bad = 0;
    if (read_golden(&reference, golden) < 0) {
        printf("%s: golden cannot be read\n", golden);
        bad = 1;
    } else if (decode_buffer(&whole, buffer, 0, &fail) < 0 ||
               decode_buffer(&bytewise, buffer, 1, &fail) < 0) {
        printf("%s: not decoded: %s\n", what, fail.text);
        bad = 1;
    } else {
        bad = compare(what, &reference, &whole);
        if (!same_text(&whole, &bytewise)) {
            printf("%s: pushed byte by byte it reads otherwise\n", what);
            bad++;
        }
    }
    buffers_done++;
    differing += bad > 0;
    printf("%s: %s\n", what, bad ? "DIFFERENT" : "equal");
    streams_fini(&reference);
    streams_fini(&whole);
    streams_fini(&bytewise);
}

static void check_snapshot(const char *data, const char *name)
{
    char dir[LINE_MAX_SIZE];
    struct tl_bundle snapshot;
    struct tl_fail fail = {.text = ""};
    snprintf(dir, sizeof dir, "%.200s/snapshots/%.200s", data, name);
    if (tl_snapshot_read(&snapshot, dir, NULL, NULL, &fail) < 0) {
        printf("%s: not read: %s\n", name, fail.text);
        differing++;
        return;
    }
    for (size_t i = 0; i < snapshot.n_captures; i++)
        check_buffer(data, name, &snapshot.captures[i], snapshot.n_captures == 1);
    tl_bundle_fini(&snapshot);
}

int main(int argc, char **argv)
{
    char data[LINE_MAX_SIZE], dir[LINE_MAX_SIZE + 16];
    if (!test_data(data, sizeof data, "coresight")) {
        puts("skipped: no captures here");
        return 77;
    }
    snprintf(dir, sizeof dir, "%s/snapshots", data);
    struct dirent **names;
    const int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        if (name[0] != '.' && names[i]->d_type != DT_REG &&
            (argc < 2 || strncmp(name, argv[1], strlen(argv[1])) == 0))
            check_snapshot(data, name);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    printf("%zu buffers, %zu differ\n", buffers_done, differing);
    return differing || buffers_done == 0;
}
