/* SPDX-License-Identifier: MIT */
/*
 * Prints traces as a table, in full or as JSON. JSON has the names and types of the HTTP interface,
 * so that a script reads both with the same code.
 */
#include "out/rows_out.h"

#include "setup/format.h"
#include "terminal/plain.h"
#include "terminal/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Human-readable size: "812", "3.4M". */
static const char *size_text(uint64_t n, char out[static 16])
{
    static const char units[] = "KMGTPE";
    double value = (double)n;
    int unit = -1;
    while (value >= 1000 && unit < 5) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(out, 16, "%" PRIu64, n);
    else
        snprintf(out, 16, value < 10 ? "%.1f%c" : "%.0f%c", value, units[unit]);
    return out;
}

static const char *time_text(int64_t ns, char out[static 32])
{
    const time_t seconds = (time_t)(ns / 1000000000);
    struct tm t;
    if (ns <= 0 || !localtime_r(&seconds, &t) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &t))
        strcpy(out, "-");
    return out;
}

bool tl_counts_insns(const struct tracelake_stream *stream)
{
    const int protocol = tl_protocol_named(stream->protocol);
    return protocol < 0 || tl_protocol_has((unsigned)protocol, TL_TRAIT_FLOW);
}

static uint64_t total_insns(const struct tracelake_trace *trace)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace->n_streams; i++)
        if (tl_counts_insns(&trace->streams[i]) && !tl_stream_is_derived(trace->streams[i].name))
            n += trace->streams[i].insns;
    return n;
}

static const char *or_dash(const char *text)
{
    return text[0] ? text : "-";
}

static int wider(int width, const char *text)
{
    const int needed = tl_plain_width(text);
    return needed > width ? needed : width;
}

void tl_rows_table(const struct tracelake_trace *const *traces, size_t n)
{
    int id = 5, rig = 3, format = 6;
    for (size_t i = 0; i < n; i++) {
        id = wider(id, traces[i]->id);
        rig = wider(rig, traces[i]->rig);
        format = wider(format, traces[i]->format);
    }
    printf("%-*s  %-8s  %-*s  %-*s  %7s  %14s  %7s  %s\n", id, "TRACE", "STATE", rig, "RIG", format,
           "FORMAT", "BYTES", "INSTRUCTIONS", "STREAMS", "CREATED");
    for (size_t i = 0; i < n; i++) {
        const struct tracelake_trace *t = traces[i];
        char size[16], created[32];
        tl_print_plain(stdout, t->id, id);
        printf("  %-8s  ", tracelake_state_name(t->state));
        tl_print_plain(stdout, or_dash(t->rig), rig);
        printf("  ");
        tl_print_plain(stdout, or_dash(t->format), format);
        printf("  %7s  %14" PRIu64 "  %7zu  %s\n", size_text(t->raw_bytes, size), total_insns(t),
               t->n_streams, time_text(t->created_ns, created));
    }
}

/* Print a line of free text of the trace. */
static void own_line(const char *name, const char *text)
{
    printf("%-10s ", name);
    tl_print_plain(stdout, text, 0);
    putchar('\n');
}

static void own_member(const char *name, const char *text)
{
    printf("  %-12s ", name);
    tl_print_plain(stdout, text, 0);
    putchar('\n');
}

/* Print the wall-clock relation of a stream, with its uncertainty. */
static void print_clock(const struct tracelake_stream *s)
{
    const struct tracelake_stream_clock *const c = &s->clock;
    char text[32];
    printf("  clock        %" PRIu64 " was at %s.%06" PRIu64 " at the latest,\n", c->at,
           time_text((int64_t)c->unix_ns, text), c->unix_ns % 1000000000 / 1000);
    if (s->time_unit_ns)
        printf("               runs %+.3f ppm", (1 / c->rate - 1) * 1e6);
    else
        printf("               %.3f Hz", 1e9 / c->rate);
    printf(" ± %.3f ppm, spread %.3f ms, %" PRIu64 " arrivals\n", c->rate_error / c->rate * 1e6,
           (double)c->spread_ns / 1e6, c->pairs);
}

