/* SPDX-License-Identifier: MIT */
/*
 * Packets compared with those of Debian's trc_pkt_lister, run as a program, on snapshots of
 * simulated cores: an ETMv4, a speculating one, and an ETE, all in one formatted capture. Our side
 * reads the same snapshot.
 *
 * Intact captures: the same packets from the first to the last. Damaged ones (flipped bits;
 * overwritten, dropped, repeated and inserted bytes): the same up to the damage; the first
 * difference is one of those explained in docs/coresight-differences.md; and the same again from
 * the stream's next synchronisation on, unless the reference never finds the frames again.
 *
 *   lister_conformance [ROUNDS [SEED]]
 */
#include "decode/decode.h"
#include "import/bundle.h"
#include "sim/program_core.h"
#include "sim/program_rng.h"
#include "sim/tpiu_encoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IDS = 128, CORES = 3, KINDS = 5, SKIPPED = 77 };

struct packet {
    char name[24];
    uint64_t offset;
};

struct listing {
    struct packet *v;
    size_t n, cap;
};

struct bench {
    char dir[64];
    struct tl_buf trace; /* intact */
    struct tl_buf hurt;
    struct listing ours[IDS], theirs[IDS];
    size_t packets, differing, explained, unanswered;
    uint64_t fault_at;
    bool moved; /* bytes after the fault have other offsets */
};

static void die(const char *why)
{
    fprintf(stderr, "lister_conformance: %s\n", why);
    exit(1);
}

static void add(struct listing *l, const char *name, size_t n, uint64_t offset)
{
    struct packet *const last = l->n ? &l->v[l->n - 1] : NULL;
    if (last && !strncmp(name, "I_NOT_SYNC", n) && !strcmp(last->name, "I_NOT_SYNC"))
        return; /* they list unsynchronised bytes in pieces */
    if (tl_grow(&l->v, &l->cap, l->n + 1, sizeof *l->v) < 0)
        die("out of memory");
    struct packet *const p = &l->v[l->n++];
    snprintf(p->name, sizeof p->name, "%.*s", (int)n, name);
    p->offset = offset;
}

static void forget(struct listing all[IDS])
{
    for (unsigned id = 0; id < IDS; id++)
        all[id].n = 0;
}

/* ---- the snapshot --------------------------------------------------------------------------- */

static void put(const struct bench *b, const char *name, const void *p, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", b->dir, name);
    FILE *const f = fopen(path, "w");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0)
        die("the snapshot cannot be written");
}

static void describe(const struct bench *b, unsigned core)
{
    const struct tl_sim_etm4_options options = tl_sim_etm4_unlike(core, 0);
    struct tl_source source = {0};
    struct tl_buf text = {0};
    char name[32];
    if (tl_sim_etm4_source(&options, &source) < 0 ||
        tl_buf_printf(&text, "[device]\nname=etm_%u\nclass=trace_source\ntype=%s\n\n[regs]\n", core,
                      options.ete ? "ETE" : "ETM4.4") < 0)
        die("out of memory");
    for (size_t i = 0; i < source.n_regs; i++)
        if (tl_buf_printf(&text, "%s(0x%03zx)=0x%08" PRIx64 "\n", source.regs[i].name, i,
                          source.regs[i].value) < 0)
            die("out of memory");
    snprintf(name, sizeof name, "etm_%u.ini", core);
    put(b, name, text.p, text.n);
    tl_buf_fini(&text);
}

