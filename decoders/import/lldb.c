/* SPDX-License-Identifier: MIT */
/*
 * A module's place in memory becomes the mappings that the kernel would have recorded for its
 * segments, so that code, names and processes are found as in a recording of perf. Numbers of 64
 * bits may be decimal or hexadecimal text, since JSON's are doubles.
 */
#include "import/lldb.h"

#include "base/say.h"
#include "import/sources.h"
#include "perf/attr.h"
#include "perf/record.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_ADDRESS UINT64_C(0xffffffff81000000)
#define MAX_JSON       ((size_t)64 << 20)

struct reading {
    struct tl_setup *setup;
    struct tl_buf *records;
    char folder[4096]; /* of the description, with a slash; "": the current one */
    char core[64];     /* family/model; "": unknown */
    void (*warn)(void *context, const char *text);
    void *context;
    struct tl_fail *fail;
};

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *text_of(const cJSON *object, const char *name)
{
    const char *const text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text ? text : "";
}

/* A number, or text with one. False: there is none. */
static bool number_of(const cJSON *object, const char *name, uint64_t *out)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (cJSON_IsString(item)) {
        char *end;
        *out = strtoull(item->valuestring, &end, 0);
        return end != item->valuestring && !*end;
    }
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 0x1p64))
        return false;
    *out = (uint64_t)item->valuedouble;
    return true;
}

static int set_bad(struct reading *r, const char *what)
{
    return tl_fail_set(r->fail, TL_BAD, "%s: this is no trace bundle of LLDB for Intel PT", what);
}

static int set_nomem(struct reading *r)
{
    return tl_fail_set(r->fail, TL_NOMEM, "out of memory");
}

/* The path of a file that the description names. */
static void find_path(const struct reading *r, const char *name, char out[static 4096])
{
    snprintf(out, 4096, "%.*s%.2000s", *name == '/' ? 0 : 2000, r->folder, name);
}

/* ---- code ------------------------------------------------------------------------------------ */

/* Add the segments of an ELF file that are executed. Returns how many; < 0: it cannot be read. */
static int add_segments(struct reading *r, const char *path, const char *name, int32_t pid,
                        uint64_t address)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be no file */
    Elf *const elf =
        fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    size_t n = 0;
    uint64_t lowest = UINT64_MAX;
    int added = elf && elf_getphdrnum(elf, &n) == 0 ? 0 : TL_IO;
    GElf_Phdr segment;
    for (size_t i = 0; i < n; i++)
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
            segment.p_vaddr < lowest)
            lowest = segment.p_vaddr;
    for (size_t i = 0; i < n && added >= 0; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
            !(segment.p_flags & PF_X))
            continue;
        const struct tl_sources_map map = {.pid = pid,
                                           .address = address + (segment.p_vaddr - lowest),
                                           .length = segment.p_filesz,
                                           .offset = segment.p_offset,
                                           .name = name};
        added = tl_sources_add_map(r->records, &map) < 0 ? TL_NOMEM : added + 1;
    }
    if (elf)
        elf_end(elf);
    if (fd >= 0)
        close(fd);
    return added;
}

static int add_module(struct reading *r, int32_t pid, const cJSON *module)
{
    char path[4096], absolute[4096];
    const char *const file = text_of(module, "file");
    const char *const name = *file ? file : text_of(module, "systemPath");
    uint64_t address;
    if (!*name || !number_of(module, "loadAddress", &address))
        return set_bad(r, "a module without systemPath or loadAddress");
    find_path(r, name, path);
    const int added =
        add_segments(r, path, realpath(path, absolute) ? absolute : path, pid, address);
    if (added == TL_NOMEM)
        return set_nomem(r);
    if (added <= 0)
        tl_say(r->warn, r->context, "%.2000s: no code can be read, it is left out", path);
    return TL_OK;
}

