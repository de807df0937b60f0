/* SPDX-License-Identifier: MIT */
/*
 * Reads the values of a folder and of a listing to one table of devices, and makes sources of it.
 * Only files that a decoder needs are opened, because folders of sysfs are connected by links in
 * all directions, and reading some files has effects.
 */
#include "base/args.h"
#include "base/buf.h"
#include "import/system.h"
#include "setup/midr.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME = 40, PATH = 1024, MAX_LISTING = 64 << 20, MAX_VALUE = 64 << 10, CPUS = 1024 };

/* The files that are read, by what they are about. */
enum value {
    CPU,
    MODE,
    CONFIG,
    TRACE_ID,
    TRACE_ID_HERE, /* some kernels hide the one above */
    DEVARCH,
    IDR0,
    IDR1,
    IDR2,
    IDR8,
    ETMCR,
    ETMTRACEIDR,
    ETMCCER,
    ETMIDR,
    STM_ID,
    ENABLE_SINK,
    FFCR,
    VALUES
};

static const char *const files[VALUES] = {
    [CPU] = "cpu",
    [MODE] = "mode",
    [CONFIG] = "mgmt/trcconfig",
    [TRACE_ID] = "mgmt/trctraceid",
    [TRACE_ID_HERE] = "trctraceid",
    [DEVARCH] = "mgmt/trcdevarch",
    [IDR0] = "trcidr/trcidr0",
    [IDR1] = "trcidr/trcidr1",
    [IDR2] = "trcidr/trcidr2",
    [IDR8] = "trcidr/trcidr8",
    [ETMCR] = "mgmt/etmcr",
    [ETMTRACEIDR] = "mgmt/etmtraceidr",
    [ETMCCER] = "mgmt/etmccer",
    [ETMIDR] = "mgmt/etmidr",
    [STM_ID] = "traceid",
    [ENABLE_SINK] = "enable_sink",
    [FFCR] = "mgmt/ffcr",
};

struct device {
    char name[NAME];
    uint64_t values[VALUES];
    bool has[VALUES];
};

struct reading {
    tl_say_sink *warn;
    void *context;
    struct device *devices;
    size_t n, cap;
    uint64_t midr[CPUS]; /* 0: unknown */
    int cpuinfo_cpu;     /* whose lines of a cpuinfo follow; -1: none */
};

/* The device with this name, added if it is new; NULL: out of memory. */
static struct device *device_named(struct reading *r, const char *name, size_t n)
{
    char cut[NAME] = "";
    for (size_t i = 0; i < n && i < NAME - 1; i++)
        cut[i] = isalnum((unsigned char)name[i]) || strchr("._-", name[i]) ? name[i] : '_';
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->devices[i].name, cut) == 0)
            return &r->devices[i];
    if (tl_grow(&r->devices, &r->cap, r->n + 1, sizeof *r->devices) < 0)
        return NULL;
    struct device *const device = &r->devices[r->n++];
    *device = (struct device){0};
    memcpy(device->name, cut, sizeof cut);
    return device;
}

/* A number without what follows it in its line; false: it is none, as of a unit that was asleep. */
static bool number_of(const char *text, size_t n, uint64_t *out)
{
    char word[24];
    while (n && strchr(" \t", *text))
        text++, n--;
    size_t k = 0;
    while (k < n && !strchr(" \t\r\n", text[k]))
        k++;
    snprintf(word, sizeof word, "%.*s", (int)(k < sizeof word ? k : sizeof word - 1), text);
    return *word && tl_number_parse(word, out) == TL_OK;
}

static void set(struct device *device, enum value which, uint64_t value)
{
    device->values[which] = value;
    device->has[which] = true;
}

/* ---- processors ------------------------------------------------------------------------------ */

/* A line of cpuinfo, "CPU part\t: 0xd03": those of a processor follow its number. */
static void take_cpuinfo(struct reading *r, const char *line, size_t n)
{
    static const struct {
        const char *key;
        unsigned shift;
    } parts[] = {{"CPU implementer", 24}, {"CPU part", 4}, {"CPU variant", 20}};
    const char *const colon = memchr(line, ':', n);
    uint64_t value;
    if (!colon || !number_of(colon + 1, n - (size_t)(colon + 1 - line), &value))
        return;
    if (strncmp(line, "processor", 9) == 0)
        r->cpuinfo_cpu = value < CPUS ? (int)value : -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && r->cpuinfo_cpu >= 0; i++)
        if (strncmp(line, parts[i].key, strlen(parts[i].key)) == 0)
            r->midr[r->cpuinfo_cpu] |= value << parts[i].shift;
}