void tl_rows_full(const struct tracelake_trace *trace)
{
    char text[32];
    own_line("trace", trace->id);
    printf("state      %s\n", tracelake_state_name(trace->state));
    if (trace->message[0])
        own_line("message", trace->message);
    own_line("rig", or_dash(trace->rig));
    own_line("format", or_dash(trace->format));
    printf("created    %s\n", time_text(trace->created_ns, text));
    printf("updated    %s\n", time_text(trace->updated_ns, text));
    printf("bytes      %" PRIu64 ", decoded %" PRIu64 "\n", trace->raw_bytes, trace->decoded_bytes);
    if (trace->raw_removed || trace->decoded_removed)
        printf("removed    %s, by retention\n", trace->raw_removed ? "raw bytes" : "decoded data");
    if (trace->content[0])
        own_line("content", trace->content);
    printf("generation %" PRIu64 "\n", trace->generation);
    for (size_t i = 0; i < trace->n_labels; i++) {
        printf("%-10s ", "label");
        tl_print_plain(stdout, trace->labels[i].key, 0);
        putchar('=');
        tl_print_plain(stdout, trace->labels[i].value, 0);
        putchar('\n');
    }
    for (size_t i = 0; i < trace->n_streams; i++) {
        const struct tracelake_stream *s = &trace->streams[i];
        printf("%-10s ", "stream");
        tl_print_plain(stdout, s->name, 0);
        putchar(' ');
        tl_print_plain(stdout, or_dash(s->protocol), 0);
        putchar('\n');
        if (*s->core)
            own_member("core", s->core);
        if (*s->device)
            own_member("device", s->device);
        printf("  %-12s %" PRIu64 ", of which %" PRIu64 " in %" PRIu64 " shard%s\n",
               tl_counts_insns(s) ? "instructions" : "records", s->insns, s->sealed_insns,
               s->shards, s->shards == 1 ? "" : "s");
        if (s->has_time)
            printf("  time         %" PRIu64 " to %" PRIu64 " %s, timestamps %" PRIu64 " apart\n",
                   s->time_first, s->time_last, s->time_unit_ns ? "ns" : "ticks", s->time_step);
        if (s->clock.pairs > 0)
            print_clock(s);
        printf("  events       %" PRIu64 "\n", s->events);
        printf("  gaps         %" PRIu64 ", lost bytes %" PRIu64 "\n", s->gaps, s->lost_bytes);
        printf("  stored       %" PRIu64 " bytes\n", s->stored_bytes);
    }
}

static void field_text(const char *name, const char *value)
{
    printf(",\"%s\":", name);
    tl_print_json_text(value);
}

static void field_bool(const char *name, bool value)
{
    printf(",\"%s\":%s", name, value ? "true" : "false");
}

/* Names and types of values are those of HTTP. */
static void stream_json(const struct tracelake_stream *s)
{
    printf("{\"name\":");
    tl_print_json_text(s->name);
    field_text("protocol", s->protocol);
    if (*s->core)
        field_text("core", s->core);
    if (*s->device)
        field_text("device", s->device);
    tl_print_json_member("insns", s->insns);
    tl_print_json_member("sealed_insns", s->sealed_insns);
    tl_print_json_member("shards", s->shards);
    tl_print_json_member("time_first", s->time_first);
    tl_print_json_member("time_last", s->time_last);
    field_bool("has_time", s->has_time);
    field_bool("time_unit_ns", s->time_unit_ns);
    if (s->time_step > 0)
        tl_print_json_member("time_step", s->time_step);
    if (s->clock.pairs > 0) {
        printf(",\"clock\":{\"at\":");
        tl_print_json_number(s->clock.at);
        tl_print_json_member("unix_ns", s->clock.unix_ns);
        printf(",\"rate\":%.15g,\"rate_error\":%.15g", s->clock.rate, s->clock.rate_error);
        tl_print_json_member("spread_ns", s->clock.spread_ns);
        tl_print_json_member("pairs", s->clock.pairs);
        putchar('}');
    }
    tl_print_json_member("events", s->events);
    tl_print_json_member("gaps", s->gaps);
    tl_print_json_member("lost_bytes", s->lost_bytes);
    tl_print_json_member("stored_bytes", s->stored_bytes);
    printf("}");
}

static void trace_json(const struct tracelake_trace *t)
{
    printf("{\"id\":");
    tl_print_json_text(t->id);
    field_text("rig", t->rig);
    field_text("state", tracelake_state_name(t->state));
    field_text("format", t->format);
    tl_print_json_member("created_ns", (uint64_t)t->created_ns);
    tl_print_json_member("updated_ns", (uint64_t)t->updated_ns);
    tl_print_json_member("raw_bytes", t->raw_bytes);
    tl_print_json_member("decoded_bytes", t->decoded_bytes);
    tl_print_json_member("generation", t->generation);
    tl_print_json_member("revision", t->revision);
    field_text("message", t->message);
    field_bool("raw_removed", t->raw_removed);
    field_bool("decoded_removed", t->decoded_removed);
    field_text("content", t->content);
    printf(",\"labels\":{");
    for (size_t i = 0; i < t->n_labels; i++) {
        fputs(i ? "," : "", stdout);
        tl_print_json_text(t->labels[i].key);
        putchar(':');
        tl_print_json_text(t->labels[i].value);
    }
    printf("},\"streams\":[");
    for (size_t i = 0; i < t->n_streams; i++) {
        fputs(i ? "," : "", stdout);
        stream_json(&t->streams[i]);
    }
    printf("]}");
}

void tl_row_json(const struct tracelake_trace *trace)
{
    trace_json(trace);
    putchar('\n');
}

void tl_row_json_id(const char *trace)
{
    printf("{\"id\":");
    tl_print_json_text(trace);
    puts("}");
}

void tl_rows_json(const struct tracelake_trace *const *traces, size_t n)
{
    printf("[");
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",\n " : "", stdout);
        trace_json(traces[i]);
    }
    printf("]\n");
}
