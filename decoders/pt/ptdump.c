/* SPDX-License-Identifier: MIT */
/*
 * Keeps the reference's state of time and calibration beside the packets, because its listing
 * prints them with the packet that changes them. Errors stop a listing at the packet where the
 * reference stops, and it goes on at the next PSB.
 */
#include "pt/ptdump.h"

#include "pt/error.h"
#include "pt/tool_options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A line under construction. */
struct line {
    char opcode[16], payload[64];
    char id[8],
        tracked[32]; /* a value that is tracked over packets, by the options: which, and it */
    bool skip;
};

struct dump {
    struct tl_buf *out;
    const struct tl_pt_dump_options *options;
    const struct tl_pt_config *config;
    struct tl_bytes trace;
    struct tl_pt_last_ip last_ip;
    struct tl_pt_clock clock;
    uint64_t tsc, fcr; /* last printed */
    bool header;       /* within PSB+ */
    int rc;
};

/* ---- options -------------------------------------------------------------------------------- */

int tl_pt_dump_option(struct tl_pt_dump_options *o, struct tl_pt_config *config, int argc,
                      char **argv, int *i)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"--no-sync", &o->no_sync},
        {"--quiet", &o->quiet},
        {"--no-pad", &o->no_pad},
        {"--no-timing", &o->no_timing},
        {"--no-cyc", &o->no_cyc},
        {"--no-offset", &o->no_offset},
        {"--raw", &o->raw},
        {"--lastip", &o->last_ip},
        {"--exec-mode", &o->exec_mode},
        {"--time", &o->time},
        {"--tcal", &o->tcal},
        {"--time-delta", &o->time_delta},
        {"--no-tcal", &o->no_tcal},
        {"--no-wall-clock", &o->no_wall_clock},
        {"--keep-tcal-on-ovf", &o->keep_tcal_on_ovf},
    };
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
        if (!strcmp(argv[*i], flags[k].name)) {
            *flags[k].flag = true;
            ++*i;
            return o->time && o->tcal ? TL_USAGE : TL_OK;
        }
    return tl_pt_config_option(config, argc, argv, i);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void put(struct dump *d, const char *format, ...)
{
    va_list args;
    char text[256];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (d->rc >= 0)
        d->rc = tl_buf_add(d->out, text, strlen(text));
}

static void diagnose(struct dump *d, uint64_t offset, const char *what, enum tl_pt_error error)
{
    if (error != TL_PT_OK)
        put(d, "[%" PRIx64 ": %s: %s]\n", offset, what, tl_pt_error_text(error));
    else
        put(d, "[%" PRIx64 ": %s]\n", offset, what);
}

static void print_line(struct dump *d, const struct tl_pt_packet *p, const struct line *line)
{
    const char *separator = "";
    if (line->skip || d->options->quiet)
        return;
    if (!d->options->no_offset) {
        put(d, "%016" PRIx64, p->offset);
        separator = "  ";
    }
    if (d->options->raw) {
        put(d, "%s", separator);
        for (unsigned i = 0; i < p->size; i++)
            put(d, "%02x", d->trace.p[p->offset + i]);
        separator = "  ";
    }
    put(d, line->payload[0] ? "%s%-10s" : "%s%s", separator, line->opcode);
    if (line->id[0])
        put(d, " %-25s %-5s%s", line->payload, line->id, line->tracked);
    else if (line->payload[0])
        put(d, " %s", line->payload);
    put(d, "\n");
}

/* ---- time ----------------------------------------------------------------------------------- */

static void track_delta(struct line *line, uint64_t now, uint64_t *before)
{
    if (*before <= now)
        snprintf(line->tracked, sizeof line->tracked, "+%" PRIx64, now - *before);
    else
        snprintf(line->tracked, sizeof line->tracked, "-%" PRIx64, *before - now);
    *before = now;
}

static void print_time(struct dump *d, const struct tl_pt_packet *p, struct line *line)
{
    const struct tl_pt_time *const t = &d->clock.time;
    strcpy(line->id, "tsc");
    if (!t->have_tsc && !d->options->no_wall_clock) {
        diagnose(d, p->offset, "error printing time", TL_PT_NO_TIME);
        strcpy(line->tracked, "<unavailable>");
    } else if (d->options->time_delta) {
        track_delta(line, t->tsc, &d->tsc);
    } else {
        snprintf(line->tracked, sizeof line->tracked, "%016" PRIx64, t->tsc);
    }
}

