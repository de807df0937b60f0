/* SPDX-License-Identifier: MIT */
/*
 * `tracelake cp`: copies captures from one server to another, with setups, images and labels. What
 * the target has already is not sent again, so that the same command goes on after an interruption.
 */
#include "cli/cli.h"
#include "cli/setupimages.h"
#include "out/rows_out.h"
#include "terminal/plain.h"
#include "terminal/remote.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_TEXT 72 /* "sha256:<64 hex>" and its NUL */

struct copy {
    struct tracelake *from, *to;
    const char *as; /* new name, NULL: unchanged */
    bool json;
    const struct tracelake_trace *trace;
};

static int copy_image(const struct copy *c, const char *name)
{
    struct tracelake_error error;
    struct tracelake_image image;
    void *data;
    size_t n;
    int r = tracelake_get_image(c->from, name, &data, &n, &image, &error);
    if (r == TRACELAKE_NOTFOUND) { /* the copy is decoded like the original */
        tl_cli_warn(c->trace->id, "%s", error.text);
        return TL_CLI_DONE;
    }
    if (r < 0)
        return tl_remote_fail_query(c->trace->id, &error);
    r = tracelake_put_image(c->to, image.name, data, n, NULL, &error);
    free(data);
    return r < 0 ? tl_remote_fail_query(image.name, &error) : TL_CLI_DONE;
}

static int copy_images(const struct copy *c, const char *setup)
{
    struct tl_setup_images images;
    int status = TL_CLI_DONE;
    if (tl_setup_images_init(&images, setup) < 0) {
        tl_cli_warn(c->trace->id, "out of memory");
        status = TL_CLI_BAD;
    }
    for (size_t i = 0; i < images.n && status == TL_CLI_DONE; i++)
        status = copy_image(c, images.names[i]);
    tl_setup_images_fini(&images);
    return status;
}

/* Hash the first `n` bytes of a trace. */
static int sum_begin(struct tracelake *lake, const char *trace, uint64_t n, EVP_MD_CTX *sum)
{
    struct tracelake_error error;
    struct tracelake_raw *raw;
    const void *p;
    size_t size;
    int r = tracelake_raw_open(&raw, lake, trace, 0, n, &error);
    if (r < 0)
        return tl_remote_fail_query(trace, &error);
    while ((r = tracelake_raw_next(raw, &p, &size, &error)) == TRACELAKE_OK)
        EVP_DigestUpdate(sum, p, size);
    tracelake_raw_close(raw);
    return r == TRACELAKE_EOF ? TL_CLI_DONE : tl_remote_fail_query(trace, &error);
}

/* The hash so far, as text; hashing can continue. */
static void format_sum(const EVP_MD_CTX *sum, char text[static HASH_TEXT])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    EVP_MD_CTX *const copy = EVP_MD_CTX_new();
    if (copy && EVP_MD_CTX_copy_ex(copy, sum))
        EVP_DigestFinal_ex(copy, digest, &n);
    EVP_MD_CTX_free(copy);
    strcpy(text, "sha256:");
    for (unsigned i = 0; i < n; i++)
        snprintf(text + 7 + 2 * i, 3, "%02x", digest[i]);
}

/* Are the existing `n` bytes a prefix of the source? Hashes them into `sum`. */
static int check_begin(const struct copy *c, const char *to, uint64_t n, EVP_MD_CTX *sum)
{
    char here[HASH_TEXT], there[HASH_TEXT];
    if (n == 0)
        return TL_CLI_DONE;
    EVP_MD_CTX *const other = EVP_MD_CTX_new();
    int status = TL_CLI_BAD;
    if (other && EVP_DigestInit_ex(other, EVP_sha256(), NULL))
        status = sum_begin(c->from, c->trace->id, n, sum);
    else
        tl_cli_warn(to, "out of memory");
    if (status == TL_CLI_DONE)
        status = sum_begin(c->to, to, n, other);
    if (status == TL_CLI_DONE) {
        format_sum(sum, here);
        format_sum(other, there);
        if (strcmp(here, there) != 0) {
            tl_cli_warn(c->trace->id,
                        "another capture of the name %s is there, of %" PRIu64
                        " bytes; --as NAME copies it beside that",
                        to, n);
            status = TL_CLI_BAD;
        }
    }
    EVP_MD_CTX_free(other);
    return status;
}