/* The kernel is at the address of its first instruction. */
static int add_kernel(struct reading *r, const cJSON *kernel, char path[static 4096])
{
    struct tl_sources_map map = {
        .pid = TL_PERF_KERNEL_PID, .address = KERNEL_ADDRESS, .name = "[kernel.kallsyms]_text"};
    const char *const file = text_of(kernel, "file");
    if (!*file)
        return set_bad(r, "a kernel without its file");
    (void)number_of(kernel, "loadAddress", &map.address);
    map.offset = map.address;
    map.length = UINT64_MAX - map.address;
    find_path(r, file, path);
    return tl_sources_add_map(r->records, &map) < 0 ? set_nomem(r) : TL_OK;
}

/* ---- trace ----------------------------------------------------------------------------------- */

static int add_file(struct reading *r, size_t source, const char *name, uint64_t sideband)
{
    struct tl_setup *const s = r->setup;
    char path[4096];
    find_path(r, name, path);
    char *const copy = strdup(path);
    if (!copy || tl_grow(&s->files, &s->cap_files, s->n_files + 1, sizeof *s->files) < 0) {
        free(copy);
        return set_nomem(r);
    }
    s->files[s->n_files++] =
        (struct tl_setup_file){.file = copy, .source = source, .sideband = sideband};
    return TL_OK;
}

/* Add a source with its trace; `switches`: file of context switches, "": none. */
static int add_source(struct reading *r, const char *kind, uint64_t number, const char *trace,
                      const char *switches)
{
    struct tl_source *const source = tl_setup_add_source(r->setup);
    if (!source)
        return set_nomem(r);
    const size_t index = (size_t)(source - r->setup->sources);
    snprintf(source->name, sizeof source->name, "pt.%s%" PRIu64, kind, number);
    snprintf(source->core, sizeof source->core, "%.30s", r->core);
    source->protocol = TL_PROTO_PT;
    int rc = add_file(r, index, trace, 0);
    if (rc == TL_OK && *switches)
        rc = add_file(r, index, switches, TL_PERF_SAMPLE_TID | TL_PERF_SAMPLE_TIME);
    return rc;
}

static int add_thread(struct reading *r, int32_t pid, const char *name, const cJSON *thread)
{
    const char *const trace = text_of(thread, "iptTrace");
    uint64_t tid;
    if (!number_of(thread, "tid", &tid) || tid > INT32_MAX)
        return set_bad(r, "a thread without tid");
    if (tl_sources_add_name(r->records, pid, (int32_t)tid, name) < 0)
        return set_nomem(r);
    return *trace ? add_source(r, "t", tid, trace, "") : TL_OK;
}

static int add_process(struct reading *r, const cJSON *process)
{
    const cJSON *const modules = cJSON_GetObjectItemCaseSensitive(process, "modules");
    const cJSON *const threads = cJSON_GetObjectItemCaseSensitive(process, "threads");
    const char *const program = text_of(cJSON_GetArrayItem(modules, 0), "systemPath");
    const char *const slash = strrchr(program, '/');
    const char *const name = slash ? slash + 1 : program;
    const cJSON *item;
    uint64_t pid;
    int rc = TL_OK;
    if (!number_of(process, "pid", &pid) || pid > INT32_MAX)
        return set_bad(r, "a process without pid");
    if (tl_sources_add_name(r->records, (int32_t)pid, (int32_t)pid, name) < 0)
        return set_nomem(r);
    cJSON_ArrayForEach(item, modules) if (rc == TL_OK) rc = add_module(r, (int32_t)pid, item);
    cJSON_ArrayForEach(item, threads) if (rc == TL_OK) rc = add_thread(r, (int32_t)pid, name, item);
    return rc;
}