static void print_tcal(struct dump *d, const struct tl_pt_packet *p, struct line *line)
{
    const struct tl_pt_calibration *const c = &d->clock.calibration;
    const double unit = 1 << TL_PT_FCR_SHIFT;
    strcpy(line->id, "fcr");
    if (!c->known) {
        diagnose(d, p->offset, "error printing time", TL_PT_NO_TIME);
        strcpy(line->tracked, "<unavailable>");
    } else if (d->options->time_delta) {
        const bool less = c->fcr < d->fcr;
        snprintf(line->tracked, sizeof line->tracked, "%c%.3f", less ? '-' : '+',
                 (double)(less ? d->fcr - c->fcr : c->fcr - d->fcr) / unit);
        d->fcr = c->fcr;
    } else {
        snprintf(line->tracked, sizeof line->tracked, "%.3f", (double)c->fcr / unit);
    }
}

static void check(struct dump *d, const struct tl_pt_packet *p, const char *what,
                  enum tl_pt_time_error error)
{
    if (error != TL_PT_TIME_OK)
        diagnose(d, p->offset, what, tl_pt_error_of_time(error));
}

static void track_cyc(struct dump *d, const struct tl_pt_packet *p)
{
    struct tl_pt_calibration *const c = &d->clock.calibration;
    uint64_t fcr = 0;
    if (!d->options->no_tcal) {
        if (c->known)
            fcr = c->fcr;
        else
            diagnose(d, p->offset, "calibration error", TL_PT_NO_TIME);
        tl_pt_calibrate_cyc(c, p->cyc);
    }
    const enum tl_pt_time_error e = tl_pt_time_cyc(&d->clock.time, d->config, p->cyc, fcr);
    check(d, p, "error updating time", e);
    if (e == TL_PT_TIME_OK && !fcr)
        diagnose(d, p->offset, "error updating time: no calibration", TL_PT_OK);
}

/* Update the clock and print what the packet changes in it. */
static void track_time(struct dump *d, const struct tl_pt_packet *p, struct line *line)
{
    static const char calibrating[] = "error calibrating time", updating[] = "error updating time";
    struct tl_pt_time *const t = &d->clock.time;
    struct tl_pt_calibration *const c = &d->clock.calibration;
    const bool calibrate = !d->options->no_tcal;
    bool reports_time = true, reports_tcal = true;
    if (!d->options->time && !d->options->tcal)
        return;
    switch (p->kind) {
    case TL_PT_PSB:
        tl_pt_calibrate_psb(c, d->config);
        return;
    case TL_PT_OVF:
        if (d->options->keep_tcal_on_ovf) {
            c->tsc = c->cyc_tsc = c->cyc_mtc = c->ctc = 0;
            c->have_mtc = false;
        } else {
            *c = (struct tl_pt_calibration){0};
        }
        return;
    case TL_PT_TSC:
        if (calibrate)
            check(d, p, calibrating, tl_pt_calibrate_tsc(c, p->tsc, d->header));
        tl_pt_time_tsc(t, p->tsc);
        break;
    case TL_PT_CBR:
        if (calibrate)
            check(d, p, calibrating, tl_pt_calibrate_cbr(c, d->config, p->cbr, d->header));
        check(d, p, updating, tl_pt_time_cbr(t, p->cbr));
        reports_time = false;
        break;
    case TL_PT_TMA:
        check(d, p, updating, tl_pt_time_tma(t, d->config, p->tma.ctc, p->tma.fc));
        reports_tcal = false;
        break;
    case TL_PT_MTC:
        if (calibrate)
            check(d, p, calibrating, tl_pt_calibrate_mtc(c, d->config, p->mtc));
        check(d, p, updating, tl_pt_time_mtc(t, d->config, p->mtc));
        break;
    case TL_PT_CYC:
        if (d->options->no_cyc)
            return;
        track_cyc(d, p);
        reports_tcal = false;
        break;
    default:
        return;
    }
    if (d->options->tcal && reports_tcal)
        print_tcal(d, p, line);
    if (d->options->time && reports_time)
        print_time(d, p, line);
}

/* ---- packets -------------------------------------------------------------------------------- */

#define PAYLOAD(...) snprintf(line->payload, sizeof line->payload, __VA_ARGS__)

static void print_address(struct dump *d, const struct tl_pt_packet *p, struct line *line)
{
    static const uint8_t digits[8] = {0, 4, 8, 16, 12, 16, 16, 16};
    const unsigned n = digits[p->address.ipc];
    uint64_t payload = p->address.payload;
    if (p->address.ipc == TL_PT_IP_SEXT_48)
        payload = (uint64_t)((int64_t)(payload << 16) >> 16);
    if (n > 0)
        PAYLOAD("%x: %.*s%0*" PRIx64, p->address.ipc, (int)(16 - n), "????????????????", (int)n,
                payload);
    else
        PAYLOAD("0: ????????????????");
    if (!d->options->last_ip)
        return;
    tl_pt_last_ip_update(&d->last_ip, p);
    strcpy(line->id, "ip");
    if (!d->last_ip.have) {
        diagnose(d, p->offset, "error tracking last-ip", TL_PT_NO_IP);
        strcpy(line->tracked, "<unavailable>");
    } else if (d->last_ip.suppressed) {
        strcpy(line->tracked, "<suppressed>");
    } else {
        snprintf(line->tracked, sizeof line->tracked, "%016" PRIx64, d->last_ip.ip);
    }
}

