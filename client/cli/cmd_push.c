/* SPDX-License-Identifier: MIT */
/*
 * `tracelake push`: reads captures and sends them to a server. A capture that the server refuses
 * for its own sake does not keep the others from being sent.
 */
#include "cli/cli.h"
#include "push/captures.h"
#include "push/perf_live.h"
#include "push/sender.h"
#include "terminal/remote.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY = 32 << 20, SPOOL_MAX = 1 << 30 };

struct options {
    struct tl_remote remote;
    struct tl_sender sender;
    const char *format;
    const char *config;
    const char *snapshot;
    const char *buffer;
    const char *rig;
    const char *trace;
    struct tl_arg_list images;
    struct tl_code_places places;
    const struct tl_bundle_request *request;
    char host[64];
    struct tl_perf_live *live; /* of the capture being pushed; or NULL */
    const char *spool;
    char spool_dir[4096];
    int worst; /* of captures after which the others are pushed all the same */
};

/* Make a name valid as part of a trace id: other characters become '-'. */
static void clean_name(char *out, size_t cap, const char *from)
{
    size_t n = 0;
    for (; *from && n + 1 < cap; from++)
        out[n++] = isalnum((unsigned char)*from) || strchr("._-", *from) ? *from : '-';
    out[n] = 0;
}

static const char *host_name(struct options *o)
{
    char name[64] = "rig";
    if (gethostname(name, sizeof name - 1) < 0 || !name[0])
        strcpy(name, "rig");
    clean_name(o->host, sizeof o->host, name);
    return o->host;
}

/* "INPUT.BUFFER": the name of the snapshot's folder or of the file, or --trace, and the buffer's.
 */
static void name_buffer(const struct options *o, const char *buffer, char *out, size_t cap)
{
    const char *const input = o->snapshot ? o->snapshot : o->request->input;
    char *const real = o->trace ? NULL : realpath(input, NULL);
    const char *base = o->trace ? o->trace : real ? real : input;
    const char *slash = strrchr(base, '/');
    char whole[256];
    snprintf(whole, sizeof whole, "%.180s.%.64s", slash && slash[1] ? slash + 1 : base, buffer);
    clean_name(out, cap, whole);
    free(real);
}

static void warn(void *context, const char *text)
{
    tl_cli_warn(context, "%s", text);
}

/* A live capture contains its setup in its own bytes. */
static int begin_live(struct options *o, struct tl_bundle_capture *capture)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    if (capture->setup.container != TL_CONTAINER_PERF || strcmp(capture->pieces[0].path, "-") != 0)
        return TL_ARGS_GO;
    if (o->spool)
        return tl_cli_usage("push", "perf data has to be looked at from its begin on: it cannot go "
                                    "through a spool; record into a file and push that");
    if (tl_perf_live_new(&o->live, capture, o->request, &fail) < 0)
        return tl_cli_fail(NULL, &fail);
    o->sender.tap = tl_perf_live_tap;
    o->sender.tend = tl_perf_live_tend;
    o->sender.context = o->live;
    return TL_ARGS_GO;
}

static int push_one(void *context, struct tl_bundle_capture *capture, bool alone)
{
    struct options *const o = context;
    char trace[64];
    const bool is_buffer = o->snapshot || !alone;
    if (is_buffer)
        name_buffer(o, capture->name, trace, sizeof trace);
    o->sender.rig = o->rig ? o->rig : host_name(o);
    o->sender.trace = is_buffer ? trace : o->trace;
    int status = begin_live(o, capture);
    if (!o->live)
        (void)tl_setup_want_all(&capture->setup);
    if (status == TL_ARGS_GO)
        status = tl_sender_push(&o->sender, capture);
    tl_perf_live_free(o->live);
    o->live = NULL;
    if (!o->sender.differs)
        return status;
    o->worst = status; /* it has nothing to do with the others */
    return TL_CLI_DONE;
}

/* --spool DIR[,SIZE] */
static int read_spool(struct options *o)
{
    const char *const comma = strrchr(o->spool, ',');
    const struct tl_arg size = {"spool", TL_ARG_SIZE, &o->sender.spool_max};
    const int n = comma ? (int)(comma - o->spool) : (int)strlen(o->spool);
    o->sender.spool_max = SPOOL_MAX;
    if (n == 0 || n >= (int)sizeof o->spool_dir || (comma && tl_arg_set(&size, comma + 1)))
        return tl_cli_usage("push", "--spool %s: give DIR,SIZE, e.g. /var/spool/tracelake,10G",
                            o->spool);
    snprintf(o->spool_dir, sizeof o->spool_dir, "%.*s", n, o->spool);
    o->sender.spool = o->spool_dir;
    return TL_ARGS_GO;
}

