/* SPDX-License-Identifier: MIT */
/*
 * `tracelake view`: files to a picture, with a server of its own. The files are pushed by the
 * command `push` in a second process, so that this one can end all at any time, and clean up.
 */
#include "cli/cli.h"
#include "cli/viewfiles.h"
#include "cli/viewplace.h"
#include "cli/viewserver.h"
#include "push/captures.h"
#include "terminal/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES_MAX = 256, DECODED_S = 1 };

struct options {
    const char *format, *config, *keep, *listen;
    struct tl_arg_list images;
    struct tl_code_places places;
    bool no_browser;
    struct tl_view_file files[FILES_MAX];
    size_t n;
    struct tl_view_server server;
};

/* ---- what is given ------------------------------------------------------------------------- */

static int sort_files(struct options *o, int n, char **paths)
{
    size_t captures = 0;
    if (n > FILES_MAX)
        return tl_cli_usage("view", "at most %d files", FILES_MAX);
    for (int i = 0; i < n; i++)
        if (tl_view_is_config(paths[i]) && !o->config)
            o->config = paths[i];
    for (int i = 0; i < n; i++) {
        struct tl_view_file *const file = &o->files[o->n];
        const int status = tl_view_file(file, paths[i], o->format, o->config != NULL);
        if (status != TL_ARGS_GO)
            return status;
        if (file->kind == TL_VIEW_CONFIG && strcmp(file->path, o->config) != 0)
            return tl_cli_usage("view", "there are two configurations: %s and %s", o->config,
                                file->path);
        if (file->kind == TL_VIEW_PROGRAM &&
            tl_option_set(&(struct tl_option){.kind = TL_ARG_LIST, .value = &o->images},
                          file->path))
            return tl_cli_usage("view", "there are too many programs");
        captures += file->kind == TL_VIEW_CAPTURE || file->kind == TL_VIEW_SNAPSHOT;
        o->n++;
    }
    if (captures || (o->keep && n == 0))
        return TL_ARGS_GO;
    return n ? tl_cli_usage("view", "there is no capture among the files: give the trace, too")
             : tl_cli_usage("view", "give a capture: FILE…");
}

/* ---- pushing ------------------------------------------------------------------------------- */

struct words {
    char *at[2 * TL_ARG_LIST_MAX + 64];
    int n;
};

static void say(struct words *w, const char *option, const char *value)
{
    if (!value)
        return;
    if (option)
        w->at[w->n++] = (char *)(uintptr_t)option;
    w->at[w->n++] = (char *)(uintptr_t)value;
}

/* Push a file as a user would. */
static int push_file(struct options *o, const struct tl_view_file *file, const char *name)
{
    struct words w = {0};
    const bool snapshot = file->kind == TL_VIEW_SNAPSHOT;
    say(&w, NULL, "push");
    say(&w, NULL, "--quiet");
    say(&w, NULL, "--no-wait");
    say(&w, "--server", o->server.url);
    say(&w, "--trace", name);
    say(&w, "--format", file->format);
    say(&w, "--config", snapshot || (!file->format && !o->config) ? NULL : o->config);
    for (size_t i = 0; i < o->images.n; i++)
        say(&w, "--image", o->images.v[i]);
    say(&w, "--symfs", o->places.symfs);
    say(&w, "--buildid-dir", o->places.buildid_dir);
    say(&w, "--vmlinux", o->places.vmlinux);
    say(&w, "--kcore", o->places.kcore);
    say(&w, snapshot ? "--snapshot" : NULL, file->path);
    return tl_cmd_push(w.n, w.at);
}

/* A name that no file before has: "a", "a-2". */
static void name_file(const struct options *o, size_t i, char out[static 64])
{
    char base[48], other[48];
    unsigned same = 1;
    tl_view_name(o->files[i].path, base);
    for (size_t k = 0; k < i; k++) {
        tl_view_name(o->files[k].path, other);
        same += o->files[k].kind <= TL_VIEW_SNAPSHOT && !strcmp(base, other);
    }
    snprintf(out, 64, same > 1 ? "%s-%u" : "%s", base, same);
}

