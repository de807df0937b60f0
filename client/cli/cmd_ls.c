/* SPDX-License-Identifier: MIT */
/*
 * Commands for traces as a whole: ls, show, rm, label, redecode, verify. They are one file as they
 * take the same arguments, several names, and report failures of each.
 */
#include "cli/cli.h"
#include "cli/showlink.h"
#include "out/rows_out.h"
#include "push/upload.h"
#include "setup/registers.h"
#include "terminal/progress.h"
#include "terminal/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse, connect, and require at least `min` positional arguments. */
static int begin_command(int argc, char **argv, const struct tl_option *args, int min,
                         const struct tl_remote *remote, int *first, struct tracelake **lake)
{
    const int status = tl_args_parse(argc, argv, args, first);
    if (status != TL_ARGS_GO)
        return status;
    if (argc - *first < min)
        return tl_cli_usage(argv[0], "say which trace");
    return tl_remote_connect(lake, remote);
}

/* Are whole traces named, without a stream? A usage error is reported. */
static int check_traces(const char *command, char **names)
{
    for (; *names; names++)
        if (strchr(*names, '/'))
            return tl_cli_usage(command, "'%.120s': give a trace, without its stream: %.*s", *names,
                                (int)strcspn(*names, "/"), *names);
    return TL_ARGS_GO;
}

static int worse(int a, int b)
{
    return a > b ? a : b;
}

/* ---- ls and show -------------------------------------------------------------------------- */

/* Does it have all the labels, each KEY=VALUE or KEY (with any value)? */
static bool has_labels(const struct tracelake_trace *trace, const struct tl_arg_list *wanted)
{
    for (size_t i = 0; i < wanted->n; i++) {
        const char *const text = wanted->v[i];
        const size_t n = strcspn(text, "=");
        bool found = false;
        for (size_t k = 0; k < trace->n_labels && !found; k++) {
            const struct tracelake_label *const label = &trace->labels[k];
            found = strlen(label->key) == n && strncmp(label->key, text, n) == 0 &&
                    (!text[n] || strcmp(label->value, text + n + 1) == 0);
        }
        if (!found)
            return false;
    }
    return true;
}

static int list_all(struct tracelake *lake, const struct tl_arg_list *labels, bool json)
{
    struct tracelake_list *list;
    struct tracelake_error error;
    if (tracelake_list_traces(lake, &list, &error) < 0)
        return tl_remote_fail(NULL, &error);
    const struct tracelake_trace **rows = calloc(list->n + 1, sizeof *rows);
    if (rows) {
        size_t n = 0;
        for (size_t i = 0; i < list->n; i++)
            if (has_labels(&list->traces[i], labels))
                rows[n++] = &list->traces[i];
        if (json)
            tl_rows_json(rows, n);
        else
            tl_rows_table(rows, n);
    }
    free(rows);
    tracelake_list_free(list);
    return rows ? TL_CLI_DONE : TL_CLI_BAD;
}

static int list_named(struct tracelake *lake, char **names, int n, bool json, bool full)
{
    struct tracelake_trace **rows = calloc((size_t)n + 1, sizeof *rows);
    size_t found = 0;
    int status = rows ? TL_CLI_DONE : TL_CLI_BAD;
    for (int i = 0; rows && i < n; i++) {
        struct tracelake_error error;
        if (tracelake_get_trace(lake, names[i], &rows[found], &error) < 0)
            status = worse(status, tl_remote_fail(names[i], &error));
        else
            found++;
    }
    const struct tracelake_trace *const *view = (const struct tracelake_trace *const *)rows;
    if (found && json)
        tl_rows_json(view, found);
    else if (found && !full)
        tl_rows_table(view, found);
    for (size_t i = 0; i < found; i++) {
        if (full && !json) {
            fputs(i ? "\n" : "", stdout);
            tl_rows_full(rows[i]);
        }
        tracelake_trace_free(rows[i]);
    }
    free(rows);
    return status;
}