static void take_cpuinfo_file(struct reading *r, const struct tl_buf *text)
{
    const char *p = (const char *)text->p, *const end = p + text->n;
    while (p < end) {
        const char *const stop = memchr(p, '\n', (size_t)(end - p));
        const size_t n = stop ? (size_t)(stop - p) : (size_t)(end - p);
        take_cpuinfo(r, p, n);
        p += n + 1;
    }
}

/* ---- a folder -------------------------------------------------------------------------------- */

/* Read a small file; false: there is none, or it cannot be read. */
static bool read_value(const char *path, struct tl_buf *out)
{
    struct tl_fail fail;
    tl_buf_reset(out);
    return tl_buf_read_file(out, path, MAX_VALUE, &fail) == TL_OK;
}

static int read_device(struct reading *r, const char *folder, const char *name, struct tl_buf *text)
{
    struct device *const device = device_named(r, name, strlen(name));
    for (unsigned i = 0; device && i < VALUES; i++) {
        char path[2 * PATH];
        uint64_t value;
        snprintf(path, sizeof path, "%s/%s/%s", folder, name, files[i]);
        if (read_value(path, text) && number_of((char *)text->p, text->n, &value))
            set(device, (enum value)i, value);
    }
    return device ? TL_OK : TL_NOMEM;
}

/* Names of the cores, where a copy of /sys, of /proc or of parts of them has them. */
static void read_processors(struct reading *r, const char *folder, struct tl_buf *text)
{
    static const char *const systems[] = {"../../../devices/system/cpu", "."};
    static const char *const infos[] = {"cpuinfo", "../cpuinfo", "../../../../proc/cpuinfo"};
    char path[2 * PATH];
    bool found = false;
    for (unsigned i = 0; i < CPUS * 2; i++) {
        uint64_t midr;
        snprintf(path, sizeof path, "%s/%s/cpu%u/regs/identification/midr_el1", folder,
                 systems[i % 2], i / 2);
        if (read_value(path, text) && number_of((char *)text->p, text->n, &midr)) {
            r->midr[i / 2] = midr;
            found = true;
        }
    }
    for (size_t k = 0; k < sizeof infos / sizeof *infos && !found; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, infos[k]);
        found = read_value(path, text);
        if (found)
            take_cpuinfo_file(r, text);
    }
}

static int read_folder(struct reading *r, const char *path, struct tl_fail *fail)
{
    static const char *const below[] = {"sys/bus/coresight/devices", "bus/coresight/devices",
                                        "coresight/devices", "devices", "."};
    char folder[PATH];
    struct stat st;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(folder, sizeof folder, "%.*s/%s", PATH / 2, path, below[i]);
        if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
            break;
    }
    DIR *const dir = opendir(folder);
    if (!dir)
        return tl_fail_set(fail, TL_IO, "cannot be read");
    struct tl_buf text = {0};
    int rc = TL_OK;
    for (const struct dirent *e; rc == TL_OK && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            rc = read_device(r, folder, e->d_name, &text);
    closedir(dir);
    if (rc == TL_OK)
        read_processors(r, folder, &text);
    tl_buf_fini(&text);
    return rc < 0 ? tl_fail_set(fail, TL_NOMEM, "out of memory") : TL_OK;
}

/* ---- a listing ------------------------------------------------------------------------------- */

/* Does the path of `n` characters end in "/cpuN/regs/identification/midr_el1"? */
static bool is_midr(const char *path, size_t n, uint64_t *cpu)
{
    static const char file[] = "/regs/identification/midr_el1";
    const size_t tail = sizeof file - 1;
    if (n <= tail || memcmp(path + n - tail, file, tail) != 0)
        return false;
    size_t at = n -= tail;
    while (at && path[at - 1] != '/')
        at--;
    return n - at > 3 && memcmp(path + at, "cpu", 3) == 0 &&
           number_of(path + at + 3, n - at - 3, cpu);
}

