/* SPDX-License-Identifier: MIT */
/*
 * Flow of RISC-V captures compared with what an emulator executed: each capture, whole and in
 * chunks. For each stream, the sequences of instructions, exceptions (number and return address),
 * exception returns, and timestamps where the reference has them are compared.
 *
 *   riscv_conformance [NAME]     all captures, or those whose name begins with NAME
 */
#include "conformance/flow_text.h"
#include "unit/data.h"

#include <dirent.h>

#define CHUNK 7u /* bytes */

static size_t captures_done, differing;

static int decode_bytes(struct streams *out, const struct tl_setup *setup,
                        const struct tl_image *image, const struct tl_buf *bytes, size_t chunk,
                        struct tl_fail *fail)
{
    struct tl_decode *decode = NULL;
    const struct tl_decode_sink sink = {.context = out, .items = on_items};
    int rc = tl_decode_new(&decode, setup, image, &sink, fail);
    if (rc == TL_OK)
        rc = push_all(decode, bytes, chunk);
    tl_decode_free(decode);
    return rc;
}

static bool has_times(const struct streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].text.n && memmem(s->v[i].text.p, s->v[i].text.n, "\nT ", 3))
            return true;
    return false;
}

static size_t check(const char *name, const char *golden, const struct tl_setup *setup,
                    const struct tl_image *image, const struct tl_buf *bytes)
{
    struct streams reference = {.n = 0}, whole = {.n = 0}, parts = {.n = 0};
    struct tl_fail fail = {.text = ""};
    size_t bad = 1;
    if (read_golden(&reference, golden) < 0) {
        printf("%s: golden cannot be read\n", golden);
    } else if (decode_bytes(&whole, setup, image, bytes, bytes->n, &fail) < 0 ||
               decode_bytes(&parts, setup, image, bytes, CHUNK, &fail) < 0) {
        printf("%s: not decoded: %s\n", name, fail.text);
    } else {
        bad = compare(name, &reference, &whole, has_times(&reference) ? "IXRT" : "IXR", NULL);
        if (!same_text(&whole, &parts)) {
            printf("%s: pushed in chunks it reads otherwise\n", name);
            bad++;
        }
    }
    streams_fini(&reference);
    streams_fini(&whole);
    streams_fini(&parts);
    return bad;
}

/* `name` without its extension. */
static void check_capture(const char *dir, const char *name)
{
    char path[LINE_MAX_SIZE];
    struct tl_setup setup;
    struct tl_image *image = NULL;
    struct tl_buf bytes = {0};
    struct tl_fail fail = {.text = ""};
    tl_setup_init(&setup);
    snprintf(path, sizeof path, "%.300s/%.100s.ini", dir, name);
    int rc = tl_setup_read(&setup, path, &fail);
    if (rc == TL_OK)
        rc = tl_image_new(&image);
    if (rc == TL_OK)
        rc = tl_setup_load_images(&setup, image, NULL, NULL, &fail);
    if (rc == TL_OK)
        rc = tl_image_freeze(image);
    const bool etrace = setup.container == TL_CONTAINER_ETRACE;
    snprintf(path, sizeof path, "%.300s/%.100s.%s", dir, name, etrace ? "etr" : "nex");
    if (rc == TL_OK)
        rc = tl_buf_read_file(&bytes, path, 1 << 24, &fail);
    snprintf(path, sizeof path, "%.300s/%.100s.flow.gz", dir, name);
    if (rc < 0)
        printf("%s: %s\n", name, fail.text);
    const bool bad = rc < 0 || check(name, path, &setup, image, &bytes) > 0;
    captures_done++;
    differing += bad;
    printf("%s: %s\n", name, bad ? "DIFFERENT" : "equal");
    tl_buf_fini(&bytes);
    tl_image_free(image);
    tl_setup_fini(&setup);
}

int main(int argc, char **argv)
{
    char dir[LINE_MAX_SIZE];
    const char *const only = argc > 1 ? argv[1] : "";
    if (!test_data(dir, sizeof dir, "riscv")) {
        puts("skipped: no captures here");
        return 77;
    }
    struct dirent **names;
    const int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *const end = strstr(names[i]->d_name, ".ini");
        if (end && strncmp(names[i]->d_name, only, strlen(only)) == 0) {
            *end = '\0';
            check_capture(dir, names[i]->d_name);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    printf("%zu captures, %zu differ\n", captures_done, differing);
    return differing || captures_done == 0;
}
