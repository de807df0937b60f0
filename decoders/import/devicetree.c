/* SPDX-License-Identifier: MIT */
/*
 * Collects the nodes of a flattened device tree, and makes a source of each trace unit, named by
 * its processor. Nodes refer to each other forwards and backwards, so sources are made at the end.
 */
#include "base/buf.h"
#include "base/bytes.h"
#include "import/system.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0xd00dfeedu

enum { BEGIN_NODE = 1, END_NODE = 2, PROPERTY = 3, NOP = 4, END = 9 };
enum { HEADER = 40, DEPTH = 32, NAME = 40, LIST = 128, MAX_FILE = 64 << 20, MAX_NODES = 1 << 20 };

struct node {
    char name[NAME];
    char compatible[LIST + 1]; /* its beginning: a list of texts, each with its NUL */
    uint32_t phandle, cpu;     /* 0: none */
    uint32_t clock;            /* clock-frequency */
    bool is_cpu;
};

struct reading {
    tl_say_sink *warn;
    void *context;
    struct tl_buf bytes;
    struct tl_bytes structure, strings;
    struct node *nodes;
    size_t n, cap;
    size_t path[DEPTH]; /* nodes that are open, from the root */
    size_t depth;
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int begin_node(struct reading *r, const char *name)
{
    if (r->depth == DEPTH || r->n == MAX_NODES)
        return TL_BAD;
    if (tl_grow(&r->nodes, &r->cap, r->n + 1, sizeof *r->nodes) < 0)
        return TL_NOMEM;
    struct node *const node = &r->nodes[r->n];
    *node = (struct node){0};
    for (size_t i = 0; name[i] && i < NAME - 1; i++)
        node->name[i] = isalnum((unsigned char)name[i]) || strchr("@._-,", name[i]) ? name[i] : '_';
    node->is_cpu = strncmp(name, "cpu@", 4) == 0 && r->depth > 0 &&
                   strcmp(r->nodes[r->path[r->depth - 1]].name, "cpus") == 0;
    r->path[r->depth++] = r->n++;
    return TL_OK;
}

static void take_property(struct node *node, const char *name, struct tl_bytes value)
{
    const uint32_t cell = value.n >= 4 ? be32(value.p) : 0;
    if (strcmp(name, "compatible") == 0)
        memcpy(node->compatible, value.p, value.n < LIST ? value.n : LIST - 1);
    else if (strcmp(name, "phandle") == 0)
        node->phandle = cell;
    else if (strcmp(name, "cpu") == 0)
        node->cpu = cell;
    else if (strcmp(name, "clock-frequency") == 0)
        node->clock = cell;
}

/* A text with its NUL in the rest of a block; NULL: it is not ended there. */
static const char *text_at(struct tl_bytes block, size_t at)
{
    return at < block.n && memchr(block.p + at, 0, block.n - at) ? (const char *)block.p + at
                                                                 : NULL;
}

static int read_property(struct reading *r, size_t *at)
{
    const struct tl_bytes s = r->structure;
    if (s.n - *at < 8 || r->depth == 0)
        return TL_BAD;
    const uint32_t n = be32(s.p + *at);
    const char *const name = text_at(r->strings, be32(s.p + *at + 4));
    *at += 8;
    if (n > s.n - *at || !name)
        return TL_BAD;
    take_property(&r->nodes[r->path[r->depth - 1]], name, (struct tl_bytes){s.p + *at, n});
    *at += n;
    return TL_OK;
}

static int read_nodes(struct reading *r)
{
    const struct tl_bytes s = r->structure;
    int rc = TL_OK;
    for (size_t at = 0; rc == TL_OK;) {
        if (s.n - at < 4)
            return TL_BAD;
        const uint32_t token = be32(s.p + at);
        const char *name;
        at += 4;
        switch (token) {
        case BEGIN_NODE:
            name = text_at(s, at);
            rc = name ? begin_node(r, name) : TL_BAD;
            at += name ? strlen(name) + 1 : 0;
            break;
        case END_NODE:
            rc = r->depth ? TL_OK : TL_BAD;
            r->depth -= r->depth > 0;
            break;
        case PROPERTY:
            rc = read_property(r, &at);
            break;
        case NOP:
            break;
        case END:
            return r->depth ? TL_BAD : TL_OK;
        default:
            return TL_BAD;
        }
        at = (at + 3) & ~(size_t)3;
        at = at < s.n ? at : s.n;
    }
    return rc;
}

/* Find the two blocks that the header gives. */
static int open_tree(struct reading *r)
{
    const struct tl_buf *const b = &r->bytes;
    if (b->n < HEADER || be32(b->p) != MAGIC || be32(b->p + 20) < 17)
        return TL_BAD;
    const uint32_t at = be32(b->p + 8), strings = be32(b->p + 12);
    const uint32_t strings_n = be32(b->p + 32), n = be32(b->p + 36);
    if (at > b->n || n > b->n - at || strings > b->n || strings_n > b->n - strings)
        return TL_BAD;
    r->structure = (struct tl_bytes){b->p + at, n};
    r->strings = (struct tl_bytes){b->p + strings, strings_n};
    return TL_OK;
}

/* ---- sources --------------------------------------------------------------------------------- */

static bool is_compatible(const struct node *node, const char *with)
{
    const size_t n = strlen(with);
    for (const char *p = node->compatible; *p; p += strlen(p) + 1)
        if (strncmp(p, with, n) == 0)
            return true;
    return false;
}

/* "arm,cortex-a53" is Cortex-A53, "arm,neoverse-n1" Neoverse N1; "": another. */
static void core_of(const struct node *cpu, char out[static NAME])
{
    static const char *const names[][2] = {{"arm,cortex-", "Cortex-"},
                                           {"arm,neoverse-", "Neoverse "}};
    out[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i][0]);
        if (strncmp(cpu->compatible, names[i][0], n) != 0)
            continue;
        snprintf(out, NAME, "%s%.24s", names[i][1], cpu->compatible + n);
        for (char *p = out + strlen(names[i][1]); *p; p++)
            *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    }
}