/* Copy and hash the raw bytes from the push's offset on. */
static int copy_bytes(const struct copy *c, struct tracelake_push *push, EVP_MD_CTX *sum)
{
    struct tracelake_error error;
    struct tracelake_raw *raw;
    const void *p;
    size_t n;
    uint64_t copied = tracelake_push_offset(push);
    if (tracelake_push_offset(push) == c->trace->raw_bytes)
        return TL_CLI_DONE;
    if (tracelake_raw_open(&raw, c->from, c->trace->id, tracelake_push_offset(push),
                           c->trace->raw_bytes, &error) < 0)
        return tl_remote_fail_query(c->trace->id, &error);
    int r, written = TRACELAKE_OK;
    while (written == TRACELAKE_OK &&
           (r = tracelake_raw_next(raw, &p, &n, &error)) == TRACELAKE_OK) {
        uint64_t before, behind;
        if (tracelake_raw_lost(raw, &before, &behind))
            tl_cli_warn(c->trace->id,
                        "the rig's connection was lost in front of byte %" PRIu64
                        ": the copy does not tell that gap (`tracelake raw` and `store copy` keep "
                        "it)",
                        copied);
        copied += n;
        EVP_DigestUpdate(sum, p, n);
        written = tracelake_push_write(push, p, n, &error);
    }
    tracelake_raw_close(raw);
    return written < 0 || r != TRACELAKE_EOF ? tl_remote_fail_query(c->trace->id, &error)
                                             : TL_CLI_DONE;
}

/* Compare the hash with the one reported by the source server. */
static int compare(const struct copy *c, const EVP_MD_CTX *sum)
{
    char text[HASH_TEXT];
    format_sum(sum, text);
    if (c->trace->content[0] && strcmp(text, c->trace->content) != 0) {
        tl_cli_warn(c->trace->id, "what was copied is %s, and should be %s", text,
                    c->trace->content);
        return TL_CLI_BAD;
    }
    return TL_CLI_DONE;
}

static int copy_labels(const struct copy *c, const char *to)
{
    struct tracelake_error error;
    if (c->trace->n_labels > 0 &&
        tracelake_set_labels(c->to, to, c->trace->labels, c->trace->n_labels, NULL, &error) < 0)
        return tl_remote_fail_query(to, &error);
    return TL_CLI_DONE;
}

/* The token may permit only pushing. */
static int report_copied(const struct copy *c, const char *to)
{
    struct tracelake_error error;
    struct tracelake_trace *row;
    if (!c->json) {
        printf("%s: %" PRIu64 " bytes\n", to, c->trace->raw_bytes);
        return TL_CLI_DONE;
    }
    const int result = tracelake_get_trace(c->to, to, &row, &error);
    if (result == TRACELAKE_DENIED) {
        tl_row_json_id(to);
        return TL_CLI_DONE;
    }
    if (result < 0)
        return tl_remote_fail_query(to, &error);
    tl_row_json(row);
    tracelake_trace_free(row);
    return TL_CLI_DONE;
}