/* The device and the value that a path is of; false: another file. */
static bool split(const char *path, size_t n, const char **name, size_t *name_n, enum value *which)
{
    for (unsigned i = 0; i < VALUES; i++) {
        const size_t k = strlen(files[i]);
        if (n < k + 2 || path[n - k - 1] != '/' || memcmp(path + n - k, files[i], k) != 0)
            continue;
        size_t at = n - k - 1;
        while (at && path[at - 1] != '/')
            at--;
        *name = path + at;
        *name_n = n - k - 1 - at;
        *which = (enum value)i;
        return *name_n > 0;
    }
    return false;
}

static int take_line(struct reading *r, const char *line, size_t n)
{
    static const char info[] = "cpuinfo:";
    const char *const cpuinfo = memmem(line, n, info, sizeof info - 1);
    if (cpuinfo) {
        const char *const rest = cpuinfo + sizeof info - 1;
        take_cpuinfo(r, rest, n - (size_t)(rest - line));
        return TL_OK;
    }
    const char *const colon = memrchr(line, ':', n);
    const char *name;
    size_t name_n;
    enum value which;
    uint64_t value, cpu;
    if (!colon || !number_of(colon + 1, n - (size_t)(colon + 1 - line), &value))
        return TL_OK;
    const size_t path_n = (size_t)(colon - line);
    if (is_midr(line, path_n, &cpu) && cpu < CPUS)
        r->midr[cpu] = value;
    if (!split(line, path_n, &name, &name_n, &which))
        return TL_OK;
    struct device *const device = device_named(r, name, name_n);
    if (device)
        set(device, which, value);
    return device ? TL_OK : TL_NOMEM;
}

static int read_listing(struct reading *r, const char *path, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    int rc = tl_buf_read_file(&text, path, MAX_LISTING, fail);
    const char *p = (const char *)text.p, *const end = p + text.n;
    while (rc == TL_OK && p < end) {
        const char *const stop = memchr(p, '\n', (size_t)(end - p));
        const size_t n = stop ? (size_t)(stop - p) : (size_t)(end - p);
        rc = take_line(r, p, n);
        if (rc == TL_NOMEM)
            tl_fail_set(fail, TL_NOMEM, "out of memory");
        p += n + 1;
    }
    tl_buf_fini(&text);
    return rc;
}

/* ---- sources --------------------------------------------------------------------------------- */

/*
 * TRCCONFIGR as the driver makes it of its own word `mode` when it starts the unit: the fields have
 * the same meaning, two of them other places, and what TRCIDR0 says is not there stays off.
 */
static uint64_t config_of_mode(uint64_t mode, uint64_t idr0)
{
    uint64_t config = (mode & 0x1fc0) | (mode >> 1 & 0x18);
    if (!(idr0 >> 7 & 1))
        config &= ~UINT64_C(0x10); /* cycles */
    if (!(idr0 >> 24 & 0x1f))
        config &= ~UINT64_C(0x800); /* timestamps */
    if (!(idr0 >> 9 & 1))
        config &= ~UINT64_C(0x1000); /* return stack */
    if (!(idr0 >> 6 & 1))
        config &= ~UINT64_C(0x700); /* conditional instructions */
    return config;
}

static uint64_t trcconfigr(const struct reading *r, const struct device *d)
{
    if (d->has[CONFIG] && d->values[CONFIG])
        return d->values[CONFIG];
    if (d->has[MODE]) {
        tl_say(r->warn, r->context,
               "%s: mgmt/trcconfig is %s; TRCCONFIGR is what the driver makes of mode 0x%llx",
               d->name, d->has[CONFIG] ? "0, as of a unit that was off" : "not there",
               (unsigned long long)d->values[MODE]);
        return config_of_mode(d->values[MODE], d->values[IDR0]);
    }
    tl_say(r->warn, r->context,
           "%s: neither mgmt/trcconfig nor mode says what was traced; TRCCONFIGR is taken as 0",
           d->name);
    return 0;
}

static bool is_etm4(const struct device *d)
{
    return d->has[IDR0] || d->has[CONFIG] || d->has[TRACE_ID];
}

static bool is_etm3(const struct device *d)
{
    return d->has[ETMIDR] || d->has[ETMCR] || d->has[ETMTRACEIDR];
}

