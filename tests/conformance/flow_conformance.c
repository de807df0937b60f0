/* SPDX-License-Identifier: MIT */
/*
 * Flow of real CoreSight captures compared with the reference decoder's: each snapshot, each
 * buffer, whole and byte by byte. For each stream, the sequences of instructions, exceptions
 * (number and return address), exception returns, timestamps and cycle counts are compared.
 *
 *   flow_conformance [NAME]     all snapshots, or those whose name begins with NAME
 */
#include "conformance/flow_text.h"
#include "import/bundle.h"
#include "unit/data.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CLASSES "IXRTY"

/* Folders of snapshots, and where the text of each one is. */
struct collection {
    const char *snapshots; /* below the folder of captures */
    const char *goldens;   /* with the snapshot's name, and that of the text */
};

static const struct collection collections[] = {{"snapshots", "%.200s/flow/%s%s.flow.gz"},
                                                {"older", "%.200s/older/%s/%s.flow.gz"}};

/*
 * Captures of which the reference's text lacks something: it gives cycles per packet, not per
 * instruction, does not convert Gray-coded timestamps, loses counts of PTM, and has an ITM's global
 * timestamps in lines of their own kind. The captures that were made have the truth instead.
 */
static const char *classes_of(const char *name)
{
    if (strncmp(name, "itm_only", 8) == 0)
        return "IXRY";
    return strcmp(name, "TC2") == 0 ? "IXRT" : strcmp(name, "Snowball") == 0 ? "IXR" : CLASSES;
}

/* ---- ours -------------------------------------------------------------------------------- */

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

/* ---- comparison -------------------------------------------------------------------------- */

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

/* ---- snapshots --------------------------------------------------------------------------- */

static size_t buffers_done, differing;

static void check_buffer(const char *data, const struct collection *in, const char *name,
                         const struct tl_bundle_capture *buffer, bool only)
{
    char golden[LINE_MAX_SIZE], what[192];
    const bool old = in != collections;
    if (only)
        snprintf(what, sizeof what, "%.80s", name);
    else
        snprintf(what, sizeof what, "%.80s.%.64s", name, buffer->name);
    snprintf(golden, sizeof golden, in->goldens, data, old ? name : "", what);
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
        bad = compare(what, &reference, &whole, classes_of(name), surplus_at);
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

static void check_snapshot(const char *data, const struct collection *in, const char *name)
{
    char dir[LINE_MAX_SIZE];
    struct tl_bundle snapshot;
    struct tl_fail fail = {.text = ""};
    snprintf(dir, sizeof dir, "%.200s/%s/%.200s", data, in->snapshots, name);
    if (tl_snapshot_read(&snapshot, dir, NULL, NULL, &fail) < 0) {
        printf("%s: not read: %s\n", name, fail.text);
        differing++;
        return;
    }
    for (size_t i = 0; i < snapshot.n_captures; i++)
        check_buffer(data, in, name, &snapshot.captures[i], snapshot.n_captures == 1);
    tl_bundle_fini(&snapshot);
}

/* All snapshots of a folder, or those whose name begins with `begin`. */
static void check_collection(const char *data, const struct collection *in, const char *begin)
{
    char dir[LINE_MAX_SIZE + 16];
    struct dirent **names;
    snprintf(dir, sizeof dir, "%s/%s", data, in->snapshots);
    const int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        if (name[0] != '.' && names[i]->d_type != DT_REG &&
            strncmp(name, begin, strlen(begin)) == 0)
            check_snapshot(data, in, name);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

int main(int argc, char **argv)
{
    char data[LINE_MAX_SIZE];
    if (!test_data(data, sizeof data, "coresight")) {
        puts("skipped: no captures here");
        return 77;
    }
    for (size_t i = 0; i < sizeof collections / sizeof *collections; i++)
        check_collection(data, &collections[i], argc < 2 ? "" : argv[1]);
    printf("%zu buffers, %zu differ\n", buffers_done, differing);
    return differing || buffers_done == 0;
}
