/* SPDX-License-Identifier: MIT */
/* tracelake-rig: a simulated rig that pushes live trace through libtracelake, as a real one would.
 * It never gives up: if the server is away, it waits. */
#include "rig.h"

#include "base/now.h"
#include "tracelake.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 50, AWAY_MS = 500, FAREWELL_S = 3 };

static const struct rig_kind *const kinds[] = {&rig_etm, &rig_di,      &rig_plugins,
                                               &rig_pt,  &rig_pt_user, &rig_cortex_m};

struct options {
    const struct rig_kind *kind;
    const char *server, *name, *trace, *truth, *save, *config, *image;
    uint64_t rate, bytes, seed;
    double seconds;
    bool quiet;
};

struct run {
    const struct options *o;
    struct rig *rig;
    struct tl_setup setup;
    struct tl_buf code, text, bytes;
    bool has_image; /* the server has the code, and the setup refers to it */
    struct tracelake *lake;
    struct tracelake_push *push;
    FILE *save;
};

/* ---- signals ------------------------------------------------------------------------------ */

static struct tracelake *_Atomic the_lake;
static atomic_bool stopping;

static void on_signal(int number)
{
    struct tracelake *lake = atomic_load(&the_lake);
    atomic_store(&stopping, true);
    if (lake)
        tracelake_interrupt(lake);
}

static void catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