/* `names[type]`; "" there is a type that has none. */
static void print_type(struct line *line, const char *const *names, size_t n, unsigned type)
{
    strcpy(line->id, "type");
    strcpy(line->tracked, type < n && names[type][0] ? names[type] : "unknown");
}

static void print_cfe(const struct tl_pt_packet *p, struct line *line)
{
    static const char *const names[] = {
        "",       "intr",        "iret",     "smi", "rsm",   "sipi",  "init",   "vmentry",
        "vmexit", "vmexit_intr", "shutdown", "",    "uintr", "uiret", "swintr", "syscall"};
    const uint8_t type = p->cfe.type;
    const bool vector = type == TL_PT_CFE_INTR || type == TL_PT_CFE_VMEXIT_INTR ||
                        type == TL_PT_CFE_UINTR || type == TL_PT_CFE_SWINTR;
    const char *const ip = p->ip ? ", ip" : "";
    if (type ==
        TL_PT_CFE_SIPI) /* the vector is a page number, the others are numbers of interrupts */
        PAYLOAD("%u: %x%s", type, p->cfe.vector, ip);
    else if (vector)
        PAYLOAD("%u: %u%s", type, p->cfe.vector, ip);
    else
        PAYLOAD("%u%s", type, ip);
    print_type(line, names, sizeof names / sizeof *names, type);
}

static void print_evd(const struct tl_pt_packet *p, struct line *line)
{
    static const char *const names[] = {"cr2", "vmxq", "vmxr"};
    PAYLOAD("%u: %" PRIx64, p->evd.type, p->evd.payload);
    print_type(line, names, sizeof names / sizeof *names, p->evd.type);
}

static void print_pwrx(const struct tl_pt_packet *p, struct line *line)
{
    PAYLOAD("%s: c%u, c%u",
            p->pwrx.interrupt    ? "int"
            : p->pwrx.store      ? " st"
            : p->pwrx.autonomous ? " hw"
                                 : "bad",
            (p->pwrx.last + 1) & 15u, (p->pwrx.deepest + 1) & 15u);
}

static void print_exec(struct dump *d, const struct tl_pt_packet *p, struct line *line)
{
    const char *const names[3] = {p->exec.csd ? "cs.d" : "", p->exec.csl ? "cs.l" : "",
                                  p->exec.iflag ? "if" : ""};
    for (unsigned i = 0; i < 3; i++)
        if (names[i][0]) {
            const size_t n = strlen(line->payload);
            snprintf(line->payload + n, sizeof line->payload - n, "%s%s", n ? ", " : "", names[i]);
        }
    if (!d->options->exec_mode)
        return;
    strcpy(line->id, "em");
    strcpy(line->tracked, p->exec.csl ? (p->exec.csd ? "unknown" : "64-bit")
                                      : (p->exec.csd ? "32-bit" : "16-bit"));
}