static int add_cpu(struct reading *r, const cJSON *cpu)
{
    const char *const trace = text_of(cpu, "iptTrace");
    uint64_t id;
    if ((!number_of(cpu, "id", &id) && !number_of(cpu, "coreId", &id)) || id > INT32_MAX)
        return set_bad(r, "a processor without id");
    if (!r->setup->clock.known)
        return set_bad(r, "context switches without tscPerfZeroConversion");
    return add_source(r, "", id, *trace ? trace : text_of(cpu, "traceBuffer"),
                      text_of(cpu, "contextSwitchTrace"));
}

static int read_root(struct reading *r, const cJSON *root, char kernel[static 4096])
{
    const cJSON *const cpu = cJSON_GetObjectItemCaseSensitive(root, "cpuInfo");
    const cJSON *const time = cJSON_GetObjectItemCaseSensitive(root, "tscPerfZeroConversion");
    const cJSON *const image = cJSON_GetObjectItemCaseSensitive(root, "kernel");
    const cJSON *cpus = cJSON_GetObjectItemCaseSensitive(root, "cpus");
    const cJSON *item;
    uint64_t mult, shift, zero, family, model;
    int rc = TL_OK;
    if (strcmp(text_of(root, "type"), "intel-pt") != 0)
        return set_bad(r, "no \"type\": \"intel-pt\"");
    if (!strcmp(text_of(cpu, "vendor"), "GenuineIntel") && number_of(cpu, "family", &family) &&
        number_of(cpu, "model", &model))
        snprintf(r->core, sizeof r->core, "%" PRIu64 "/%" PRIu64, family, model);
    if (number_of(time, "timeMult", &mult) && number_of(time, "timeShift", &shift) &&
        number_of(time, "timeZero", &zero))
        (void)tl_clock_set(&r->setup->clock, shift, mult, zero);
    if (!cpus)
        cpus = cJSON_GetObjectItemCaseSensitive(root, "cores");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "processes")) if (rc == TL_OK)
        rc = add_process(r, item);
    cJSON_ArrayForEach(item, cpus) if (rc == TL_OK) rc = add_cpu(r, item);
    if (rc == TL_OK && image)
        rc = add_kernel(r, image, kernel);
    if (rc == TL_OK && r->setup->n_files == 0)
        rc = set_bad(r, "neither threads nor processors have an iptTrace");
    return rc;
}

bool tl_lldb_find(const char *path, bool configured, char out[static 4096])
{
    static const char suffix[] = ".json";
    const size_t n = strlen(path);
    const bool is_named = n >= sizeof suffix && strcmp(path + n + 1 - sizeof suffix, suffix) == 0;
    char first[64] = "";
    struct stat st;
    const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (snprintf(out, 4096, "%s%s", path, is_folder ? "/trace.json" : "") >= 4096 ||
        stat(out, &st) < 0 || !S_ISREG(st.st_mode) || (configured && !is_folder && !is_named))
        return false;
    FILE *const file = fopen(out, "r");
    if (!file)
        return false;
    first[fread(first, 1, sizeof first - 1, file)] = 0;
    fclose(file);
    return first[strspn(first, " \t\r\n")] == '{';
}

int tl_lldb_read(struct tl_setup *setup, struct tl_buf *records, char kernel[4096],
                 const char *path, void (*warn)(void *context, const char *text), void *context,
                 struct tl_fail *fail)
{
    struct reading r = {
        .setup = setup, .records = records, .warn = warn, .context = context, .fail = fail};
    const char *const slash = strrchr(path, '/');
    struct tl_buf text = {0};
    if (slash)
        snprintf(r.folder, sizeof r.folder, "%.*s", (int)(slash + 1 - path), path);
    *kernel = 0;
    int rc = tl_buf_read_file(&text, path, MAX_JSON, fail);
    cJSON *const root = rc == TL_OK ? cJSON_ParseWithLength((char *)text.p, text.n) : NULL;
    if (rc == TL_OK)
        rc = root ? read_root(&r, root, kernel) : set_bad(&r, "not JSON");
    cJSON_Delete(root);
    tl_buf_fini(&text);
    return rc;
}