int tl_cmd_ls(int argc, char **argv)
{
    struct tl_remote remote = {0};
    bool json = false;
    struct tl_arg_list labels = {0};
    const struct tl_option args[] = {{"json", 0, TL_ARG_FLAG, &json, NULL, "as JSON"},
                                     {"label", 0, TL_ARG_LIST, &labels, "KEY[=VALUE]",
                                      "only traces with this label; repeated: with all of them"},
                                     TL_REMOTE_ARGS(remote),
                                     {0}};
    struct tracelake *lake;
    int first;
    int status = begin_command(argc, argv, args, 0, &remote, &first, &lake);
    if (status != TL_ARGS_GO)
        return status;
    status = check_traces("ls", argv + first);
    if (status == TL_ARGS_GO)
        status = first == argc ? list_all(lake, &labels, json)
                               : list_named(lake, argv + first, argc - first, json, false);
    tracelake_close(lake);
    return status;
}

int tl_cmd_show(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct tl_showlink link = TL_SHOWLINK_INIT;
    bool json = false;
    const struct tl_option args[] = {{"json", 0, TL_ARG_FLAG, &json, NULL, "as JSON"},
                                     TL_SHOWLINK_ARGS(link),
                                     TL_REMOTE_ARGS(remote),
                                     {0}};
    struct tracelake *lake;
    int first;
    int status = begin_command(argc, argv, args, 1, &remote, &first, &lake);
    if (status != TL_ARGS_GO)
        return status;
    status = tl_showlink_check(&link);
    if (status == TL_ARGS_GO && link.given) {
        status = TL_CLI_DONE;
        for (int i = first; i < argc; i++)
            status = worse(status, tl_showlink(&link, lake, tl_remote_url(&remote), argv[i]));
    } else if (status == TL_ARGS_GO) {
        status = check_traces("show", argv + first);
    }
    if (status == TL_ARGS_GO)
        status = list_named(lake, argv + first, argc - first, json, true);
    tracelake_close(lake);
    return status;
}

/* ---- rm, label ---------------------------------------------------------------------------- */

int tl_cmd_rm(int argc, char **argv)
{
    struct tl_remote remote = {0};
    bool json = false;
    const struct tl_option args[] = {{"json", 0, TL_ARG_FLAG, &json, NULL,
                                      "print what was removed as JSON, {\"id\":…}, one per line"},
                                     TL_REMOTE_ARGS(remote),
                                     {0}};
    struct tracelake *lake;
    int first;
    int status = begin_command(argc, argv, args, 1, &remote, &first, &lake);
    if (status != TL_ARGS_GO)
        return status;
    const size_t n = (size_t)(argc - first);
    const char *const *const traces = (const char *const *)argv + first;
    struct tracelake_error *const errors = calloc(n + 1, sizeof *errors);
    if (!errors) {
        tracelake_close(lake);
        tl_cli_warn("rm", "out of memory");
        return TL_CLI_BAD;
    }
    status = TL_CLI_DONE;
    (void)!tracelake_delete_all(lake, traces, n, errors);
    for (size_t i = 0; i < n; i++)
        if (errors[i].code != TRACELAKE_OK)
            status = worse(status, tl_remote_fail(traces[i], &errors[i]));
        else if (json)
            tl_row_json_id(traces[i]);
    free(errors);
    tracelake_close(lake);
    return status;
}

