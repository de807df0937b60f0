/* SPDX-License-Identifier: MIT */
/*
 * Opens input files as captures and gives each buffer of a snapshot a name of its own. Names become
 * traces on the server, where equal ones would be taken for one capture.
 */
#include "push/captures.h"

#include "base/filekind.h"
#include "out/cutfile.h"
#include "terminal/args.h"
#include "terminal/say.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void warn(void *context, const char *text)
{
    tl_cli_warn(context, "%s", text);
}

static int no_buffer(const struct tl_cli_captures *what, const struct tl_bundle *bundle)
{
    tl_cli_warn(what->request.snapshot, "there is no buffer '%s'", what->buffer);
    for (size_t i = 0; i < bundle->n_captures; i++)
        tl_cli_warn(what->request.snapshot, "it has buffer %s", bundle->captures[i].name);
    return TL_CLI_USAGE;
}

/* Make names unique: the second buffer with the same name gets "-2". */
static void tell_apart(struct tl_bundle *bundle)
{
    for (size_t i = 1; i < bundle->n_captures; i++) {
        char *const name = bundle->captures[i].name;
        unsigned same = 1;
        for (size_t k = 0; k < i; k++)
            same += strcmp(bundle->captures[k].name, name) == 0;
        const size_t room = sizeof bundle->captures[i].name;
        if (same > 1)
            snprintf(name + strnlen(name, room - 12), 12, "-%u", same);
    }
}

int tl_cli_one_input(const char *command, const char *second)
{
    uint8_t head[64];
    FILE *const file = fopen(second, "rb");
    const size_t n = file ? fread(head, 1, sizeof head, file) : 0;
    const char *const end = strrchr(second, '.');
    if (file)
        fclose(file);
    if (tl_file_kind((struct tl_bytes){head, n}) == TL_FILE_ELF)
        return tl_cli_usage(command, "more than one input: '%s' is a program: --image %s", second,
                            second);
    if (end && !strcmp(end, ".ini"))
        return tl_cli_usage(command, "more than one input: '%s' is a configuration: --config %s",
                            second, second);
    return tl_cli_usage(command, "more than one input: '%s'", second);
}

int tl_cli_captures_check(const char *command, const char *snapshot, const char *buffer,
                          const char *config, const char *input)
{
    if (snapshot ? input != NULL : !input && !config)
        return tl_cli_usage(command, "give an INPUT ('-' is standard input) or --snapshot DIR");
    if (snapshot && config)
        return tl_cli_usage(command, "a snapshot brings its own configuration");
    if (buffer && !snapshot)
        return tl_cli_usage(command, "--buffer goes with --snapshot");
    return TL_ARGS_GO;
}

int tl_cli_captures(const struct tl_cli_captures *what,
                    int (*each)(void *context, struct tl_bundle_capture *capture, bool alone),
                    void *context)
{
    struct tl_bundle bundle;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_bundle_request request = what->request;
    const char *where;
    int status = TL_CLI_DONE;
    bool found = false;
    request.warn = warn;
    request.context = (void *)(uintptr_t)request.snapshot;
    tl_cutfile_guard();
    if (tl_bundle_read(&bundle, &request, &where, &fail) < 0)
        return !where && fail.code == TL_USAGE ? tl_cli_usage(what->command, "%s", fail.text)
                                               : tl_cli_fail(where, &fail);
    tell_apart(&bundle);
    for (size_t i = 0; i < bundle.n_captures && status < what->stop; i++) {
        struct tl_bundle_capture *const capture = &bundle.captures[i];
        if (what->buffer && strcmp(what->buffer, capture->name) != 0)
            continue;
        found = true;
        const int one = each(context, capture, bundle.n_captures == 1);
        status = one > status ? one : status;
    }
    if (!found)
        status = no_buffer(what, &bundle);
    if (bundle.limited && status == TL_CLI_DONE)
        status = TL_CLI_BAD;
    tl_bundle_fini(&bundle);
    return status;
}

uint64_t tl_cli_capture_bytes(const struct tl_bundle_capture *capture)
{
    uint64_t total = 0;
    for (size_t i = 0; i < capture->n_pieces; i++) {
        const struct tl_bundle_piece *const piece = &capture->pieces[i];
        struct stat st;
        const int known =
            strcmp(piece->path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(piece->path, &st);
        if (known < 0 || !S_ISREG(st.st_mode))
            return 0;
        const uint64_t there =
            (uint64_t)st.st_size > piece->offset ? (uint64_t)st.st_size - piece->offset : 0;
        total += there < piece->length ? there : piece->length;
    }
    return total;
}