static int push_files(struct options *o)
{
    int worst = TL_CLI_DONE;
    for (size_t i = 0; i < o->n; i++) {
        char name[64];
        if (o->files[i].kind > TL_VIEW_SNAPSHOT)
            continue;
        name_file(o, i, name);
        const int status = push_file(o, &o->files[i], name);
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* ---- the page ------------------------------------------------------------------------------ */

/* In a session of its own: it goes on when this command ends. */
static void open_browser(const char *address)
{
    const pid_t pid = fork();
    if (pid != 0)
        return;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)setsid();
    prctl(PR_SET_PDEATHSIG, 0);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execlp("xdg-open", "xdg-open", address, (char *)NULL);
    _exit(127);
}

static bool has_display(void)
{
    static const char *const names[] = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const value = getenv(names[i]);
        if (value && *value)
            return true;
    }
    return false;
}

static uint64_t insns_of(const struct tracelake_trace *trace)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace->n_streams; i++)
        n += trace->streams[i].insns;
    return n;
}

/* What keeps a trace from being shown whole. */
static void say_missing(const struct options *o, const struct tracelake_trace *trace)
{
    if (*trace->message)
        tl_cli_warn(trace->id, "%s", trace->message);
    if (trace->state == TRACELAKE_DECODING)
        tl_cli_warn(trace->id, "is still being decoded; the page grows with it");
    else if (trace->n_streams == 0)
        tl_cli_warn(trace->id, "nothing was decoded; see 'tracelake setup --check' for its format");
    else if (insns_of(trace) == 0 && !o->images.n)
        tl_cli_warn(trace->id, "no instructions: if it traces a program, name its ELF file, too");
}

/* Wait for the decoding, for as long as people wait without asking what is wrong. */
static void wait_decoded(struct tracelake *lake, const struct tracelake_list *list)
{
    struct tracelake_error error;
    struct tracelake_trace *trace;
    int result = TRACELAKE_OK;
    tl_remote_on_signal(lake);
    tl_remote_alarm(DECODED_S);
    for (size_t i = 0; i < list->n && result >= 0; i++) {
        result = tl_remote_decoded(lake, list->traces[i].id, true, &trace, &error);
        if (result >= 0)
            tracelake_trace_free(trace);
    }
    tl_remote_alarm(0);
    tl_remote_on_default();
    tracelake_resume(lake);
}

/* The trace with the most instructions; else the newest. */
static const struct tracelake_trace *main_trace(const struct tracelake_list *list)
{
    const struct tracelake_trace *best = &list->traces[0];
    for (size_t i = 1; i < list->n; i++)
        if (insns_of(&list->traces[i]) > insns_of(best))
            best = &list->traces[i];
    return best;
}

/* Print where the page is, which is for programs, too; `why` may be empty. */
static void print_place(const struct tl_view_place *place)
{
    if (*place->why)
        tl_cli_warn(NULL, "%s:", place->why);
    puts(place->address);
    fflush(stdout);
}

static void open_page(const struct options *o, const char *address)
{
    if (o->no_browser)
        return;
    if (has_display())
        open_browser(address);
    else
        tl_cli_warn(NULL, "there is no display here: open this address in a browser (from another "
                          "machine, after ssh -L PORT:127.0.0.1:PORT)");
}

/* Once a trace is decoded that was not when the page was opened: what is in it. */
static void show_later(const struct options *o, struct tracelake *lake, const char *id)
{
    struct tracelake_error error;
    struct tracelake_trace *trace;
    struct tl_view_place place;
    if (tl_remote_decoded(lake, id, true, &trace, &error) < 0)
        return;
    say_missing(o, trace);
    tl_view_place(&place, lake, o->server.url, trace);
    if (*place.why)
        print_place(&place);
    tracelake_trace_free(trace);
}

static void show_traces(const struct options *o, struct tracelake *lake,
                        const struct tracelake_list *list)
{
    const struct tracelake_trace *const shown = main_trace(list);
    const bool decoded = shown->state != TRACELAKE_DECODING && shown->state != TRACELAKE_LIVE;
    struct tl_view_place place;
    for (size_t i = 0; i < list->n; i++)
        say_missing(o, &list->traces[i]);
    if (decoded)
        tl_view_place(&place, lake, o->server.url, shown);
    else
        tl_view_place_whole(&place, o->server.url, shown->id);
    print_place(&place);
    open_page(o, place.address);
    fputs("Ctrl-C ends it\n", stderr);
    if (!decoded)
        show_later(o, lake, shown->id);
}