static void make_snapshot(struct bench *b, uint64_t seed)
{
    static const char snapshot[] =
        "[snapshot]\nversion=1.0\n\n[device_list]\ndevice0=cpu.ini\ndevice1=etm_0.ini\n"
        "device2=etm_1.ini\ndevice3=etm_2.ini\n\n[trace]\nmetadata=trace.ini\n";
    static const char cpu[] = "[device]\nname=cpu\nclass=core\ntype=ARM-AA64\n";
    static const char trace[] =
        "[trace_buffers]\nbuffers=buffer0\n\n[buffer0]\nname=ETB_0\nfile=trace.bin\n"
        "format=coresight\n\n[source_buffers]\netm_0=ETB_0\netm_1=ETB_0\netm_2=ETB_0\n\n"
        "[core_trace_sources]\ncpu=etm_0\ncpu=etm_1\ncpu=etm_2\n";
    struct tl_sim_program program;
    struct tl_sim_core *cores[CORES];
    struct tl_buf bytes[CORES] = {{0}};
    struct tl_tpiu_encoder tpiu;
    const struct tl_sim_program_options shape = {.seed = seed, .extra = 20, .short_loops = true};
    if (tl_sim_program_init(&program, &shape) < 0)
        die("out of memory");
    tl_tpiu_encoder_init(&tpiu, TL_TPIU_ALIGNED, seed);
    for (unsigned i = 0; i < CORES; i++) {
        const struct tl_sim_core_options options = {.seed = seed + i,
                                                    .irq_every = 700,
                                                    .fault_every = 900,
                                                    .etm = tl_sim_etm4_unlike(i, 0)};
        if (tl_sim_core_new(&cores[i], &program, &options, &bytes[i], NULL, NULL) < 0)
            die("out of memory");
        describe(b, i);
    }
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = 0; i < CORES; i++) {
            if (tl_sim_core_step(cores[i], 300) < 0 ||
                (round == 59 && tl_sim_core_flush(cores[i]) < 0) ||
                tl_tpiu_encoder_add(&tpiu, (uint8_t)(0x10 + i), bytes[i].p, bytes[i].n) < 0)
                die("out of memory");
            tl_buf_reset(&bytes[i]);
        }
    }
    tl_buf_reset(&b->trace);
    if (tl_tpiu_encoder_flush(&tpiu) < 0 || tl_buf_add(&b->trace, tpiu.out.p, tpiu.out.n) < 0)
        die("out of memory");
    put(b, "snapshot.ini", snapshot, sizeof snapshot - 1);
    put(b, "cpu.ini", cpu, sizeof cpu - 1);
    put(b, "trace.ini", trace, sizeof trace - 1);
    put(b, "trace.bin", b->trace.p, b->trace.n);
    for (unsigned i = 0; i < CORES; i++) {
        tl_sim_core_free(cores[i]);
        tl_buf_fini(&bytes[i]);
    }
    tl_tpiu_encoder_fini(&tpiu);
    tl_sim_program_fini(&program);
}

/* ---- both sides ----------------------------------------------------------------------------- */

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    struct bench *const b = context;
    char *name;
    const uint64_t offset = strtoull(line, &name, 10);
    name = strchr(name + 1, ' ') + 1;
    add(&b->ours[stream->source->id], name, strcspn(name, " "), offset);
    return TL_OK;
}

static void list_ours(struct bench *b)
{
    struct tl_bundle snap;
    struct tl_fail fail = {0};
    struct tl_buf bytes = {0};
    struct tl_decode *d;
    const struct tl_decode_sink sink = {.context = b, .packet = on_packet};
    forget(b->ours);
    if (tl_snapshot_read(&snap, b->dir, NULL, NULL, &fail) < 0 ||
        tl_bundle_bytes(&snap.captures[0], &bytes, &fail) < 0 ||
        tl_decode_new(&d, &snap.captures[0].setup, NULL, &sink, &fail) < 0)
        die(fail.text);
    if (tl_decode_push(d, bytes.p, bytes.n) < 0 || tl_decode_finish(d) < 0)
        die("decoding failed");
    tl_decode_free(d);
    tl_buf_fini(&bytes);
    tl_bundle_fini(&snap);
}