static bool is_valid_id(uint64_t id)
{
    return id >= 1 && id <= 0x6f;
}

/* The trace ID of a processor's unit: as it is read, else as Linux gives it. */
static uint64_t trace_id(const struct reading *r, const struct device *d)
{
    static const enum value places[] = {TRACE_ID, TRACE_ID_HERE, ETMTRACEIDR, STM_ID};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (d->has[places[i]] && is_valid_id(d->values[places[i]] & 0x7f))
            return d->values[places[i]] & 0x7f;
    const uint16_t id = tl_system_trace_id(d->values[CPU]);
    tl_say(r->warn, r->context,
           "%s: its trace ID is not readable; taken as 0x%x, which Linux prefers for cpu %llu",
           d->name, id, (unsigned long long)d->values[CPU]);
    return id;
}

static int add_registers(struct tl_source *s, const struct device *d, const enum value *which,
                         const char *const *names, size_t n)
{
    int rc = TL_OK;
    for (size_t i = 0; i < n && rc == TL_OK; i++)
        if (d->has[which[i]])
            rc = tl_source_set_reg(s, names[i], d->values[which[i]]);
    return rc;
}

static int fill_etm4(const struct reading *r, const struct device *d, struct tl_source *s)
{
    static const enum value which[] = {IDR0, IDR1, IDR2, IDR8};
    static const char *const names[] = {"TRCIDR0", "TRCIDR1", "TRCIDR2", "TRCIDR8"};
    const uint64_t devarch = d->values[DEVARCH];
    const bool ete = (devarch & 0xffff) == 0x5a13;
    s->protocol = ete ? TL_PROTO_ETE : TL_PROTO_ETM4;
    if (ete)
        snprintf(s->type, sizeof s->type, "ETE1.%u", (unsigned)(devarch >> 16 & 15));
    else
        snprintf(s->type, sizeof s->type, "ETM4.%u", (unsigned)(d->values[IDR1] >> 4 & 15));
    if (!d->has[IDR0] || !d->has[IDR2])
        tl_say(r->warn, r->context,
               "%s: trcidr/trcidr0 and trcidr2 are not both there; widths of its packets are taken "
               "as those of most Cortex-A",
               d->name);
    int rc = tl_source_set_reg(s, "TRCCONFIGR", trcconfigr(r, d));
    if (rc == TL_OK)
        rc = tl_source_set_reg(s, "TRCTRACEIDR", s->id);
    if (rc == TL_OK)
        rc = add_registers(s, d, which, names, sizeof which / sizeof *which);
    if (rc == TL_OK && ete)
        rc = tl_source_set_reg(s, "TRCDEVARCH", devarch);
    return rc;
}

/* Program flow trace has major version 3 in ETMIDR, bits 11:8, ETMv3 has 2. */
static int fill_etm3(const struct device *d, struct tl_source *s)
{
    static const enum value which[] = {ETMCR, ETMTRACEIDR, ETMCCER, ETMIDR};
    static const char *const names[] = {"ETMCR", "ETMTRACEIDR", "ETMCCER", "ETMIDR"};
    const bool ptm = (d->values[ETMIDR] >> 8 & 15) == 3;
    s->protocol = ptm ? TL_PROTO_PTM : TL_PROTO_ETM3;
    snprintf(s->type, sizeof s->type, ptm ? "PTM1.%u" : "ETM3.%u",
             (unsigned)(d->values[ETMIDR] >> 4 & 15));
    return add_registers(s, d, which, names, sizeof which / sizeof *which);
}