static void print_payload(struct dump *d, const struct tl_pt_packet *p, struct line *line)
{
    switch (p->kind) {
    case TL_PT_TIP:
    case TL_PT_TIP_PGE:
    case TL_PT_TIP_PGD:
    case TL_PT_FUP:
        print_address(d, p, line);
        break;
    case TL_PT_TNT_8:
    case TL_PT_TNT_64:
        for (unsigned i = 0; i < p->tnt.n; i++)
            line->payload[i] = p->tnt.bits >> (p->tnt.n - 1 - i) & 1 ? '!' : '.';
        break;
    case TL_PT_MODE_EXEC:
        print_exec(d, p, line);
        break;
    case TL_PT_MODE_TSX:
        PAYLOAD("%s%s%s", p->tsx.intx ? "intx" : "", p->tsx.intx && p->tsx.abrt ? ", " : "",
                p->tsx.abrt ? "abrt" : "");
        break;
    case TL_PT_TSC:
        PAYLOAD("%" PRIx64, p->tsc);
        break;
    case TL_PT_TMA:
        PAYLOAD("%x, %x", p->tma.ctc, p->tma.fc);
        break;
    case TL_PT_MTC:
        PAYLOAD("%x", p->mtc);
        break;
    case TL_PT_CYC:
        PAYLOAD("%" PRIx64, p->cyc);
        break;
    case TL_PT_CBR:
        PAYLOAD("%x", p->cbr);
        break;
    case TL_PT_PIP:
        PAYLOAD("%" PRIx64 "%s", p->pip.cr3, p->pip.nr ? ", nr" : "");
        strcpy(line->id, "cr3");
        snprintf(line->tracked, sizeof line->tracked, "%016" PRIx64, p->pip.cr3);
        break;
    case TL_PT_VMCS:
        PAYLOAD("%" PRIx64, p->vmcs);
        strcpy(line->id, "vmcs");
        snprintf(line->tracked, sizeof line->tracked, "%016" PRIx64, p->vmcs);
        break;
    case TL_PT_EXSTOP:
        PAYLOAD("%s", p->ip ? "ip" : "");
        break;
    case TL_PT_MWAIT:
        PAYLOAD("%08x, %08x", p->mwait.hints, p->mwait.ext);
        break;
    case TL_PT_PWRE:
        PAYLOAD("c%u.%u%s", (p->pwre.state + 1) & 15u, (p->pwre.sub_state + 1) & 15u,
                p->pwre.hw ? ", hw" : "");
        break;
    case TL_PT_PWRX:
        print_pwrx(p, line);
        break;
    case TL_PT_PTW:
        PAYLOAD("%x: %" PRIx64 "%s", p->ptw.plc, p->ptw.payload, p->ip ? ", ip" : "");
        break;
    case TL_PT_CFE:
        print_cfe(p, line);
        break;
    case TL_PT_EVD:
        print_evd(p, line);
        break;
    case TL_PT_TRIG:
        PAYLOAD("%02x%s%s", p->trig.trbv, p->ip ? ", ip" : "", p->trig.mult ? ", mult" : "");
        if (p->trig.icntv) {
            const size_t n = strlen(line->payload);
            snprintf(line->payload + n, sizeof line->payload - n, ", icnt: %u", p->trig.icnt);
        }
        break;
    case TL_PT_MNT:
        PAYLOAD("%" PRIx64, p->mnt);
        break;
    default:
        break;
    }
}

static void print_packet(struct dump *d, const struct tl_pt_packet *p)
{
    static const char *const names[TL_PT_KINDS] = {
        "pad",      "tnt.8", "tnt.64", "tip",  "tip.pge", "tip.pgd",  "fup",  "mode.exec",
        "mode.tsx", "tsc",   "tma",    "mtc",  "cyc",     "cbr",      "psb",  "psbend",
        "ovf",      "stop",  "pip",    "vmcs", "exstop",  "mwait",    "pwre", "pwrx",
        "ptw",      "cfe",   "evd",    "trig", "mnt",     "<invalid>"};
    struct line line = {0};
    snprintf(line.opcode, sizeof line.opcode, "%s", names[p->kind]);
    print_payload(d, p, &line);
    track_time(d, p, &line);
    d->header = p->kind == TL_PT_PSB || (d->header && p->kind != TL_PT_PSBEND);
    const bool timing = p->kind >= TL_PT_TSC && p->kind <= TL_PT_CBR;
    line.skip = (p->kind == TL_PT_PAD && d->options->no_pad) || (timing && d->options->no_timing) ||
                (p->kind == TL_PT_CYC && d->options->no_cyc);
    print_line(d, p, &line);
}

static void begin_dump(struct dump *d)
{
    d->last_ip = (struct tl_pt_last_ip){0};
    tl_pt_clock_init(&d->clock);
    d->tsc = d->fcr = 0;
    d->header = false;
}

/* Print packets from `at` on. Returns the offset of an error, or the end. */
static size_t print_packets(struct dump *d, size_t at)
{
    while (d->rc >= 0) {
        struct tl_pt_packet p = {.offset = at};
        const struct tl_bytes rest = {d->trace.p + at, d->trace.n - at};
        const int size = tl_pt_parse(d->config, rest, &p);
        if (size == TL_AGAIN)
            break;
        if (size < 0) {
            diagnose(d, at, "error decoding packet", tl_pt_error_of(size));
            return at;
        }
        print_packet(d, &p);
        at += (size_t)size;
    }
    return d->trace.n;
}

int tl_pt_dump(struct tl_buf *out, const struct tl_pt_dump_options *options,
               const struct tl_pt_config *config, struct tl_bytes trace)
{
    struct dump d = {.out = out, .options = options, .config = config, .trace = trace};
    begin_dump(&d);
    if (!tl_pt_config_cpu_known(config))
        diagnose(&d, 0, "failed to determine errata", TL_PT_BAD_CPU);
    size_t at = options->no_sync ? 0 : tl_pt_find_psb(trace);
    while (at < trace.n) {
        at = print_packets(&d, at);
        if (at < trace.n)
            at = tl_pt_resync(trace, at);
        begin_dump(&d);
    }
    return d.rc;
}