/* Returns false if it crashed or did not end. Its output until then counts. */
static bool list_theirs(struct bench *b)
{
    char command[256], *line = NULL;
    size_t cap = 0;
    forget(b->theirs);
    snprintf(command, sizeof command,
             "cd %s && rm -f out.ppl && timeout 20 trc_pkt_lister -ss_dir . -logfilename out.ppl "
             ">/dev/null 2>&1",
             b->dir);
    const int status = system(command);
    snprintf(command, sizeof command, "%s/out.ppl", b->dir);
    FILE *const f = fopen(command, "r");
    while (f && getline(&line, &cap, f) > 0) {
        /* a message without a line end may precede or follow */
        for (const char *at = line; (at = strstr(at, "Idx:")); at++) {
            uint64_t index;
            unsigned id;
            int used = 0;
            if (sscanf(at, "Idx:%" SCNu64 "; ID:%x;\t%n", &index, &id, &used) == 2 && used &&
                id < IDS && !strncmp(at + used, "I_", 2))
                add(&b->theirs[id], at + used, strcspn(at + used, " :"), index);
        }
    }
    free(line);
    if (f)
        fclose(f);
    return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- comparison ----------------------------------------------------------------------------- */

static bool is_explained(const char *name)
{
    static const char *const names[] = {
        "I_NOT_SYNC", "I_BAD_SEQUENCE", "I_ASYNC", "I_INCOMPLETE_EOT",
        "I_RESERVED", "I_RESERVED_CFG", "",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static const char *name_at(const struct listing *l, size_t i)
{
    return i < l->n ? l->v[i].name : "";
}

static bool is_same(const struct listing *a, size_t i, const struct listing *b, size_t k)
{
    return i < a->n && k < b->n && !strcmp(a->v[i].name, b->v[k].name);
}

static void compare(struct bench *b, unsigned id, const char *what, bool intact)
{
    const struct listing *const x = &b->ours[id], *const y = &b->theirs[id];
    size_t first = 0, last = 0, asyncs = 0;
    b->packets += x->n;
    while (is_same(x, first, y, first))
        first++;
    if (first == x->n && first == y->n)
        return;
    while (last < x->n - first && last < y->n - first &&
           is_same(x, x->n - 1 - last, y, y->n - 1 - last))
        last++;
    for (size_t i = first; i < x->n - last; i++)
        asyncs += !strcmp(x->v[i].name, "I_ASYNC");
    const char *const mine = name_at(x, first), *const other = name_at(y, first);
    const uint64_t offset = first < x->n ? x->v[first].offset : b->trace.n;
    /* A damaged field without end, or a lost frame, makes the rest arbitrary until an A-Sync. */
    const bool explained = !intact && offset + 1200 >= b->fault_at &&
                           (b->moved || is_explained(mine) || is_explained(other));
    if (explained && (b->moved || asyncs <= 2)) {
        b->explained++;
        return;
    }
    b->differing++;
    printf("%s, stream %02x: packet %zu at %" PRIu64 " is %s, the reference says %s; %zu more are "
           "the same at the end, %zu A-Syncs between\n",
           what, id, first, offset, mine, other, last, asyncs);
}

static void damage(struct bench *b, unsigned kind, struct tl_sim_rng *rng)
{
    const size_t at = 600 + tl_sim_below(rng, (uint32_t)b->trace.n - 1200);
    const size_t drop = kind == 2 || kind == 3 ? 0 : 1, more = kind == 1 ? 0 : 1;
    uint8_t byte = (uint8_t)tl_sim_rand(rng);
    if (kind == 0)
        byte = b->trace.p[at] ^ (uint8_t)(1u << tl_sim_below(rng, 8));
    if (kind == 2)
        byte = b->trace.p[at];
    b->fault_at = at;
    b->moved = drop != more;
    tl_buf_reset(&b->hurt);
    if (tl_buf_add(&b->hurt, b->trace.p, at) < 0 || tl_buf_add(&b->hurt, &byte, more) < 0 ||
        tl_buf_add(&b->hurt, b->trace.p + at + drop, b->trace.n - at - drop) < 0)
        die("out of memory");
    /* The reference only accepts whole frames. */
    b->hurt.n &= ~(size_t)15;
    put(b, "trace.bin", b->hurt.p, b->hurt.n);
}

static void check(struct bench *b, const char *what, bool intact)
{
    list_ours(b);
    b->unanswered += !list_theirs(b);
    for (unsigned id = 0x10; id < 0x10 + CORES; id++)
        compare(b, id, what, intact);
}

int main(int argc, char **argv)
{
    static const char *const kinds[KINDS] = {"flip", "drop", "double", "insert", "overwrite"};
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    const unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    static struct bench b = {.dir = "/tmp/lister_conformance.XXXXXX"};
    char what[96];
    if (system("command -v trc_pkt_lister >/dev/null") != 0) {
        printf("skipped: trc_pkt_lister is not installed\n");
        return SKIPPED;
    }
    if (!mkdtemp(b.dir))
        die("no temporary folder");
    for (unsigned round = 0; round < rounds; round++) {
        struct tl_sim_rng rng = {seed * 1000 + round};
        make_snapshot(&b, seed + round);
        snprintf(what, sizeof what, "round %u", round);
        check(&b, what, true);
        for (unsigned i = 0; i < 3 * KINDS; i++) {
            damage(&b, i % KINDS, &rng);
            snprintf(what, sizeof what, "round %u, %s at %" PRIu64, round, kinds[i % KINDS],
                     b.fault_at);
            check(&b, what, false);
        }
    }
    printf("%zu packets, %zu streams differ as explained, %zu otherwise; the reference failed on "
           "%zu captures\n",
           b.packets, b.explained, b.differing, b.unanswered);
    snprintf(what, sizeof what, "rm -r %s", b.dir);
    if (system(what) != 0)
        die("the temporary folder stays");
    for (unsigned id = 0; id < IDS; id++) {
        free(b.ours[id].v);
        free(b.theirs[id].v);
    }
    tl_buf_fini(&b.trace);
    tl_buf_fini(&b.hurt);
    return b.differing || b.packets == 0;
}