static void pause_ms(int64_t ms)
{
    if (ms > 0)
        nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static int complain(const char *what, const char *text)
{
    fprintf(stderr, "tracelake-rig: %s: %s\n", what, text);
    return -1;
}

static void notice(void *context, const char *text)
{
    const struct options *o = context;
    if (!o->quiet)
        fprintf(stderr, "tracelake-rig: %s: %s\n", o->kind->name, text);
}

/* ---- connecting --------------------------------------------------------------------------- */

static bool worth_waiting(int result)
{
    return result == TRACELAKE_UNREACHABLE || result == TRACELAKE_TIMEOUT;
}

static int connect_once(struct run *run, struct tracelake_error *error)
{
    if (run->lake)
        return TRACELAKE_OK;
    const int result = tracelake_connect(&run->lake, run->o->server, NULL, error);
    if (result == TRACELAKE_OK)
        atomic_store(&the_lake, run->lake);
    return result;
}

/* Make the setup's images refer to this file. */
static int name_images(struct tl_setup *setup, const char *file)
{
    if (setup->n_images == 0)
        return tl_setup_add_image(setup, file, NULL);
    for (size_t i = 0; i < setup->n_images; i++) {
        char *const copy = strdup(file);
        if (!copy)
            return TL_NOMEM;
        free(setup->images[i].file);
        setup->images[i].file = copy;
    }
    return TL_OK;
}

static int put_sources(struct run *run, const char *image, struct tracelake_error *error)
{
    const struct rig_kind *const kind = run->o->kind;
    struct tl_buf text = {0};
    const char *path;
    int result = TRACELAKE_OK;
    for (unsigned i = 0; kind->source && result == TRACELAKE_OK; i++) {
        tl_buf_reset(&text);
        const int r = kind->source(run->rig, i, &path, &text);
        if (r == TL_NOTFOUND)
            break;
        result = r < 0 ? TRACELAKE_NOMEM
                       : tracelake_put_source(run->lake, image, path, text.p, text.n, error);
    }
    tl_buf_fini(&text);
    return result;
}

/* Upload the image first, so that the setup can refer to its hash; then open the push. */
static int open_push(struct run *run, struct tracelake_error *error)
{
    struct tracelake_image image;
    int result = connect_once(run, error);
    if (result == TRACELAKE_OK && run->code.n && !run->has_image) {
        result =
            tracelake_put_image(run->lake, "demo.elf", run->code.p, run->code.n, &image, error);
        if (result == TRACELAKE_OK && name_images(&run->setup, image.sha256) < 0)
            return TRACELAKE_NOMEM;
        if (result == TRACELAKE_OK)
            result = put_sources(run, image.sha256, error);
        run->has_image = result == TRACELAKE_OK;
    }
    if (result < 0)
        return result;
    tl_buf_reset(&run->text);
    if (tl_setup_write(&run->setup, &run->text) < 0 || tl_buf_add(&run->text, "", 1) < 0)
        return TRACELAKE_NOMEM;
    const struct tracelake_push_options options = {
        .rig = run->o->name,
        .trace = run->o->trace,
        .setup = (const char *)run->text.p,
        .retry_ms = -1,
        .notice = notice,
        .context = (void *)(uintptr_t)run->o,
    };
    return tracelake_push_open(&run->push, run->lake, &options, error);
}

static int begin(struct run *run)
{
    bool reported = false;
    for (;;) {
        struct tracelake_error error = {.text = "out of memory"};
        const int result = open_push(run, &error);
        if (result == TRACELAKE_OK)
            return 0;
        if (atomic_load(&stopping))
            return -1;
        if (!worth_waiting(result))
            return complain(run->o->kind->name, error.text);
        if (!reported)
            notice((void *)(uintptr_t)run->o, error.text);
        reported = true;
        pause_ms(AWAY_MS);
    }
}

/* ---- tracing ------------------------------------------------------------------------------ */

/* The number of bytes due `ms` after the beginning. */
static uint64_t due(const struct options *o, int64_t ms)
{
    const double n = (double)o->rate * (double)ms / 1000.0;
    return o->bytes && n > (double)o->bytes ? o->bytes : (uint64_t)n;
}

static bool finished(const struct options *o, int64_t ms, uint64_t sent)
{
    return atomic_load(&stopping) || (o->seconds > 0 && (double)ms >= o->seconds * 1000) ||
           (o->bytes && sent >= o->bytes);
}

static int send(struct run *run, size_t n, struct tracelake_error *error)
{
    tl_buf_reset(&run->bytes);
    if (run->o->kind->more(run->rig, n, &run->bytes) < 0)
        return complain(run->o->kind->name, "out of memory");
    if (run->save && fwrite(run->bytes.p, 1, run->bytes.n, run->save) != run->bytes.n)
        return complain(run->o->save, strerror(errno));
    return tracelake_push_write(run->push, run->bytes.p, run->bytes.n, error);
}

static int trace(struct run *run, struct tracelake_error *error)
{
    const int64_t begun = tl_monotonic_ms();
    uint64_t sent = 0;
    for (int64_t ms = 0; !finished(run->o, ms, sent); ms = tl_monotonic_ms() - begun) {
        const uint64_t wanted = due(run->o, ms + TICK_MS);
        int result = TRACELAKE_OK;
        if (wanted > sent) {
            result = send(run, (size_t)(wanted - sent), error);
            sent += run->bytes.n;
        }
        if (result == TRACELAKE_OK)
            result = tracelake_push_serve(run->push, 0, error);
        if (result < 0)
            return result;
        pause_ms(ms + TICK_MS - (tl_monotonic_ms() - begun));
    }
    return TRACELAKE_OK;
}

/* An interrupted capture is completed with what has been traced so far. If the server is also gone,
 * do not wait for it. */
static int finish(struct run *run, struct tracelake_error *error)
{
    if (atomic_load(&stopping)) {
        alarm(FAREWELL_S);
        tracelake_resume(run->lake);
    }
    return tracelake_push_finish(run->push, error);
}

static int write_truth(const struct run *run)
{
    FILE *file = fopen(run->o->truth, "we");
    if (!file)
        return complain(run->o->truth, strerror(errno));
    const int result = run->o->kind->truth(run->rig, file);
    if (fclose(file) != 0 || result < 0)
        return complain(run->o->truth, "cannot write");
    return 0;
}

static int write_file(const char *path, const struct tl_buf *bytes)
{
    FILE *file = fopen(path, "wbe");
    if (!file)
        return complain(path, strerror(errno));
    const bool ok = bytes->n == 0 || fwrite(bytes->p, 1, bytes->n, file) == bytes->n;
    return fclose(file) == 0 && ok ? 0 : complain(path, "cannot write");
}

/* Write the setup, as it is before the server knows the image, and the image. */
static int write_setup(struct run *run)
{
    struct tl_buf text = {0};
    int result = 0;
    if (run->o->image && run->setup.n_images > 0 && name_images(&run->setup, run->o->image) < 0)
        result = complain("setup", "out of memory");
    if (result == 0 && run->o->config)
        result = tl_setup_write(&run->setup, &text) < 0 ? complain("setup", "out of memory")
                                                        : write_file(run->o->config, &text);
    if (result == 0 && run->o->image)
        result = write_file(run->o->image, &run->code);
    tl_buf_fini(&text);
    return result;
}

static int live(struct run *run)
{
    struct tracelake_error error = {.text = "out of memory"};
    if (begin(run) < 0)
        return atomic_load(&stopping) ? 0 : 3;
    if (!run->o->quiet)
        printf("%s\n", tracelake_push_trace(run->push));
    fflush(stdout);
    int result = trace(run, &error);
    if (result == TRACELAKE_OK || result == TRACELAKE_CANCELLED)
        result = finish(run, &error);
    tracelake_push_close(run->push);
    if (result == TRACELAKE_OK || atomic_load(&stopping))
        return 0;
    complain(run->o->kind->name, error.text);
    return 3;
}

static int run_rig(const struct options *o)
{
    struct run run = {.o = o};
    int status = 1;
    tl_setup_init(&run.setup);
    if (o->save && !(run.save = fopen(o->save, "wbe")))
        complain(o->save, strerror(errno));
    else if (o->kind->start(&run.rig, o->seed, o->truth) < 0 ||
             o->kind->describe(run.rig, &run.setup, &run.code) < 0)
        complain(o->kind->name, "out of memory");
    else if (write_setup(&run) == 0)
        status = live(&run);
    if (status == 0 && o->truth && write_truth(&run) < 0)
        status = 1;
    if (run.save && fclose(run.save) != 0)
        status = 1;
    atomic_store(&the_lake, NULL);
    tracelake_close(run.lake);
    if (run.rig)
        o->kind->stop(run.rig);
    tl_setup_fini(&run.setup);
    tl_buf_fini(&run.code);
    tl_buf_fini(&run.text);
    tl_buf_fini(&run.bytes);
    return status;
}

/* ---- arguments ---------------------------------------------------------------------------- */

static void help(FILE *out)
{
    fputs("usage: tracelake-rig --kind KIND [options]\n", out);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        fprintf(out, "  KIND %-8s       %s\n", kinds[i]->name, kinds[i]->about);
    fputs("  --server URL        default http://127.0.0.1:7070\n"
          "  --rig NAME          default sim-KIND\n"
          "  --trace ID          default: assigned by the server\n"
          "  --rate BYTES        bytes per second (default 100000)\n"
          "  --seconds N         stop after this time (default: at SIGINT)\n"
          "  --bytes N           stop after this many bytes\n"
          "  --seed N            different trace of the same kind (default 1)\n"
          "  --truth FILE        write the traced program flow as flow text (kept in memory)\n"
          "  --save FILE         write the bytes\n"
          "  --config FILE       write the setup\n"
          "  --image FILE        write the program image\n"
          "  --quiet\n",
          out);
}

static const struct rig_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        {"kind", 1, NULL, 'k'},  {"server", 1, NULL, 's'}, {"rig", 1, NULL, 'g'},
        {"trace", 1, NULL, 't'}, {"rate", 1, NULL, 'r'},   {"seconds", 1, NULL, 'n'},
        {"bytes", 1, NULL, 'b'}, {"seed", 1, NULL, 'e'},   {"truth", 1, NULL, 'u'},
        {"save", 1, NULL, 'v'},  {"config", 1, NULL, 'c'}, {"image", 1, NULL, 'i'},
        {"quiet", 0, NULL, 'q'}, {"help", 0, NULL, 'h'},   {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'k':
            o->kind = find_kind(optarg);
            break;
        case 's':
            o->server = optarg;
            break;
        case 'g':
            o->name = optarg;
            break;
        case 't':
            o->trace = optarg;
            break;
        case 'r':
            o->rate = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            o->seconds = strtod(optarg, NULL);
            break;
        case 'b':
            o->bytes = strtoull(optarg, NULL, 0);
            break;
        case 'e':
            o->seed = strtoull(optarg, NULL, 0);
            break;
        case 'u':
            o->truth = optarg;
            break;
        case 'v':
            o->save = optarg;
            break;
        case 'c':
            o->config = optarg;
            break;
        case 'i':
            o->image = optarg;
            break;
        case 'q':
            o->quiet = true;
            break;
        case 'h':
            help(stdout);
            exit(0);
        default:
            return -1;
        }
    }
    return o->kind && o->rate && optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct options o = {.server = "http://127.0.0.1:7070", .rate = 100000, .seed = 1};
    char name[32];
    if (parse(argc, argv, &o) < 0) {
        help(stderr);
        return 2;
    }
    if (!o.name) {
        snprintf(name, sizeof name, "sim-%s", o.kind->name);
        o.name = name;
    }
    catch_signals();
    return run_rig(&o);
}
