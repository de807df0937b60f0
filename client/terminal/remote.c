/* SPDX-License-Identifier: MIT */
/*
 * Connects to a server by options and environment, and turns its errors into exit statuses. Options
 * that choose whom to trust are taken as a group, since a mix of both sources would trust another
 * server than either.
 */
#include "terminal/remote.h"

#include "base/spelling.h"
#include "terminal/plain.h"
#include "terminal/progress.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The token is the first line of its file. A file that is not there may be a token: its name is not
 * printed. */
static int read_token(const char *path, const char *from, char *out, size_t cap)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        tl_cli_warn(from, "it names the file that contains the token, which cannot be read: %s",
                    strerror(errno));
        return TL_CLI_USAGE;
    }
    const bool got = fgets(out, (int)cap, file);
    fclose(file);
    if (got)
        out[strcspn(out, " \t\r\n")] = 0;
    if (got && out[0])
        return TL_ARGS_GO;
    tl_cli_warn(path, "no token in its first line");
    return TL_CLI_USAGE;
}

/* Use the environment if the command line has no value; empty counts as unset. */
static const char *or_environment(const char *given, const char *name)
{
    const char *const text = given ? given : getenv(name);
    return text && *text ? text : NULL;
}

/* If one of these is on the command line, all of them are taken from it. */
static void choose_trust(const struct tl_remote *remote, struct tracelake_options *options)
{
    const bool given = remote->cafile || remote->fingerprint || remote->insecure;
    options->insecure = remote->insecure;
    options->cafile = given ? remote->cafile : or_environment(NULL, "TRACELAKE_CAFILE");
    options->fingerprint =
        given ? remote->fingerprint : or_environment(NULL, "TRACELAKE_FINGERPRINT");
    options->certfile = or_environment(remote->cert, "TRACELAKE_CERT");
    options->keyfile = remote->cert ? remote->key : or_environment(remote->key, "TRACELAKE_KEY");
}

const char *tl_remote_url(const struct tl_remote *remote)
{
    const char *const url = or_environment(remote->url, "TRACELAKE_SERVER");
    return url ? url : "http://127.0.0.1:7070";
}

int tl_remote_try(struct tracelake **out, const struct tl_remote *remote,
                  struct tracelake_error *error)
{
    const char *token = or_environment(remote->token, "TRACELAKE_TOKEN");
    char secret[4096];
    struct tracelake_options options = {
        .timeout_ms = remote->timeout > 1000000 ? -1 : (int)remote->timeout * 1000,
    };
    if (remote->patience_ms)
        options.timeout_ms = options.connect_ms = remote->patience_ms;
    choose_trust(remote, &options);
    options.mangled = remote->mangled;
    tl_spelling_set_mangled(remote->mangled); /* for names from files given here */
    if (token) {
        const int status =
            read_token(token, remote->token ? "--token" : "TRACELAKE_TOKEN", secret, sizeof secret);
        if (status != TL_ARGS_GO)
            return status;
        options.token = secret;
    }
    const int result = tracelake_connect(out, tl_remote_url(remote), &options, error);
    if (result == TRACELAKE_UNREACHABLE || result == TRACELAKE_TIMEOUT)
        return TL_REMOTE_AWAY;
    if (result < 0)
        return remote->patience_ms ? TL_CLI_REFUSED : tl_remote_fail(NULL, error);
    return TL_ARGS_GO;
}

int tl_remote_connect(struct tracelake **out, const struct tl_remote *remote)
{
    struct tracelake_error error;
    const int status = tl_remote_try(out, remote, &error);
    return status == TL_REMOTE_AWAY ? tl_remote_fail(NULL, &error) : status;
}

int tl_remote_each_trace(int argc, char **argv, const struct tl_option *args,
                         const struct tl_remote *remote,
                         int (*each)(void *context, struct tracelake *lake, const char *trace),
                         void *context)
{
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && first == argc)
        status = tl_cli_usage(argv[0], "give at least one TRACE");
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, remote);
    if (status != TL_ARGS_GO)
        return status;
    status = TL_CLI_DONE;
    for (int i = first; i < argc; i++) {
        const int one = each(context, lake, argv[i]);
        status = one > status ? one : status;
    }
    tracelake_close(lake);
    return status;
}

bool tl_remote_again(int result, unsigned *tries, unsigned most)
{
    if ((result != TRACELAKE_UNREACHABLE && result != TRACELAKE_NOSPACE) || *tries >= most ||
        tl_remote_signalled())
        return false;
    poll(NULL, 0, *tries < 7 ? 10 << *tries : 1000);
    ++*tries;
    return true;
}

/* tracelake_wait_sealed() with progress. */
static int show_decode(struct tracelake *lake, const char *trace, struct tracelake_trace **out,
                       struct tracelake_error *error)
{
    enum { EVERY_MS = 100 };
    char what[96];
    int result;
    snprintf(what, sizeof what, "%.64s: decoded", trace);
    tl_progress_begin(what, "B");
    while ((result = tracelake_get_trace(lake, trace, out, error)) == TRACELAKE_OK &&
           (*out)->state == TRACELAKE_DECODING) {
        tl_progress_step((*out)->decoded_bytes, (*out)->raw_bytes, NULL);
        tracelake_trace_free(*out);
        poll(NULL, 0, EVERY_MS);
    }
    tl_progress_end();
    return result;
}

