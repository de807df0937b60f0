/* SPDX-License-Identifier: MIT */
/*
 * Setups and Arm trace snapshots from text. The first byte chooses: a setup, which must be the same
 * after being written and read again, or a snapshot, whose files snapshot.ini, device.ini and
 * trace.ini follow each other, separated by a line "%%".
 */
#include "import/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void setup(const char *text, size_t n)
{
    struct tl_setup a, b;
    struct tl_buf first = {0}, second = {0};
    struct tl_fail fail = {0};
    tl_setup_init(&a);
    tl_setup_init(&b);
    if (tl_setup_parse(&a, text, n, &fail) < 0) {
        require(fail.text[0] != '\0');
    } else {
        require(tl_setup_write(&a, &first) == 0);
        if (tl_setup_parse(&b, (char *)first.p, first.n, &fail) == 0) {
            require(tl_setup_write(&b, &second) == 0);
            require(a.n_images == b.n_images && a.n_sources == b.n_sources);
        }
    }
    tl_setup_fini(&a);
    tl_setup_fini(&b);
    tl_buf_fini(&first);
    tl_buf_fini(&second);
}

static char folder[] = "/tmp/fuzz_setup.XXXXXX";
static const char *const names[] = {"snapshot.ini", "device.ini", "trace.ini"};

static void remove_folder(void)
{
    char path[64];
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void ignore(void *context, const char *text)
{
    require(text[0] != '\0');
}

static void snapshot(const char *text, size_t n)
{
    static bool made;
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    if (!made) {
        require(mkdtemp(folder) != NULL);
        atexit(remove_folder);
        made = true;
    }
    for (unsigned i = 0; i < 3; i++) {
        char path[64];
        const char *const end = memmem(text, n, "\n%%\n", 4);
        const size_t part = end ? (size_t)(end - text) : n;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *const f = fopen(path, "w");
        require(f != NULL);
        require(fwrite(text, 1, part, f) == part && fclose(f) == 0);
        text += end ? part + 4 : n;
        n -= end ? part + 4 : n;
    }
    if (tl_snapshot_read(&snap, folder, ignore, NULL, &fail) == 0) {
        require(snap.n_captures > 0);
        for (size_t i = 0; i < snap.n_captures; i++)
            require(snap.captures[i].n_pieces > 0);
        tl_bundle_fini(&snap);
    } else {
        require(fail.text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 16384)
        return 0;
    if (data[0] & 1)
        snapshot((const char *)data + 1, size - 1);
    else
        setup((const char *)data + 1, size - 1);
    return 0;
}