int tl_cmd_label(int argc, char **argv)
{
    struct tl_remote remote = {0};
    bool json = false;
    const struct tl_option args[] = {
        {"json", 0, TL_ARG_FLAG, &json, NULL, "print the trace as in 'ls --json'"},
        TL_REMOTE_ARGS(remote),
        {0}};
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (argc - first < 2)
        return tl_cli_usage("label", "give TRACE and at least one KEY=VALUE");
    const size_t n = (size_t)(argc - first - 1);
    struct tracelake_label *labels = calloc(n, sizeof *labels);
    for (size_t i = 0; labels && i < n && status == TL_ARGS_GO; i++) {
        char *const text = argv[(size_t)first + 1 + i];
        char *const sign = strchr(text, '=');
        if (!sign || sign == text) {
            status = tl_cli_usage("label", "'%s' is not KEY=VALUE", text);
        } else {
            *sign = 0;
            labels[i] = (struct tracelake_label){text, sign + 1};
        }
    }
    struct tracelake *lake;
    if (status == TL_ARGS_GO)
        status = labels ? tl_remote_connect(&lake, &remote) : TL_CLI_BAD;
    if (status == TL_ARGS_GO) {
        struct tracelake_error error;
        struct tracelake_trace *row = NULL;
        const int result = tracelake_set_labels(lake, argv[first], labels, n, &row, &error);
        status = result < 0 ? tl_remote_fail(argv[first], &error) : TL_CLI_DONE;
        if (row && json)
            tl_row_json(row);
        tracelake_trace_free(row);
        tracelake_close(lake);
    }
    free(labels);
    return status;
}

/* ---- redecode ----------------------------------------------------------------------------- */

struct redecode {
    struct tl_setup setup; /* from --config, or only images */
    bool whole;            /* replaces the trace's setup */
    struct tl_buf text;
    bool back;
    bool no_wait;
    bool json;
};

static void warn_register(void *config, const char *text)
{
    tl_cli_warn(config, "%s", text);
}

static int read_redecode(struct redecode *r, const char *config, const struct tl_arg_list *images)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    const char *where = config;
    int result = TL_OK;
    r->whole = config;
    if (config)
        result = tl_setup_read(&r->setup, config, &fail);
    if (config && result == TL_OK)
        tl_setup_check_registers(&r->setup, warn_register, (void *)(uintptr_t)config);
    for (size_t i = 0; result == TL_OK && i < images->n; i++) {
        where = NULL;
        result = tl_setup_add_image(&r->setup, images->v[i], &fail);
    }
    return result < 0 ? tl_cli_fail(where, &fail) : TL_ARGS_GO;
}

/* Start decoding: with a new setup, by binding images, or unchanged. */
static int start_redecode(const struct redecode *r, struct tracelake *lake, const char *trace,
                          struct tracelake_error *error)
{
    if (r->back)
        return tracelake_redecode_back(lake, trace, NULL, error);
    if (r->whole)
        return tracelake_redecode(lake, trace, (const char *)r->text.p, NULL, error);
    if (r->setup.n_images == 0)
        return tracelake_redecode(lake, trace, NULL, NULL, error);
    int result = TRACELAKE_OK;
    for (size_t i = 0; i < r->setup.n_images && result == TRACELAKE_OK; i++) {
        const struct tl_setup_image *const image = &r->setup.images[i];
        const struct tracelake_binding binding = {
            .sha256 = image->file,
            .address = image->address,
            .offset = image->offset,
            .length = image->length == UINT64_MAX ? 0 : image->length,
            .space = image->space == TL_SPACE_ANY ? NULL : tl_space_name(image->space),
            .has_context_id = image->context.has_context_id,
            .context_id = image->context.context_id,
            .has_vmid = image->context.has_vmid,
            .vmid = image->context.vmid,
            .from = image->span.from,
            .until = image->span.until,
        };
        result = tracelake_bind_image(lake, trace, &binding, error);
    }
    return result;
}

static int redecode_one(const struct redecode *r, struct tracelake *lake, const char *trace)
{
    struct tracelake_error error;
    struct tracelake_trace *row = NULL;
    int result = start_redecode(r, lake, trace, &error);
    if (result == TRACELAKE_OK && (!r->no_wait || r->json))
        result = tl_remote_decoded(lake, trace, !r->no_wait, &row, &error);
    if (result < 0)
        return tl_remote_fail(trace, &error);
    int status = TL_CLI_DONE;
    if (r->json)
        tl_row_json(row);
    if (!r->no_wait && row->message[0]) {
        tl_cli_warn(trace, "%s", row->message);
        status = TL_CLI_BAD;
    }
    tracelake_trace_free(row);
    return status;
}

