/* SPDX-License-Identifier: MIT */
/*
 * Entries wait in a heap by time, since records of different CPUs arrive out of order. Their number
 * and the bytes of their texts are bounded: a file without ends of rounds would otherwise be held
 * in memory as a whole.
 */
#include "perf/event.h"

#include "perf/container.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_WAITING (1u << 20)         /* entries; the earliest of more are treated as final */
#define MAX_TEXTS   ((size_t)64 << 20) /* bytes of their texts; likewise */
#define TEXT_MAX    200                /* maximum bytes of an entry's text */
#define MAX_STREAMS 512
#define NO_STREAM   UINT32_MAX
#define SWITCHES    (-1) /* in place of an attribute: event.switch */
#define TASKS       (-2) /* in place of an attribute: event.task */

struct tl_perf_entry {
    uint64_t time, number, offset;
    int32_t stream; /* index of the attribute, SWITCHES or TASKS */
    int32_t cpu;    /* -1: unknown */
    int32_t pid, tid, to_pid, to_tid;
    char *text; /* further text; owned; NULL: none */
};

void tl_perf_events_fini(struct tl_perf_events *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->waiting[i].text);
    free(e->waiting);
    free(e->streams);
    *e = (struct tl_perf_events){0};
}

size_t tl_perf_events_bytes(const struct tl_perf_events *e)
{
    return e->cap * sizeof *e->waiting + 2 * e->text_bytes;
}

/* ---- input ----------------------------------------------------------------------------------- */