static int check_arguments(const struct options *o, int n, char **inputs)
{
    if (n > 1)
        return tl_cli_one_input("push", inputs[1]);
    if (n && !o->format && !o->config && !strcmp(inputs[0], "-"))
        return tl_cli_usage("push", "say what standard input holds: --format FMT");
    if (o->sender.shards && strcmp(o->sender.shards, "stored") != 0 &&
        strcmp(o->sender.shards, "virtual") != 0)
        return tl_cli_usage("push", "--shards is stored or virtual");
    if (o->sender.index && strcmp(o->sender.index, "now") != 0 &&
        strcmp(o->sender.index, "behind") != 0 && strcmp(o->sender.index, "auto") != 0)
        return tl_cli_usage("push", "--index is now, behind or auto");
    if (o->sender.quiet && o->sender.json)
        return tl_cli_usage("push", "--quiet prints nothing, --json what became of the capture");
    if (o->spool && o->sender.no_resume)
        return tl_cli_usage("push", "--spool resumes with its contents, which --no-resume forbids");
    return tl_cli_captures_check("push", o->snapshot, o->buffer, o->config, n ? inputs[0] : NULL);
}

int tl_cmd_push(int argc, char **argv)
{
    struct options o = {.sender = {.retry_s = UINT64_MAX, .memory = MEMORY}};
    bool resume = false;
    const struct tl_option args[] = {
        TL_CAPTURE_ARGS(o.format, o.config, o.images, o.places),
        {"snapshot", 0, TL_ARG_TEXT, &o.snapshot, "DIR",
         "push each buffer of an Arm trace snapshot as a separate trace"},
        {"buffer", 0, TL_ARG_TEXT, &o.buffer, "NAME", "only this buffer of a snapshot"},
        {"rig", 0, TL_ARG_TEXT, &o.rig, "NAME", "name of the sender (default: the host name)"},
        {"trace", 0, TL_ARG_TEXT, &o.trace, "ID",
         "ID of the trace (default: assigned by the server)"},
        {"shards", 0, TL_ARG_TEXT, &o.sender.shards, "stored|virtual",
         "what a new trace's shards are, see 'serve' (default: as set there)"},
        {"index", 0, TL_ARG_TEXT, &o.sender.index, "now|behind|auto",
         "when a new trace is indexed, see 'serve' (default: as set there)"},
        {"resume", 0, TL_ARG_FLAG, &resume, NULL, NULL}, /* the default behaviour */
        {"no-resume", 0, TL_ARG_FLAG, &o.sender.no_resume, NULL, "fail if the trace exists"},
        {"rate", 0, TL_ARG_SIZE, &o.sender.rate, "BYTES", "limit in bytes per second (K, M, G)"},
        {"chunk", 0, TL_ARG_SIZE, &o.sender.chunk, "BYTES", "bytes per message (default 256K)"},
        {"retry", 0, TL_ARG_U64, &o.sender.retry_s, "SECONDS",
         "how long to retry when the connection breaks or the server's disk is full (default: "
         "forever; 0: not at all)"},
        {"spool", 0, TL_ARG_TEXT, &o.spool, "DIR,SIZE",
         "keep the input of a pipe or device in DIR, at most SIZE (1G), until the server has it: "
         "push can start without a server, and continues exactly where it ended when it is run "
         "again, even after a crash"},
        {"memory", 0, TL_ARG_SIZE, &o.sender.memory, "SIZE",
         "without --spool: buffer at most this much input (default 32M)"},
        {"goes-on", 0, TL_ARG_FLAG, &o.sender.continues, NULL,
         "when run again: INPUT does not start at the capture's first byte, but after the last "
         "byte that was read before (a FIFO, a device)"},
        {"no-wait", 0, TL_ARG_FLAG, &o.sender.no_wait, NULL,
         "return when the bytes are durable, do not wait for decoding"},
        {"json", 0, TL_ARG_FLAG, &o.sender.json, NULL,
         "print the result as JSON: each trace as in 'ls --json', one per line"},
        {"quiet", 'q', TL_ARG_FLAG, &o.sender.quiet, NULL, "print nothing but errors"},
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO)
        status = check_arguments(&o, argc - first, argv + first);
    if (status != TL_ARGS_GO)
        return status;
    o.sender.remote = &o.remote;
    if (!o.spool) /* otherwise the input is read before the server is contacted */
        status = tl_sender_connect(&o.sender, NULL);
    else
        status = read_spool(&o);
    if (status != TL_ARGS_GO)
        return status;
    tl_remote_on_signal(o.sender.lake);
    const struct tl_cli_captures what = {.command = "push",
                                         .request = {.snapshot = o.snapshot,
                                                     .input = first < argc ? argv[first] : NULL,
                                                     .format = o.format,
                                                     .config = o.config,
                                                     .images = o.images.v,
                                                     .n_images = o.images.n,
                                                     .places = o.places,
                                                     .as_it_comes = true,
                                                     .warn = warn},
                                         .buffer = o.buffer,
                                         .stop = TL_CLI_USAGE}; /* the next would fail, too */
    o.request = &what.request;
    status = tl_cli_captures(&what, push_one, &o);
    tl_remote_on_default();
    tracelake_close(o.sender.lake);
    return status > o.worst ? status : o.worst;
}
