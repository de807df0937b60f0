/* SPDX-License-Identifier: MIT */
/*
 * Setups from a listing of sysfs or a device tree, a log of a model, LLDB's description of a trace
 * or sideband of Intel PT, settings of dqr, chosen by the first byte: whatever setup is made of
 * them can be written and read again.
 */
#include "import/dqr.h"
#include "import/lldb.h"
#include "import/models.h"
#include "import/sources.h"
#include "import/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void ignore(void *context, const char *text)
{
    require(text[0] != '\0');
}

static void write_and_read(const struct tl_setup *setup)
{
    struct tl_setup again;
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    tl_setup_init(&again);
    require(tl_setup_write(setup, &text) == TL_OK);
    require(tl_setup_parse(&again, (const char *)text.p, text.n, &fail) == TL_OK);
    require(again.n_sources == setup->n_sources);
    tl_setup_fini(&again);
    tl_buf_fini(&text);
}

/* The bytes as a description, or as the sideband of a source. */
static void read_pt_files(char *path, bool is_sideband)
{
    struct tl_bundle_capture capture = {.name = ""};
    struct tl_buf records = {0};
    struct tl_fail fail = {0};
    char kernel[4096];
    bool has_sideband;
    tl_setup_init(&capture.setup);
    int rc = TL_OK;
    if (is_sideband) {
        char text[128];
        snprintf(text, sizeof text, "[source pt.0]\nprotocol=pt\nsideband=%s\n", path);
        rc = tl_setup_parse(&capture.setup, text, strlen(text), &fail);
    } else {
        rc = tl_lldb_read(&capture.setup, &records, kernel, path, ignore, NULL, &fail);
    }
    if (rc == TL_OK)
        rc = tl_sources_read(&capture, (struct tl_bytes){records.p, records.n}, &has_sideband,
                             &fail);
    require(rc == TL_OK || fail.text[0] != '\0');
    tl_buf_fini(&records);
    tl_bundle_capture_fini(&capture);
}

/* Settings, which may name themselves as the trace. */
static void read_settings(const char *path)
{
    struct tl_bundle_capture capture = {.name = ""};
    struct tl_fail fail = {0};
    tl_setup_init(&capture.setup);
    (void)tl_dqr_is(path);
    if (tl_dqr_read(&capture, path, NULL, ignore, NULL, &fail) == TL_OK)
        write_and_read(&capture.setup);
    else
        require(fail.text[0] != '\0');
    tl_bundle_capture_fini(&capture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct tl_setup setup;
    struct tl_fail fail = {0};
    if (size < 1 || size > 65536)
        return 0;
    const int fd = memfd_create("system", 0);
    require(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const char *const model = data[0] == 2   ? "spike"
                              : data[0] == 5 ? "rtl"
                              : data[0] == 6 ? "drmemtrace"
                                             : NULL;
    if (model) {
        struct tl_buf stf = {0};
        struct tl_model_input in = {.name = "model", .warn = ignore};
        require(tl_model_read(tl_model_of(model), &stf, model, path, &in, &fail) == TL_OK ||
                fail.text[0] != '\0');
        (void)tl_model_like((struct tl_bytes){data + 1, size - 1});
        tl_buf_fini(&stf);
        close(fd);
        return 0;
    }
    if (data[0] == 7) {
        read_settings(path);
        close(fd);
        return 0;
    }
    if (data[0] == 3 || data[0] == 4) {
        read_pt_files(path, data[0] == 4);
        close(fd);
        return 0;
    }
    tl_setup_init(&setup);
    const int rc =
        (data[0] & 1 ? tl_devicetree_read : tl_sysfs_read)(&setup, path, ignore, NULL, &fail);
    if (rc == TL_OK)
        write_and_read(&setup);
    else
        require(fail.text[0] != '\0');
    tl_setup_fini(&setup);
    close(fd);
    return 0;
}
