/* SPDX-License-Identifier: MIT */
/* Shared by the commands that talk to a server: its address, its errors, stream names. */
#ifndef TL_TERMINAL_REMOTE_H
#define TL_TERMINAL_REMOTE_H

#include "terminal/args.h"
#include "terminal/say.h"
#include "tracelake.h"

struct tl_remote {
    const char *url;
    const char *token; /* path of a file */
    const char *cafile;
    const char *fingerprint;
    const char *cert;
    const char *key;
    bool insecure;
    uint64_t timeout; /* s, 0: the library's default */
    bool mangled;     /* functions are named as in their files */
    int patience_ms;  /* replaces it, and failures are not reported; 0: not used */
};

/* The options that fill a struct tl_remote, for a command's argument table. */
#define TL_REMOTE_ARGS(r)                                                                          \
    {.help = "server:"},                                                                           \
        {"server",                                                                                 \
         0,                                                                                        \
         TL_ARG_TEXT,                                                                              \
         &(r).url,                                                                                 \
         "URL",                                                                                    \
         "http://HOST:PORT or https://HOST:PORT (default: $TRACELAKE_SERVER, or "                  \
         "http://127.0.0.1:7070); URL,URL,…: several servers of one lake, tried in turn"},         \
        {"token",    0,      TL_ARG_TEXT,                                                          \
         &(r).token, "FILE", "file with the access token (default: $TRACELAKE_TOKEN)"},            \
        {"cafile",    0,      TL_ARG_TEXT,                                                         \
         &(r).cafile, "FILE", "certificates to trust with https (default: $TRACELAKE_CAFILE)"},    \
        {"fingerprint",                                                                            \
         0,                                                                                        \
         TL_ARG_TEXT,                                                                              \
         &(r).fingerprint,                                                                         \
         "HEX",                                                                                    \
         "SHA-256 of the server's certificate, instead of --cafile (default: "                     \
         "$TRACELAKE_FINGERPRINT); HEX,HEX,…: one of these"},                                      \
        {"cert",    0,      TL_ARG_TEXT,                                                           \
         &(r).cert, "FILE", "client certificate (default: $TRACELAKE_CERT)"},                      \
        {"key",    0,      TL_ARG_TEXT,                                                            \
         &(r).key, "FILE", "its key (default: $TRACELAKE_KEY, or in the same file)"},              \
        {"insecure", 0, TL_ARG_FLAG, &(r).insecure, NULL, "accept any certificate"},               \
    {                                                                                              \
        "timeout", 0, TL_ARG_U64, &(r).timeout, "SECONDS",                                         \
            "give up after this long without progress (default 60)"                                \
    }

/* The option of commands that name functions. */
#define TL_NAMES_ARG(r)                                                                            \
    {                                                                                              \
        "mangled", 0, TL_ARG_FLAG, &(r).mangled, NULL,                                             \
            "name C++ and Rust functions as in their files, not demangled"                         \
    }

/* The address that is connected to, as given or by default. */
const char *tl_remote_url(const struct tl_remote *remote);
/* Connect, or report why not: TL_ARGS_GO, or the exit status to return. */
int tl_remote_connect(struct tracelake **out, const struct tl_remote *remote);
/* Connect, but return TL_REMOTE_AWAY with `error` filled if the server cannot be reached. Otherwise
 * TL_ARGS_GO, or the exit status of a reported error. */
#define TL_REMOTE_AWAY (-2)
int tl_remote_try(struct tracelake **out, const struct tl_remote *remote,
                  struct tracelake_error *error);

/*
 * Run a command on each of several traces, on one connection: parse the arguments, which include
 * `remote`, and call `each`, which returns an exit status, for every TRACE. Returns the worst.
 */
int tl_remote_each_trace(int argc, char **argv, const struct tl_option *args,
                         const struct tl_remote *remote,
                         int (*each)(void *context, struct tracelake *lake, const char *trace),
                         void *context);

/*
 * Print `tracelake: WHERE: TEXT` and return the matching exit status: USAGE for invalid arguments,
 * BAD if the input or the local system is at fault, otherwise REFUSED. `where` may be NULL.
 */
int tl_remote_fail(const char *where, const struct tracelake_error *error);
/* The same for a query: an argument that the server rejects as invalid gives USAGE. */
int tl_remote_fail_query(const char *where, const struct tracelake_error *error);

/*
 * Decide whether a repeatable call is to be made again after this result. Yes if the connection
 * broke or the server is temporarily full: pauses, increasing to one second, up to `most` times.
 * `*tries` begins at 0.
 */
#define TL_REMOTE_TRIES 600 /* ten minutes */
bool tl_remote_again(int result, unsigned *tries, unsigned most);

/*
 * Get a trace once it is decoded, or, if not `wait`, as it is now; shows progress on a terminal. As
 * tracelake_wait_sealed(); waits for a broken connection to return.
 */
TL_MUST_USE int tl_remote_decoded(struct tracelake *lake, const char *trace, bool wait,
                                  struct tracelake_trace **out, struct tracelake_error *error);

/* Let SIGINT and SIGTERM interrupt the calls on this connection (NULL: none yet). A second signal
 * ends the program at once. */
void tl_remote_on_signal(struct tracelake *lake);
/* Restore the default: signals end the program. */
void tl_remote_on_default(void);
bool tl_remote_signalled(void);
/* Interrupt the calls in `seconds`, as a signal would; 0: cancel the alarm. */
void tl_remote_alarm(unsigned seconds);

/* Split "TRACE" or "TRACE/STREAM"; `stream` is "" if there is none. USAGE is reported. */
struct tl_remote_name {
    char trace[128];
    char stream[64];
};
int tl_remote_name(const char *command, const char *text, struct tl_remote_name *out);

/*
 * Set `name`'s stream to the trace's only one if it names none. TL_ARGS_GO, or the exit status if
 * there are several or none, which is reported.
 */
int tl_remote_one_stream(struct tracelake *lake, struct tl_remote_name *name);

/* Print a text as a JSON string, with quotes. */
void tl_print_json_text(const char *text);
/* Print a whole number as JSON; from 2^53 on as a string (docs/http.md). */
void tl_print_json_number(uint64_t value);
/* Print ,"name":value */
void tl_print_json_member(const char *name, uint64_t value);

#define TL_REMOTE_MODE 64

/* Mode current at instruction `at` of a stream, e.g. "el1.ns.a64", as for tl_annotate_mode().
 * Returns false if there is no flow, or the server cannot be reached. */
bool tl_remote_mode(struct tracelake *lake, const struct tl_remote_name *name, uint64_t at,
                    char mode[static TL_REMOTE_MODE]);

#endif