static int copy_capture(const struct copy *c, const char *setup)
{
    struct tracelake_error error;
    struct tracelake_push *push;
    const struct tracelake_push_options options = {.rig = c->trace->rig,
                                                   .trace = c->as ? c->as : c->trace->id,
                                                   .setup = setup,
                                                   .resume = true};
    EVP_MD_CTX *const sum = EVP_MD_CTX_new();
    if (!sum || !EVP_DigestInit_ex(sum, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(sum);
        tl_cli_warn(c->trace->id, "out of memory");
        return TL_CLI_BAD;
    }
    int status = TL_CLI_DONE;
    if (tracelake_push_open(&push, c->to, &options, &error) < 0) {
        status = tl_remote_fail_query(options.trace, &error);
    } else {
        status = check_begin(c, options.trace, tracelake_push_offset(push), sum);
        if (status == TL_CLI_DONE)
            status = copy_bytes(c, push, sum);
        if (status == TL_CLI_DONE)
            status = compare(c, sum);
        if (status == TL_CLI_DONE && tracelake_push_finish(push, &error) < 0)
            status = tl_remote_fail_query(options.trace, &error);
        tracelake_push_close(push);
    }
    EVP_MD_CTX_free(sum);
    if (status == TL_CLI_DONE)
        status = copy_labels(c, options.trace);
    return status == TL_CLI_DONE ? report_copied(c, options.trace) : status;
}

static int copy_trace(struct copy *c, const char *name)
{
    struct tracelake_error error;
    struct tracelake_trace *trace;
    char *setup = NULL;
    bool complete = false;
    uint64_t durable;
    if (tracelake_get_trace(c->from, name, &trace, &error) < 0)
        return tl_remote_fail_query(name, &error);
    c->trace = trace;
    int status = TL_CLI_DONE;
    if (trace->raw_removed) {
        tl_cli_warn(name,
                    "its raw bytes were removed by retention: it cannot be copied; 'get -o' and "
                    "'push --format stf' copy what was decoded");
        status = TL_CLI_BAD;
    } else if (tracelake_offset(c->from, trace->id, &durable, &complete, &error) < 0 ||
               tracelake_get_setup(c->from, trace->id, &setup, &error) < 0) {
        status = tl_remote_fail_query(name, &error);
    } else if (!complete) {
        tl_cli_warn(name, "it is still being pushed: copy it when it is complete");
        status = TL_CLI_BAD;
    }
    if (status == TL_CLI_DONE)
        status = copy_images(c, setup);
    if (status == TL_CLI_DONE)
        status = copy_capture(c, setup);
    free(setup);
    tracelake_trace_free(trace);
    return status;
}

int tl_cmd_cp(int argc, char **argv)
{
    struct tl_remote remote = {0}, to = {0};
    struct copy c = {0};
    const struct tl_option args[] = {
        {"to", 0, TL_ARG_TEXT, &to.url, "URL", "the destination server"},
        {"to-token", 0, TL_ARG_TEXT, &to.token, "FILE", "as --token, for that server"},
        {"to-cafile", 0, TL_ARG_TEXT, &to.cafile, "FILE", "as --cafile, for that server"},
        {"to-fingerprint", 0, TL_ARG_TEXT, &to.fingerprint, "HEX",
         "as --fingerprint, for that server"},
        {"as", 0, TL_ARG_TEXT, &c.as, "NAME", "the trace's name at the destination"},
        {"json", 0, TL_ARG_FLAG, &c.json, NULL,
         "print each copied trace as in 'ls --json', one per line"},
        TL_REMOTE_ARGS(remote),
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc == first)
        status = tl_cli_usage("cp", "say which trace");
    if (status == TL_ARGS_GO && !to.url)
        status = tl_cli_usage("cp", "where to? --to URL");
    if (status == TL_ARGS_GO && c.as && argc - first != 1)
        status = tl_cli_usage("cp", "--as names one trace");
    to.insecure = remote.insecure;
    to.timeout = remote.timeout;
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&c.from, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = tl_remote_connect(&c.to, &to);
    if (status == TL_ARGS_GO) {
        status = TL_CLI_DONE;
        for (int i = first; i < argc; i++) {
            const int one = copy_trace(&c, argv[i]);
            status = one > status ? one : status;
        }
        tracelake_close(c.to);
    }
    tracelake_close(c.from);
    return status;
}
