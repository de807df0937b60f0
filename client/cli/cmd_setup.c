/* SPDX-License-Identifier: MIT */
/*
 * `tracelake setup`: writes the configuration of a capture from what a system or a recording says
 * of itself, and compares a configuration with a capture's bytes. For the comparison a capture's
 * beginning is enough, so that large ones take no longer.
 */
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/setupcheck.h"
#include "import/dqr.h"
#include "import/system.h"
#include "out/outfile.h"
#include "perf/reader.h"
#include "push/captures.h"
#include "terminal/args.h"
#include "terminal/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHECKED = 4 << 20 /* bytes of a capture's beginning */ };

struct options {
    const char *from, *sysfs, *devicetree, *snapshot, *buffer;
    const char *config, *format, *input, *out;
    struct tl_arg_list images;
    struct tl_code_places places;
    bool check, json;
};

static void warn(void *context, const char *text)
{
    tl_cli_warn(context, "%s", text);
}

/* Keep a finding, with its NUL. */
static void note_finding(void *context, const char *text)
{
    const int rc = tl_buf_add(context, text, strlen(text) + 1);
    (void)rc; /* it is counted in any case */
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int read_beginning(const struct tl_bundle_capture *capture, struct tl_buf *out)
{
    struct tl_bundle_input in;
    int rc = tl_buf_reserve(out, CHECKED);
    if (rc == TL_OK)
        rc = tl_bundle_open(&in, capture);
    if (rc < 0)
        return rc;
    for (ssize_t got = 1; got > 0 && out->n < CHECKED;) {
        got = tl_bundle_next(&in, out->p + out->n, CHECKED - out->n);
        out->n += got > 0 ? (size_t)got : 0;
        rc = got < 0 ? TL_IO : rc;
    }
    tl_bundle_close(&in);
    return rc;
}

/* The exit status; `findings` receives the texts, each with its NUL. */
static int check_capture(struct tl_bundle_capture *capture, struct tl_buf *findings)
{
    struct tl_buf bytes = {0};
    int found = read_beginning(capture, &bytes);
    if (found == TL_OK)
        found = tl_setup_check(&capture->setup, (struct tl_bytes){bytes.p, bytes.n}, note_finding,
                               findings);
    tl_buf_fini(&bytes);
    if (found < 0)
        tl_cli_warn(capture->pieces[0].path, "cannot be read: %s", tl_err_name(found));
    return found ? TL_CLI_BAD : TL_CLI_DONE;
}

static void print_findings(const struct tl_bundle_capture *capture, const struct tl_buf *findings,
                           bool alone)
{
    if (!alone)
        printf("# buffer %s\n", capture->name);
    for (size_t at = 0; at < findings->n;) {
        const char *const text = (const char *)findings->p + at;
        puts(text);
        at += strlen(text) + 1;
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The configuration may be written anywhere: files by their whole paths. */
static void find_images(struct tl_setup *setup)
{
    for (size_t i = 0; i < setup->n_images; i++) {
        char *const path = realpath(setup->images[i].file, NULL);
        if (path) {
            free(setup->images[i].file);
            setup->images[i].file = path;
        }
    }
}

static int write_text(const struct tl_buf *text, const char *path)
{
    struct tl_outfile out = {0};
    const int status = tl_outfile_open(&out, path);
    if (status != TL_ARGS_GO)
        return status;
    const bool whole = tl_write_all(out.file, text->p, text->n);
    return tl_outfile_close(&out, whole ? TL_CLI_DONE : TL_CLI_BAD);
}

/* An object for a capture, in a line. `text` ends with a NUL. */
static void print_json(const struct options *o, const struct tl_bundle_capture *capture,
                       const struct tl_buf *findings, const struct tl_buf *text)
{
    fputs("{\"buffer\":", stdout);
    tl_print_json_text(capture->name);
    if (o->check)
        fputs(",\"findings\":[", stdout);
    for (size_t at = 0; at < findings->n;) {
        const char *const finding = (const char *)findings->p + at;
        fputs(at ? "," : "", stdout);
        tl_print_json_text(finding);
        at += strlen(finding) + 1;
    }
    fputs(o->check ? "],\"setup\":" : ",\"setup\":", stdout);
    tl_print_json_text((const char *)text->p);
    puts("}");
}

/* Report on a capture whose setup is complete, and write it. */
static int report(const struct options *o, struct tl_bundle_capture *capture, bool alone)
{
    struct tl_buf findings = {0}, text = {0};
    int status = o->check ? check_capture(capture, &findings) : TL_CLI_DONE;
    find_images(&capture->setup);
    int rc = tl_setup_write(&capture->setup, &text);
    if (o->check && !o->json)
        print_findings(capture, &findings, alone);
    if (o->check && !o->json && status == TL_CLI_DONE)
        printf("%s: nothing in its packets contradicts the configuration\n",
               capture->pieces[0].path);
    if (rc == TL_OK && (o->out || (!o->check && !o->json))) {
        const int written = write_text(&text, o->out);
        status = written > status ? written : status;
    }
    if (rc == TL_OK && o->json && (rc = tl_buf_add(&text, "", 1)) == TL_OK)
        print_json(o, capture, &findings, &text);
    if (rc < 0)
        tl_cli_warn(NULL, "out of memory");
    tl_buf_fini(&findings);
    tl_buf_fini(&text);
    return rc < 0 ? TL_CLI_BAD : status;
}

static int each(void *context, struct tl_bundle_capture *capture, bool alone)
{
    const struct options *const o = context;
    if ((o->out || (!o->check && !o->json)) && !alone && !o->buffer) {
        tl_cli_warn(o->snapshot, "it has buffer %s: choose one by --buffer", capture->name);
        return TL_CLI_USAGE;
    }
    return report(o, capture, alone || o->buffer);
}

/* ---- where it comes from --------------------------------------------------------------------- */

static int from_system(const struct options *o)
{
    struct tl_bundle_capture capture = {0};
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    const char *const where = o->sysfs ? o->sysfs : o->devicetree;
    tl_setup_init(&capture.setup);
    int rc = o->format ? tl_setup_format(&capture.setup, o->format, &fail) : TL_OK;
    if (rc < 0)
        return tl_cli_usage("setup", "%s", fail.text);
    rc = (o->sysfs ? tl_sysfs_read : tl_devicetree_read)(&capture.setup, where, warn,
                                                         (void *)(uintptr_t)where, &fail);
    for (size_t i = 0; rc == TL_OK && i < o->images.n; i++)
        rc = tl_setup_add_image(&capture.setup, o->images.v[i], &fail);
    if (rc == TL_OK && o->input)
        rc = tl_bundle_add(&capture, o->input, 0, UINT64_MAX);
    const int status =
        rc < 0 ? tl_cli_fail(where, &fail) : each((void *)(uintptr_t)o, &capture, true);
    tl_bundle_capture_fini(&capture);
    return status;
}

static int from_capture(const struct options *o)
{
    const struct tl_cli_captures what = {.command = "setup",
                                         .request = {.snapshot = o->snapshot,
                                                     .input = o->input,
                                                     .format = o->format,
                                                     .config = o->config,
                                                     .images = o->images.v,
                                                     .n_images = o->images.n,
                                                     .places = o->places},
                                         .buffer = o->buffer,
                                         .stop = TL_CLI_USAGE};
    return tl_cli_captures(&what, each, (void *)(uintptr_t)o);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* What an input is: by its first bytes, or by what is in its folder. */
static const char *kind_of(const char *input)
{
    char path[4096];
    uint8_t bytes[8] = {0};
    struct stat st;
    snprintf(path, sizeof path, "%s/snapshot.ini", input);
    if (stat(path, &st) == 0)
        return "snapshot";
    snprintf(path, sizeof path, "%s/data", input);
    if (stat(input, &st) == 0 && S_ISDIR(st.st_mode))
        return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? "perf" : "sysfs";
    FILE *const f = fopen(input, "rb");
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    if (tl_perf_is(bytes, n))
        return "perf";
    if (tl_dqr_is(input))
        return "dqr";
    return n == 8 && memcmp(bytes, "\xd0\x0d\xfe\xed", 4) == 0 ? "dt" : "sysfs";
}

/* The option that `--from KIND INPUT` stands for. */
static int take_from(struct options *o)
{
    if (o->sysfs || o->devicetree || o->snapshot || o->config)
        return o->from ? tl_cli_usage("setup", "--from says what INPUT is: not with --sysfs, --dt, "
                                               "--snapshot, --config")
                       : TL_ARGS_GO;
    const char *const from = o->from ? o->from : o->input ? kind_of(o->input) : "sysfs";
    if (strcmp(from, "perf") == 0 && o->input) {
        o->format = o->format ? o->format : "perf";
        return TL_ARGS_GO;
    }
    if (strcmp(from, "dqr") == 0 && o->input)
        return TL_ARGS_GO;
    const char **const to = strcmp(from, "sysfs") == 0      ? &o->sysfs
                            : strcmp(from, "dt") == 0       ? &o->devicetree
                            : strcmp(from, "snapshot") == 0 ? &o->snapshot
                                                            : NULL;
    if (!to)
        return tl_cli_usage("setup",
                            "--from %s: it is sysfs, dt, perf INPUT, dqr INPUT or snapshot", from);
    *to = o->input ? o->input : to == &o->sysfs ? TL_SYSFS_CORESIGHT : NULL;
    o->input = NULL;
    return *to ? TL_ARGS_GO : tl_cli_usage("setup", "--from %s: give an INPUT", from);
}

static int check_options(const struct options *o)
{
    const int sources =
        (o->sysfs != NULL) + (o->devicetree != NULL) + (o->snapshot != NULL) + (o->config != NULL);
    const bool separate = o->sysfs || o->devicetree || o->config;
    if (sources > 1)
        return tl_cli_usage("setup", "say one of --sysfs, --dt, --snapshot, --config");
    if (o->check && separate && !o->input)
        return tl_cli_usage("setup", "--check: give the capture as INPUT");
    if (!o->check && separate && o->input)
        return tl_cli_usage("setup", "an INPUT besides is a capture to compare with: --check");
    if (o->config && !o->check)
        return tl_cli_usage("setup", "--config is compared with a capture: --check INPUT");
    if (o->buffer && !o->snapshot)
        return tl_cli_usage("setup", "--buffer goes with --snapshot");
    return TL_ARGS_GO;
}

int tl_cmd_setup(int argc, char **argv)
{
    struct options o = {0};
    int first;
    const struct tl_option args[] = {
        {"from", 0, TL_ARG_TEXT, &o.from, "sysfs|dt|perf|dqr|snapshot",
         "what INPUT is (default: recognised; without INPUT the sysfs of this machine)"},
        {"sysfs", 0, TL_ARG_TEXT, &o.sysfs, "DIR",
         "the CoreSight devices of a machine with Linux: /sys/bus/coresight/devices or a copy of "
         "it by 'cp -rL', or a file with what 'grep -r . DIR' printed of it"},
        {"dt", 0, TL_ARG_TEXT, &o.devicetree, "FILE", "a device tree: .dtb, /sys/firmware/fdt"},
        {"snapshot", 0, TL_ARG_TEXT, &o.snapshot, "DIR", "an Arm trace snapshot"},
        {"buffer", 0, TL_ARG_TEXT, &o.buffer, "NAME", "the buffer of a snapshot"},
        {"check", 0, TL_ARG_FLAG, &o.check, NULL,
         "compare the configuration with the capture's bytes: print what its packets contradict, "
         "with status 1 if there is anything; with -o also write it corrected"},
        TL_OUTPUT_ARGS(o.out, "FILE", "where to write the configuration (default: print it)"),
        {"json", 0, TL_ARG_FLAG, &o.json, NULL,
         "an object for each buffer, one per line: buffer, findings of --check, setup (the text)"},
        {.help = "of the configuration and the capture:"},
        TL_CAPTURE_ARGS(o.format, o.config, o.images, o.places),
        {0},
    };
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    o.input = first < argc ? argv[first++] : NULL;
    if (first < argc)
        return tl_cli_one_input("setup", argv[first]);
    status = take_from(&o);
    if (status == TL_ARGS_GO)
        status = check_options(&o);
    if (status != TL_ARGS_GO)
        return status;
    return o.sysfs || o.devicetree ? from_system(&o) : from_capture(&o);
}