/* The number that Linux gives to a processor: as they are listed. */
static const struct node *processor(const struct reading *r, uint32_t phandle, unsigned *number)
{
    *number = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!r->nodes[i].is_cpu)
            continue;
        if (phandle && r->nodes[i].phandle == phandle)
            return &r->nodes[i];
        ++*number;
    }
    return NULL;
}

/* ETMv3 and PTM have one entry in the bindings: PTM are those of these cores. */
static bool has_ptm(const char *core)
{
    static const char *const cores[] = {"Cortex-A9", "Cortex-A12", "Cortex-A15", "Cortex-A17"};
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (strcmp(core, cores[i]) == 0)
            return true;
    return false;
}

static int protocol_of(const struct node *node, const char *core)
{
    return is_compatible(node, "arm,embedded-trace-extension") ? TL_PROTO_ETE
           : is_compatible(node, "arm,coresight-etm4x")        ? TL_PROTO_ETM4
           : !is_compatible(node, "arm,coresight-etm3x")       ? TL_PROTO_NONE
           : has_ptm(core)                                     ? TL_PROTO_PTM
                                                               : TL_PROTO_ETM3;
}

static int add_source(const struct reading *r, const struct node *node, struct tl_setup *setup,
                      struct tl_fail *fail)
{
    char core[NAME] = "";
    unsigned number;
    const struct node *const cpu = processor(r, node->cpu, &number);
    if (!cpu) {
        tl_say(r->warn, r->context, "%s: the tree does not say which processor it traces; left out",
               node->name);
        return TL_OK;
    }
    core_of(cpu, core);
    const int protocol = protocol_of(node, core);
    const uint16_t id = tl_system_trace_id(number);
    if (id > 0x6f) {
        tl_say(r->warn, r->context, "%s: cpu %u has no trace ID by Linux's rule; left out",
               node->name, number);
        return TL_OK;
    }
    if (tl_setup_source(setup, id)) {
        tl_say(r->warn, r->context, "%s: cpu %u has another trace unit before it; left out",
               node->name, number);
        return TL_OK;
    }
    struct tl_source *const s = tl_setup_add_source(setup);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    s->protocol = (uint8_t)protocol;
    s->id = id;
    snprintf(s->name, sizeof s->name, "cs.%02x", s->id);
    snprintf(s->device, sizeof s->device, "%.24s of cpu %u", node->name, number);
    if (core[0])
        snprintf(s->core, sizeof s->core, "%s", core);
    else if (protocol == TL_PROTO_ETM4 || protocol == TL_PROTO_ETE)
        snprintf(s->core, sizeof s->core, "ARM-AA64");
    return TL_OK;
}

static int add_sources(const struct reading *r, struct tl_setup *setup, struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < r->n; i++) {
        const struct node *const node = &r->nodes[i];
        if (protocol_of(node, "") != TL_PROTO_NONE)
            rc = add_source(r, node, setup, fail);
        if (!setup->clock_hz && node->clock && is_compatible(node, "arm,armv"))
            setup->clock_hz = node->clock;
    }
    if (rc == TL_OK && setup->n_sources == 0)
        return tl_fail_set(fail, TL_BAD, "there is no CoreSight trace unit in this device tree");
    if (rc == TL_OK)
        tl_say(r->warn, r->context,
               "a device tree has no registers: sources have the values of most such units, and "
               "the trace IDs that Linux prefers; sysfs has the real ones");
    return rc;
}

int tl_devicetree_read(struct tl_setup *setup, const char *path,
                       void (*report)(void *context, const char *text), void *context,
                       struct tl_fail *fail)
{
    struct reading r = {.warn = report, .context = context};
    int rc = tl_buf_read_file(&r.bytes, path, MAX_FILE, fail);
    if (rc == TL_OK) {
        rc = open_tree(&r);
        if (rc == TL_OK)
            rc = read_nodes(&r);
        if (rc < 0)
            tl_fail_set(fail, (enum tl_err)rc,
                        rc == TL_NOMEM
                            ? "out of memory"
                            : "this is no flattened device tree (.dtb), or a damaged one");
    }
    if (rc == TL_OK)
        rc = add_sources(&r, setup, fail);
    if (rc == TL_OK && !setup->format[0])
        rc = tl_setup_format(setup, "tpiu", fail);
    free(r.nodes);
    tl_buf_fini(&r.bytes);
    return rc;
}