int tl_cmd_redecode(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct redecode r = {0};
    const char *config = NULL;
    struct tl_arg_list images = {0};
    const struct tl_option args[] = {
        {"config", 0, TL_ARG_TEXT, &config, "FILE",
         "decode with this setup instead of the current one"},
        {"image", 0, TL_ARG_LIST, &images, "FILE[@ADDR]", "add a program image to the setup"},
        {"back", 0, TL_ARG_FLAG, &r.back, NULL, "decode with the previous setup"},
        {"no-wait", 0, TL_ARG_FLAG, &r.no_wait, NULL, "do not wait until this is done"},
        {"json", 0, TL_ARG_FLAG, &r.json, NULL, "print each trace as in 'ls --json', one per line"},
        TL_REMOTE_ARGS(remote),
        {0},
    };
    struct tracelake *lake;
    int first;
    int status = begin_command(argc, argv, args, 1, &remote, &first, &lake);
    if (status != TL_ARGS_GO)
        return status;
    tl_setup_init(&r.setup);
    status = read_redecode(&r, config, &images);
    if (status == TL_ARGS_GO)
        status = tl_cli_upload_images(lake, &r.setup, TL_REMOTE_TRIES);
    if (status == TL_ARGS_GO && r.whole &&
        (tl_setup_write(&r.setup, &r.text) < 0 || tl_buf_add(&r.text, "", 1) < 0))
        status = TL_CLI_BAD;
    if (status == TL_ARGS_GO) {
        status = TL_CLI_DONE;
        for (int i = first; i < argc; i++)
            status = worse(status, redecode_one(&r, lake, argv[i]));
    }
    tl_buf_fini(&r.text);
    tl_setup_fini(&r.setup);
    tracelake_close(lake);
    return status;
}

/* ---- verify ------------------------------------------------------------------------------- */

/* {"id":"run7","trace":"run7","findings":1,"report":"…\n"}, one line per trace; `trace` equals
 * `id`, the member that programs expect. */
static void print_findings(const char *trace, uint32_t findings, const char *report)
{
    fputs("{\"id\":", stdout);
    tl_print_json_text(trace);
    fputs(",\"trace\":", stdout);
    tl_print_json_text(trace);
    tl_print_json_member("findings", findings);
    fputs(",\"report\":", stdout);
    tl_print_json_text(report);
    puts("}");
}

static int verify_one(struct tracelake *lake, const char *trace, bool repair, bool json)
{
    const char *const name = *trace ? trace : "all";
    struct tracelake_error error;
    uint32_t findings = 0;
    char *report = NULL;
    tl_progress_wait(name);
    const int result = tracelake_verify(lake, trace, repair, &findings, &report, &error);
    tl_progress_end();
    if (result < 0)
        return tl_remote_fail(name, &error);
    if (json) {
        print_findings(trace, findings, report);
    } else {
        fputs(report, stdout);
        printf("%s: %u finding%s\n", name, findings, findings == 1 ? "" : "s");
    }
    free(report);
    return findings ? TL_CLI_BAD : TL_CLI_DONE;
}

int tl_cmd_verify(int argc, char **argv)
{
    struct tl_remote remote = {0};
    bool repair = false, all = false, json = false;
    const struct tl_option args[] = {
        {"repair", 0, TL_ARG_FLAG, &repair, NULL,
         "rebuild what can be rebuilt from intact data, and report what is lost"},
        {"all", 0, TL_ARG_FLAG, &all, NULL, "all traces, all images, and the catalog"},
        {"json", 0, TL_ARG_FLAG, &json, NULL, "a JSON object for each trace, one per line"},
        TL_REMOTE_ARGS(remote),
        {0}};
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (all == (first < argc))
        return tl_cli_usage("verify", "say which trace, or --all");
    status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = all ? verify_one(lake, "", repair, json) : TL_CLI_DONE;
    for (int i = first; i < argc; i++)
        status = worse(status, verify_one(lake, argv[i], repair, json));
    tracelake_close(lake);
    return status;
}