static int show_page(const struct options *o)
{
    const struct tl_remote remote = {.url = o->server.url};
    struct tracelake_error error;
    struct tracelake_list *list = NULL;
    struct tracelake *lake;
    int status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    int result = tracelake_list_traces(lake, &list, &error);
    if (result >= 0) {
        wait_decoded(lake, list);
        tracelake_list_free(list);
        result = tracelake_list_traces(lake, &list, &error);
    }
    status = TL_CLI_BAD;
    if (result < 0)
        (void)tl_remote_fail("view", &error);
    else if (list->n == 0)
        tl_cli_warn("view", "there is nothing to show");
    else
        status = TL_CLI_DONE;
    if (status == TL_CLI_DONE)
        show_traces(o, lake, list);
    if (result >= 0)
        tracelake_list_free(list);
    tracelake_close(lake);
    return status;
}

/* ---- the processes ------------------------------------------------------------------------- */

/* Pushes and opens the page; what fails of several captures does not hide the others. */
static _Noreturn void work(struct options *o, const sigset_t *before, pid_t parent)
{
    (void)!setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(TL_CLI_BAD);
    sigprocmask(SIG_SETMASK, before, NULL);
    const int pushed = push_files(o);
    const int shown = pushed == TL_CLI_USAGE ? pushed : show_page(o);
    fflush(NULL);
    _exit(shown == TL_CLI_DONE ? shown : pushed > shown ? pushed : shown);
}

/* Wait until a signal asks to end, or a process fails. Returns the exit status. `*serving`: the
 * server is still there. */
static int attend(const struct options *o, pid_t worker, const sigset_t *signals, bool *serving)
{
    for (;;) {
        int number, how;
        if (sigwait(signals, &number) != 0 || number != SIGCHLD) {
            if (worker)
                kill(worker, SIGKILL); /* what the server has is stored */
            return TL_CLI_DONE;
        }
        for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;) {
            const int status = WIFEXITED(how) ? WEXITSTATUS(how) : TL_CLI_BAD;
            if (pid == o->server.pid) {
                *serving = false;
                tl_cli_warn("view", "its server ended");
                return TL_CLI_BAD;
            }
            if (pid == worker && status != TL_CLI_DONE)
                return status;
            worker = pid == worker ? 0 : worker;
        }
    }
}

/* The own server is not to be mistaken for the one that the user works with otherwise. */
static void forget_remote(void)
{
    static const char *const names[] = {"SERVER", "TOKEN", "CAFILE", "FINGERPRINT", "CERT", "KEY"};
    char name[40];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "TRACELAKE_%s", names[i]);
        unsetenv(name);
    }
}

static int run(struct options *o)
{
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &before);
    forget_remote();
    int status = tl_view_server_start(&o->server, o->keep, o->listen);
    if (status != TL_ARGS_GO)
        return status;
    const pid_t self = getpid(), worker = fork();
    bool serving = true;
    if (worker == 0)
        work(o, &before, self);
    status = worker < 0 ? TL_CLI_BAD : attend(o, worker, &signals, &serving);
    tl_view_server_stop(&o->server, serving);
    return status;
}

static int check_format(const char *format)
{
    struct tl_setup setup;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    tl_setup_init(&setup);
    const int rc = tl_setup_format(&setup, format, &fail);
    tl_setup_fini(&setup);
    return rc < 0 ? tl_cli_usage("view", "%s", fail.text) : TL_ARGS_GO;
}

int tl_cmd_view(int argc, char **argv)
{
    static struct options o;
    o = (struct options){.listen = "127.0.0.1:0"};
    const struct tl_option args[] = {
        {"keep", 0, TL_ARG_TEXT, &o.keep, "DIR",
         "keep what is decoded in this folder, and show what is in it; without it a folder in the "
         "cache ($XDG_CACHE_HOME) is used and removed"},
        {"no-browser", 0, TL_ARG_FLAG, &o.no_browser, NULL, "only print the address"},
        {"listen", 0, TL_ARG_TEXT, &o.listen, "ADDR:PORT",
         "where its server listens (default 127.0.0.1:0, a free port)"},
        {.help = "what the files do not say themselves:"},
        TL_CAPTURE_ARGS(o.format, o.config, o.images, o.places),
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && o.format)
        status = check_format(o.format);
    if (status == TL_ARGS_GO)
        status = sort_files(&o, argc - first, argv + first);
    return status == TL_ARGS_GO ? run(&o) : status;
}