int tl_remote_decoded(struct tracelake *lake, const char *trace, bool wait,
                      struct tracelake_trace **out, struct tracelake_error *error)
{
    unsigned tries = 0;
    int result;
    do
        result = !wait                  ? tracelake_get_trace(lake, trace, out, error)
                 : tl_progress_wanted() ? show_decode(lake, trace, out, error)
                                        : tracelake_wait_sealed(lake, trace, out, error);
    while (tl_remote_again(result, &tries, TL_REMOTE_TRIES));
    return result;
}

int tl_remote_fail(const char *where, const struct tracelake_error *error)
{
    const size_t n = where ? strlen(where) : 0;
    /* Messages about reading a file already contain its name. */
    const bool named = n > 0 && strncmp(error->text, where, n) == 0 && error->text[n] == ':';
    tl_cli_warn(named ? NULL : where, "%s", error->text);
    switch (error->code) {
    case TRACELAKE_USAGE:
        return TL_CLI_USAGE;
    case TRACELAKE_BAD:
    case TRACELAKE_NOMEM:
        return TL_CLI_BAD;
    case TRACELAKE_IO:
        return error->grpc_status ? TL_CLI_REFUSED : TL_CLI_BAD;
    default:
        return TL_CLI_REFUSED;
    }
}

int tl_remote_fail_query(const char *where, const struct tracelake_error *error)
{
    enum { INVALID_ARGUMENT = 3 };
    const int status = tl_remote_fail(where, error);
    return error->grpc_status == INVALID_ARGUMENT ? TL_CLI_USAGE : status;
}

/* ---- signals ------------------------------------------------------------------------------ */

static struct tracelake *_Atomic interrupted_lake;
static atomic_bool signalled;

static void on_signal(int number)
{
    struct tracelake *lake = atomic_load(&interrupted_lake);
    atomic_store(&signalled, true);
    if (lake)
        tracelake_interrupt(lake);
}

static void handle(void (*handler)(int number), struct tracelake *lake)
{
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESETHAND};
    atomic_store(&interrupted_lake, lake);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void tl_remote_on_signal(struct tracelake *lake)
{
    handle(on_signal, lake);
}

void tl_remote_on_default(void)
{
    handle(SIG_DFL, NULL);
}

void tl_remote_alarm(unsigned seconds)
{
    const struct sigaction action = {.sa_handler = seconds ? on_signal : SIG_DFL};
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

bool tl_remote_signalled(void)
{
    return atomic_load(&signalled);
}

/* ---- names -------------------------------------------------------------------------------- */

int tl_remote_name(const char *command, const char *text, struct tl_remote_name *out)
{
    const char *slash = strchr(text, '/');
    const size_t n = slash ? (size_t)(slash - text) : strlen(text);
    *out = (struct tl_remote_name){0};
    if (n == 0 || n >= sizeof out->trace ||
        (slash && (!slash[1] || strlen(slash + 1) >= sizeof out->stream)))
        return tl_cli_usage(command, "'%s' is not TRACE/STREAM", text);
    if (strstr(text, "://"))
        return tl_cli_usage(command, "'%.80s' is an address: give TRACE/STREAM, and --server URL",
                            text);
    memcpy(out->trace, text, n);
    if (slash)
        strcpy(out->stream, slash + 1);
    return TL_ARGS_GO;
}

int tl_remote_one_stream(struct tracelake *lake, struct tl_remote_name *name)
{
    struct tracelake_trace *trace;
    struct tracelake_error error;
    if (name->stream[0])
        return TL_ARGS_GO;
    if (tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
        return tl_remote_fail(name->trace, &error);
    int status = TL_ARGS_GO;
    if (trace->n_streams == 1) {
        snprintf(name->stream, sizeof name->stream, "%s", trace->streams[0].name);
    } else if (trace->n_streams == 0) {
        tl_cli_warn(name->trace, "it has no stream yet");
        status = TL_CLI_REFUSED;
    } else {
        status = TL_CLI_USAGE;
        for (size_t i = 0; i < trace->n_streams; i++)
            tl_cli_warn(name->trace, "it has several streams; say %s/%s", name->trace,
                        trace->streams[i].name);
    }
    tracelake_trace_free(trace);
    return status;
}

void tl_print_json_text(const char *text)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        const int n = tl_control_at((const char *)p);
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (n == 3)
            printf("\\u%04x", (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u));
        else if (n) /* of two bytes the second is the code point */
            printf("\\u%04x", p[n - 1]);
        else
            putchar(*p);
        p += n > 1 ? n - 1 : 0;
    }
    putchar('"');
}

void tl_print_json_number(uint64_t value)
{
    const char *const quote = value < UINT64_C(1) << 53 ? "" : "\"";
    printf("%s%" PRIu64 "%s", quote, value, quote);
}

void tl_print_json_member(const char *name, uint64_t value)
{
    printf(",\"%s\":", name);
    tl_print_json_number(value);
}

bool tl_remote_mode(struct tracelake *lake, const struct tl_remote_name *name, uint64_t at,
                    char mode[static TL_REMOTE_MODE])
{
    struct tracelake_error error;
    char *json;
    if (tracelake_disassembly(lake, name->trace, name->stream, at, 1, &json, &error) < 0)
        return false;
    cJSON *const rows = cJSON_Parse(json);
    const char *const reported =
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), "mode"));
    snprintf(mode, TL_REMOTE_MODE, "%s", reported ? reported : "");
    cJSON_Delete(rows);
    free(json);
    return mode[0] != '\0';
}
