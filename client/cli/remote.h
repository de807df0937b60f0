/* SPDX-License-Identifier: MIT */
/* What the commands that talk to a server share: its address, its errors, names of streams. */
#ifndef TL_CLI_REMOTE_H
#define TL_CLI_REMOTE_H

#include "cli/args.h"
#include "cli/cli.h"
#include "tracelake.h"

struct tl_remote {
    const char *url;
    const char *token; /* file */
    const char *cafile;
    const char *fingerprint;
    const char *cert;
    const char *key;
    bool insecure;
    uint64_t timeout; /* s, 0: the library's */
    int patience_ms;  /* instead of it, and nothing is said of failures; 0: not so */
};

/* The options that set them, for a command's table of arguments. */
#define TL_REMOTE_ARGS(r)                                                                          \
    {"server", 0, TL_ARG_TEXT, &(r).url}, {"token", 0, TL_ARG_TEXT, &(r).token},                   \
        {"cafile", 0, TL_ARG_TEXT, &(r).cafile},                                                   \
        {"fingerprint", 0, TL_ARG_TEXT, &(r).fingerprint}, {"cert", 0, TL_ARG_TEXT, &(r).cert},    \
        {"key", 0, TL_ARG_TEXT, &(r).key}, {"insecure", 0, TL_ARG_FLAG, &(r).insecure},            \
    {                                                                                              \
        "timeout", 0, TL_ARG_U64, &(r).timeout                                                     \
    }

/* Connect, or say why not: TL_ARGS_GO, or the exit status to return. */
int tl_remote_connect(struct tracelake **out, const struct tl_remote *remote);
/* The same, and where the server is not there tell by `error`: TL_ARGS_GO, the exit status of what
 * was said, or TL_REMOTE_AWAY. */
#define TL_REMOTE_AWAY (-2)
int tl_remote_try(struct tracelake **out, const struct tl_remote *remote,
                  struct tracelake_error *error);

/*
 * A command for each of several traces, on one connection: parse the arguments, of which `remote`
 * is a part, and call `each`, which returns an exit status, with every TRACE. Returns the worst.
 */
int tl_remote_each_trace(int argc, char **argv, const struct tl_arg *args,
                         const struct tl_remote *remote,
                         int (*each)(void *context, struct tracelake *lake, const char *trace),
                         void *context);

/*
 * Print `tracelake: WHERE: TEXT` and return the exit status that fits: USAGE for arguments that
 * make no sense, BAD where the input or the local system is at fault, else REFUSED. `where` may
 * be NULL.
 */
int tl_remote_fail(const char *where, const struct tracelake_error *error);
/* The same for a question: what the server calls an invalid argument is USAGE. */
int tl_remote_fail_query(const char *where, const struct tracelake_error *error);

/*
 * Shall a call that can be made twice be made again after this result? Where the connection broke,
 * or the server has no room at the moment: yes, behind a pause that grows to a second, `most`
 * times. `*tries` begins at 0.
 */
#define TL_REMOTE_TRIES 600 /* ten minutes */
bool tl_remote_again(int result, unsigned *tries, unsigned most);

/*
 * A trace when it is decoded, or, if not `wait`, as it is: with progress on a terminal. As
 * tracelake_wait_sealed(); a connection that broke is waited for.
 */
TL_MUST_USE int tl_remote_decoded(struct tracelake *lake, const char *trace, bool wait,
                                  struct tracelake_trace **out, struct tracelake_error *error);

/* Let SIGINT and SIGTERM interrupt the calls on this connection (NULL: there is none yet). A second
 * signal ends the program at once. */
void tl_remote_on_signal(struct tracelake *lake);
/* Signals end the program again. */
void tl_remote_on_default(void);
bool tl_remote_signalled(void);
/* Interrupt the calls in so many seconds, as a signal would; 0: not any more. */
void tl_remote_alarm(unsigned seconds);

/* "TRACE" or "TRACE/STREAM" taken apart; `stream` is "" where there is none. USAGE is said. */
struct tl_remote_name {
    char trace[128];
    char stream[64];
};
int tl_remote_name(const char *command, const char *text, struct tl_remote_name *out);

/*
 * Give `name` the trace's only stream where it names none. TL_ARGS_GO, or the exit status where
 * there are several or none, which is said.
 */
int tl_remote_one_stream(struct tracelake *lake, struct tl_remote_name *name);

/* A text as a JSON string, with its quotes. */
void tl_print_json_text(const char *text);
/* A whole number as JSON has it everywhere: from 2^53 on as a text (docs/http.md). */
void tl_print_json_number(uint64_t value);
/* ,"name":value */
void tl_print_json_member(const char *name, uint64_t value);

#define TL_REMOTE_MODE 64

/* What is in force where instruction `at` of a stream is executed, e.g. "el1.ns.a64", as
 * tl_annotate_mode() wants it; false: no flow is there, or the server cannot be asked. */
bool tl_remote_mode(struct tracelake *lake, const struct tl_remote_name *name, uint64_t at,
                    char mode[static TL_REMOTE_MODE]);

#endif