static bool is_before(const struct tl_perf_entry *a, const struct tl_perf_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static int insert(struct tl_perf_events *e, struct tl_perf_entry entry)
{
    if (tl_grow(&e->waiting, &e->cap, e->n + 1, sizeof *e->waiting) < 0)
        return TL_NOMEM;
    size_t i = e->n++;
    for (; i > 0 && is_before(&entry, &e->waiting[(i - 1) / 2]); i = (i - 1) / 2)
        e->waiting[i] = e->waiting[(i - 1) / 2];
    e->waiting[i] = entry;
    e->text_bytes += entry.text ? strlen(entry.text) : 0;
    return TL_OK;
}

/* Take out the earliest entry, of at least one. */
static struct tl_perf_entry take_first(struct tl_perf_events *e)
{
    const struct tl_perf_entry first = e->waiting[0], last = e->waiting[--e->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < e->n; i = child) {
        if (child + 1 < e->n && is_before(&e->waiting[child + 1], &e->waiting[child]))
            child++;
        if (!is_before(&e->waiting[child], &last))
            break;
        e->waiting[i] = e->waiting[child];
    }
    e->waiting[i] = last;
    e->text_bytes -= first.text ? strlen(first.text) : 0;
    return first;
}

/* Too many entries are waiting: treat everything received as final or, as far as that does not
 * help, since they count as later than everything, the earliest of them. */
static int make_room(struct tl_perf_decode *d)
{
    struct tl_perf_events *const e = &d->events;
    int rc = tl_perf_sideband_hurry(&d->sideband);
    if (rc >= 0)
        rc = tl_perf_events_continue(d);
    while (rc >= 0 && (e->n > MAX_WAITING / 2 || e->text_bytes > MAX_TEXTS / 2)) {
        rc = tl_perf_sideband_advance(&d->sideband, e->waiting[0].time);
        if (rc >= 0)
            rc = tl_perf_events_continue(d);
    }
    return rc;
}

static int add(struct tl_perf_decode *d, struct tl_perf_entry entry, const char *text)
{
    struct tl_perf_events *const e = &d->events;
    entry.text = *text ? strndup(text, TEXT_MAX) : NULL;
    if (*text && !entry.text)
        return TL_NOMEM;
    for (char *p = entry.text; p && *p; p++) /* names of files and threads may have any bytes */
        *p = iscntrl((unsigned char)*p) ? '?' : *p;
    entry.time = tl_perf_sideband_time(&d->sideband, entry.time);
    entry.number = e->number++;
    if (insert(e, entry) < 0) {
        free(entry.text);
        return TL_NOMEM;
    }
    return e->n < MAX_WAITING && e->text_bytes < MAX_TEXTS ? TL_OK : make_room(d);
}

static int add_switch(struct tl_perf_decode *d, const struct tl_perf_record *r,
                      struct tl_perf_entry entry)
{
    const bool out = r->misc & TL_PERF_MISC_OUT;
    entry.stream = SWITCHES;
    if (r->type == TL_PERF_SWITCH)
        return add(d, entry, out ? "ends to run" : "runs");
    if (!out)
        return TL_OK; /* the record of the thread switched out has both */
    entry.to_pid = r->who.pid;
    entry.to_tid = r->who.tid;
    return add(d, entry, "");
}

/* "is in the namespaces net 4026531840 …" */
static void report_spaces(char *text, size_t size, const struct tl_perf_record *r)
{
    static const char *const names[TL_PERF_NAMESPACES_MAX] = {"net",  "uts", "ipc",   "pid",
                                                              "user", "mnt", "cgroup"};
    size_t at = (size_t)snprintf(text, size, "is in the namespaces");
    for (size_t i = 0; i < r->spaces.n && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, " %s %" PRIu64, names[i], r->spaces.inodes[i]);
}

/* "code at 0xffffffff81000000 0f1f440000 -> e8abcdef00" */
static void report_poke(char *text, size_t size, const struct tl_perf_record *r)
{
    const struct tl_bytes sides[] = {r->poke.before, r->poke.after};
    size_t at = (size_t)snprintf(text, size, "code at 0x%" PRIx64, r->poke.address);
    for (size_t k = 0; k < 2 && at < size; k++) {
        at += (size_t)snprintf(text + at, size - at, k ? " -> " : " ");
        for (size_t i = 0; i < sides[k].n && i < 16 && at < size; i++)
            at += (size_t)snprintf(text + at, size - at, "%02x", sides[k].p[i]);
        if (sides[k].n == 0 && at < size)
            at += (size_t)snprintf(text + at, size - at, "nothing");
    }
}

int tl_perf_events_record(struct tl_perf_decode *d, const struct tl_perf_record *r)
{
    char text[TEXT_MAX + 1];
    struct tl_perf_entry entry = {
        .time = r->time,
        .offset = r->offset,
        .stream = TASKS,
        .cpu = r->has_cpu ? (int32_t)r->cpu : -1,
        .pid = r->has_tid ? r->pid : -1,
        .tid = r->has_tid ? r->tid : -1,
        .to_pid = -1,
        .to_tid = -1,
    };
    if (!r->has_time)
        return TL_OK;
    switch (r->type) {
    case TL_PERF_SWITCH:
    case TL_PERF_SWITCH_CPU_WIDE:
        return add_switch(d, r, entry);
    case TL_PERF_FORK:
        snprintf(text, sizeof text, "begins %s %" PRId32 " %" PRId32,
                 r->task.pid == r->task.ppid ? "thread" : "process", r->task.pid, r->task.tid);
        break;
    case TL_PERF_EXIT:
        entry.pid = r->task.pid;
        entry.tid = r->task.tid;
        snprintf(text, sizeof text, "ends");
        break;
    case TL_PERF_COMM:
        entry.pid = r->comm.pid;
        entry.tid = r->comm.tid;
        snprintf(text, sizeof text, "%s %.40s",
                 r->misc & TL_PERF_MISC_EXEC ? "runs the program" : "is called", r->comm.name);
        break;
    case TL_PERF_MMAP:
    case TL_PERF_MMAP2:
        entry.pid = r->mapping.pid;
        entry.tid = r->mapping.tid;
        snprintf(text, sizeof text, "maps 0x%" PRIx64 "-0x%" PRIx64 " %.120s", r->mapping.address,
                 r->mapping.address + r->mapping.length, r->mapping.name);
        break;
    case TL_PERF_NAMESPACES:
        entry.pid = r->spaces.pid;
        entry.tid = r->spaces.tid;
        report_spaces(text, sizeof text, r);
        break;
    case TL_PERF_KSYMBOL:
        snprintf(text, sizeof text, "%s 0x%" PRIx64 "-0x%" PRIx64 " %.120s",
                 r->symbol.flags & 1 ? "kernel code ends" : "kernel code", r->symbol.address,
                 r->symbol.address + r->symbol.length, r->symbol.name);
        break;
    case TL_PERF_TEXT_POKE:
        report_poke(text, sizeof text, r);
        break;
    default:
        return TL_OK;
    }
    return add(d, entry, text);
}

int tl_perf_events_sample(struct tl_perf_decode *d, const struct tl_perf_sample *s, uint64_t offset)
{
    char text[TEXT_MAX + 1] = "";
    size_t n = 0;
    const struct tl_perf_entry entry = {
        .time = s->time,
        .offset = offset,
        .stream = (int32_t)s->attr,
        .cpu = s->has_cpu ? (int32_t)s->cpu : -1,
        .pid = s->pid,
        .tid = s->tid,
        .to_pid = -1,
        .to_tid = -1,
    };
    struct tl_perf_sched_switch sched;
    if (s->time == 0)
        return TL_OK;
    if (s->has_ip)
        n += (size_t)snprintf(text + n, sizeof text - n, "at 0x%" PRIx64, s->ip);
    if (s->has_period)
        n += (size_t)snprintf(text + n, sizeof text - n, " period %" PRIu64, s->period);
    if (s->has_address && s->address)
        n += (size_t)snprintf(text + n, sizeof text - n, " address 0x%" PRIx64, s->address);
    if (tl_perf_sched_switch_read(&sched, s->raw, tl_perf_reader_swaps(d->reader), s->tid)) {
        n += (size_t)snprintf(text + n, sizeof text - n, " then %" PRId32 " %.16s", sched.to,
                              sched.to_name);
    } else if (s->raw.n > 8) { /* after the fields common to all tracepoints */
        n += (size_t)snprintf(text + n, sizeof text - n, " raw ");
        for (size_t i = 8; i < s->raw.n && i < 40; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%02x", s->raw.p[i]);
    }
    return add(d, entry, text);
}

/* ---- streams --------------------------------------------------------------------------------- */

char *tl_perf_clean_name(char *name)
{
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            *p = '_';
    return name;
}

char *tl_perf_event_stream(char *out, size_t size, const char *name,
                           const struct tl_perf_attr *attr)
{
    static const char *const software[] = {
        "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
        "migrations",       "minor-faults", "major-faults", "alignment-faults",
        "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
    static const char *const hardware[] = {
        "cycles",        "instructions", "cache-references", "cache-misses",    "branches",
        "branch-misses", "bus-cycles",   "stalled-frontend", "stalled-backend", "ref-cycles"};
    enum { HARDWARE, SOFTWARE, TRACEPOINT };
    const uint64_t config = attr ? attr->config : 0;
    char own[48] = "other";
    if (attr && attr->type == HARDWARE && config < sizeof hardware / sizeof *hardware)
        snprintf(own, sizeof own, "%s", hardware[config]);
    else if (attr && attr->type == SOFTWARE && config < sizeof software / sizeof *software)
        snprintf(own, sizeof own, "%s", software[config]);
    else if (attr)
        snprintf(own, sizeof own, "%s%" PRIu32 "-%" PRIx64,
                 attr->type == TRACEPOINT ? "tracepoint" : "pmu", attr->type, config);
    snprintf(out, size, TL_PERF_EVENT "%s", name && *name ? name : own);
    return tl_perf_clean_name(out);
}

/* The setup's name for the event; NULL: none. */
static const char *reported_name(const struct tl_perf_decode *d, int32_t attr)
{
    for (size_t i = 0; i < d->setup->n_sources; i++) {
        const struct tl_source *const s = &d->setup->sources[i];
        if (s->protocol == TL_PROTO_PERF_EVENTS && s->id == attr)
            return s->name;
    }
    return NULL;
}

/* Find or create a stream by its name; NULL and TL_OK: there are too many. */
static int name_stream(struct tl_perf_decode *d, int32_t which, struct tl_perf_stream **out)
{
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(d->reader);
    const char *const reported = which < 0 ? NULL : reported_name(d, which);
    char name[32];
    *out = NULL;
    if (d->events.n_named >= MAX_STREAMS)
        return d->events.n_named++ > MAX_STREAMS
                   ? TL_OK
                   : tl_perf_report_loss(d, NULL,
                                         "there are more than 512 kinds of events: others have no "
                                         "stream",
                                         0, 0, true);
    if (which < 0)
        snprintf(name, sizeof name, TL_PERF_EVENT "%s", which == SWITCHES ? "switch" : "task");
    else if (reported)
        snprintf(name, sizeof name, "%s", reported);
    else
        tl_perf_event_stream(name, sizeof name, NULL, &attrs->v[which]);
    const size_t before = d->n_streams;
    *out = tl_perf_stream_of(d, name);
    if (!*out)
        return TL_NOMEM;
    if (d->n_streams == before)
        return TL_OK;
    d->events.n_named++;
    (*out)->source.protocol = TL_PROTO_PERF_EVENTS;
    return tl_perf_stream_announce(*out);
}

/* The same, by attribute, SWITCHES or TASKS. */
static int stream_of(struct tl_perf_decode *d, int32_t which, struct tl_perf_stream **out)
{
    struct tl_perf_events *const e = &d->events;
    const size_t at = (size_t)(which - TASKS);
    if (tl_grow(&e->streams, &e->cap_streams, at + 1, sizeof *e->streams) < 0)
        return TL_NOMEM;
    while (e->n_streams <= at)
        e->streams[e->n_streams++] = 0;
    const uint32_t known = e->streams[at];
    if (known != 0) {
        *out = known == NO_STREAM ? NULL : d->streams[known - 1];
        return TL_OK;
    }
    const int rc = name_stream(d, which, out);
    if (rc >= 0)
        e->streams[at] = *out ? (*out)->out.stream.index + 1 : NO_STREAM;
    return rc;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* "2100 2100 ramble": process, thread and name. */
static const char *who(const struct tl_perf_decode *d, char out[static 64], int32_t pid,
                       int32_t tid, uint64_t time)
{
    const struct tl_perf_thread *const t = tl_perf_sideband_thread(&d->sideband, 0, tid, time);
    snprintf(out, 64, "%" PRId32 " %" PRId32 " %s", pid, tid,
             t && t->name[0] ? t->name
             : tid == 0      ? "swapper"
                             : "-");
    return out;
}

static int deliver(struct tl_perf_decode *d, const struct tl_perf_entry *e)
{
    char text[TEXT_MAX + 160], one[64], other[64];
    size_t n = 0;
    struct tl_perf_stream *s;
    const int rc = stream_of(d, e->stream, &s);
    if (rc < 0 || !s)
        return rc;
    if (e->cpu >= 0)
        n += (size_t)snprintf(text + n, sizeof text - n, "cpu %" PRId32 ": ", e->cpu);
    n += (size_t)snprintf(text + n, sizeof text - n, "%s", who(d, one, e->pid, e->tid, e->time));
    if (e->to_tid >= 0)
        n += (size_t)snprintf(text + n, sizeof text - n, " -> %s",
                              who(d, other, e->to_pid, e->to_tid, e->time));
    if (e->text)
        snprintf(text + n, sizeof text - n, " %s", e->text);
    const struct tl_clock clock = tl_perf_axis(d);
    const struct tl_item items[] = {
        {.kind = TL_ITEM_TIME, .value = tl_clock_ticks(&clock, e->time), .offset = e->offset},
        {.kind = TL_ITEM_NOTE, .offset = e->offset, .text = text},
    };
    return tl_stream_out_items(&s->out, items, 2);
}

int tl_perf_events_continue(struct tl_perf_decode *d)
{
    struct tl_perf_events *const e = &d->events;
    int rc = TL_OK;
    while (rc == TL_OK && e->n > 0 && e->waiting[0].time <= d->sideband.final) {
        struct tl_perf_entry entry = take_first(e);
        rc = deliver(d, &entry);
        free(entry.text);
    }
    return rc;
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

static void text_state(char **text, struct tl_state *s)
{
    uint8_t n = tl_state_loads(s) || !*text ? 0 : (uint8_t)strlen(*text);
    tl_state_u8(s, &n, TEXT_MAX);
    if (n == 0) {
        *text = NULL;
        return;
    }
    if (tl_state_loads(s)) {
        *text = calloc(1, (size_t)n + 1);
        tl_state_fail(s, *text ? TL_OK : TL_NOMEM);
    }
    if (*text)
        tl_state_bytes(s, *text, n);
}

static void entry_state(struct tl_perf_entry *e, struct tl_state *s)
{
    tl_state_u64(s, &e->time);
    tl_state_u64(s, &e->number);
    tl_state_u64(s, &e->offset);
    tl_state_i32(s, &e->stream);
    tl_state_i32(s, &e->cpu);
    tl_state_i32(s, &e->pid);
    tl_state_i32(s, &e->tid);
    tl_state_i32(s, &e->to_pid);
    tl_state_i32(s, &e->to_tid);
    text_state(&e->text, s);
}

void tl_perf_events_state(struct tl_perf_decode *d, struct tl_state *s)
{
    enum { ENTRY_MIN = 48 };
    struct tl_perf_events *const e = &d->events;
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(d->reader);
    tl_state_count(s, &e->waiting, &e->n, &e->cap, sizeof *e->waiting, ENTRY_MIN);
    for (size_t i = 0; i < e->n; i++) {
        entry_state(&e->waiting[i], s);
        if (tl_state_loads(s) && e->waiting[i].text)
            e->text_bytes += strlen(e->waiting[i].text);
        tl_state_check(s,
                       e->waiting[i].stream >= TASKS && e->waiting[i].stream < (int64_t)attrs->n);
    }
    tl_state_u64(s, &e->number);
    tl_state_array(s, &e->streams, &e->n_streams, &e->cap_streams, sizeof *e->streams);
    tl_state_u32(s, &e->n_named);
}

/* Are the streams that were loaded there? */
void tl_perf_events_check(const struct tl_perf_decode *d, struct tl_state *s)
{
    const struct tl_perf_events *const e = &d->events;
    for (size_t i = 0; tl_state_loads(s) && i < e->n_streams; i++)
        tl_state_check(s, e->streams[i] <= d->n_streams || e->streams[i] == NO_STREAM);
}