static int add_source(const struct reading *r, const struct device *d, struct tl_setup *setup,
                      struct tl_fail *fail)
{
    const bool stm = !is_etm4(d) && !is_etm3(d);
    const uint64_t id = trace_id(r, d), cpu = d->values[CPU];
    if (tl_setup_source(setup, (unsigned)id))
        return tl_fail_set(fail, TL_BAD,
                           "%s and %s have the same trace ID 0x%x: the copy is from different "
                           "sessions; write down the IDs of one",
                           tl_setup_source(setup, (unsigned)id)->device, d->name, (unsigned)id);
    struct tl_source *const s = tl_setup_add_source(setup);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    s->id = (uint16_t)id;
    snprintf(s->name, sizeof s->name, "cs.%02x", s->id);
    int rc = TL_OK;
    if (stm) {
        s->protocol = TL_PROTO_STM;
        snprintf(s->type, sizeof s->type, "STM");
        snprintf(s->device, sizeof s->device, "%.39s", d->name);
        return TL_OK;
    }
    const char *const core = cpu < CPUS ? tl_midr_name(r->midr[cpu]) : NULL;
    snprintf(s->device, sizeof s->device, "%.20s of cpu %u", d->name, (unsigned)cpu);
    snprintf(s->core, sizeof s->core, "%s", core ? core : is_etm4(d) ? "ARM-AA64" : "");
    if (!core)
        tl_say(r->warn, r->context, "%s: the core of cpu %u is not known; %s", d->name,
               (unsigned)cpu, is_etm4(d) ? "taken as a 64-bit Armv8" : "give it by core=");
    rc = is_etm4(d) ? fill_etm4(r, d, s) : fill_etm3(d, s);
    return rc < 0 ? tl_fail_set(fail, (enum tl_err)rc, "out of memory") : TL_OK;
}

static bool is_source(const struct device *d)
{
    return is_etm4(d) || is_etm3(d) || (strncmp(d->name, "stm", 3) == 0 && d->has[STM_ID]);
}

/* In order of their processors. */
static int by_cpu(const void *a, const void *b)
{
    const struct device *const x = a, *const y = b;
    const uint64_t m = x->has[CPU] ? x->values[CPU] : UINT64_MAX;
    const uint64_t n = y->has[CPU] ? y->values[CPU] : UINT64_MAX;
    return m != n ? (m > n) - (m < n) : strcmp(x->name, y->name);
}

/* Bytes of a sink whose formatter is off are those of its only source. */
static int set_format(const struct reading *r, struct tl_setup *setup, struct tl_fail *fail)
{
    const char *format = "tpiu";
    for (size_t i = 0; i < r->n; i++) {
        const struct device *const d = &r->devices[i];
        if (!d->values[ENABLE_SINK] || !d->has[FFCR] || d->values[FFCR] & 1)
            continue;
        if (setup->n_sources == 1)
            format = tl_format_of(setup->sources[0].protocol)->name;
        else
            tl_say(r->warn, r->context,
                   "%s: its formatter is off, but there are %zu sources; taken as frames", d->name,
                   setup->n_sources);
    }
    if (setup->format[0])
        return TL_OK;
    if (strcmp(format, "tpiu") == 0)
        return tl_setup_format(setup, format, fail);
    setup->container = TL_CONTAINER_SINGLE; /* its source is there */
    snprintf(setup->format, sizeof setup->format, "%s,id=0x%x", format, setup->sources[0].id);
    return TL_OK;
}

int tl_sysfs_read(struct tl_setup *setup, const char *path,
                  void (*report)(void *context, const char *text), void *context,
                  struct tl_fail *fail)
{
    struct reading *const r = calloc(1, sizeof *r);
    struct stat st;
    if (!r)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    r->warn = report;
    r->context = context;
    r->cpuinfo_cpu = -1;
    const bool there = stat(path, &st) == 0, is_folder = there && S_ISDIR(st.st_mode);
    if (!there && !strcmp(path, TL_SYSFS_CORESIGHT)) {
        free(r);
        return tl_fail_set(fail, TL_NOTFOUND,
                           "this machine has no CoreSight, or its drivers are not loaded; a copy "
                           "of a board's folder, made there by 'cp -rL', is read, too");
    }
    int rc = is_folder ? read_folder(r, path, fail) : read_listing(r, path, fail);
    if (r->n)
        qsort(r->devices, r->n, sizeof *r->devices, by_cpu);
    for (size_t i = 0; rc == TL_OK && i < r->n; i++)
        if (is_source(&r->devices[i]))
            rc = add_source(r, &r->devices[i], setup, fail);
    if (rc == TL_OK && setup->n_sources == 0)
        rc = tl_fail_set(fail, TL_BAD,
                         "there is no CoreSight trace unit; copy " TL_SYSFS_CORESIGHT
                         " with 'cp -rL', or list it with 'grep -r . '");
    if (rc == TL_OK)
        rc = set_format(r, setup, fail);
    free(r->devices);
    free(r);
    return rc;
}
