/* SPDX-License-Identifier: MIT */
/*
 * Reads the process's metrics from /proc. Prometheus' dashboards and alerts expect them under the
 * names that its own client libraries use.
 */
#include "process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct process {
    unsigned long long user_ticks, system_ticks, begin_ticks, virtual_bytes, threads;
    long long resident_pages;
};

/* Fields 14, 15, 20, 22 to 24, counted after the name, which may contain anything. */
static bool read_stat(struct process *out)
{
    char text[1024];
    FILE *const f = fopen("/proc/self/stat", "re");
    if (!f)
        return false;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *const name_end = strrchr(text, ')');
    return name_end &&
           sscanf(name_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %llu %*d "
                  "%llu %llu %lld",
                  &out->user_ticks, &out->system_ticks, &out->threads, &out->begin_ticks,
                  &out->virtual_bytes, &out->resident_pages) == 6;
}

/* System start time, in s since 1970; 0: not known. */
static unsigned long long boot_time(void)
{
    char line[256];
    unsigned long long s = 0;
    FILE *const f = fopen("/proc/stat", "re");
    while (f && !s && fgets(line, sizeof line, f))
        (void)!sscanf(line, "btime %llu", &s);
    if (f)
        fclose(f);
    return s;
}

static unsigned open_files(void)
{
    unsigned n = 0;
    DIR *const folder = opendir("/proc/self/fd");
    for (const struct dirent *e; folder && (e = readdir(folder));)
        n += e->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return n ? n - 1 : 0; /* excluding the folder's own descriptor */
}

static int add(struct tl_buf *out, const char *name, const char *type, const char *help,
               double value)
{
    return tl_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type,
                         name, value);
}

static int add_stat(struct tl_buf *out)
{
    struct process p;
    const double ticks = (double)sysconf(_SC_CLK_TCK);
    if (!read_stat(&p))
        return TL_OK;
    int rc = add(out, "process_cpu_seconds_total", "counter", "User and system time.",
                 (double)(p.user_ticks + p.system_ticks) / ticks);
    if (rc == TL_OK)
        rc = add(out, "process_resident_memory_bytes", "gauge", "Memory in use, shared pages too.",
                 (double)p.resident_pages * (double)sysconf(_SC_PAGESIZE));
    if (rc == TL_OK)
        rc = add(out, "process_virtual_memory_bytes", "gauge", "Address space.",
                 (double)p.virtual_bytes);
    if (rc == TL_OK)
        rc = add(out, "process_threads", "gauge", "Threads.", (double)p.threads);
    const unsigned long long boot = boot_time();
    if (rc == TL_OK && boot)
        rc = add(out, "process_start_time_seconds", "gauge", "Begin, in s since 1970.",
                 (double)boot + (double)p.begin_ticks / ticks);
    return rc;
}

int tl_process_metrics(struct tl_buf *out)
{
    struct rlimit limit;
    int rc = add_stat(out);
    if (rc == TL_OK)
        rc = add(out, "process_open_fds", "gauge", "Open file descriptors.", open_files());
    if (rc == TL_OK && !getrlimit(RLIMIT_NOFILE, &limit))
        rc = add(out, "process_max_fds", "gauge", "File descriptors that may be open.",
                 (double)limit.rlim_cur);
    return rc < 0 ? rc
                  : tl_buf_printf(out,
                                  "# HELP tracelake_build_info 1, and what was built.\n"
                                  "# TYPE tracelake_build_info gauge\n"
                                  "tracelake_build_info{version=\"%s\"} 1\n",
                                  TL_VERSION);
}
