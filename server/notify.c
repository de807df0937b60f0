/* SPDX-License-Identifier: MIT */
/*
 * Sends datagrams to the socket that the service manager names. The protocol is a few lines, so
 * that no library is needed that a server without systemd would lack.
 */
#include "notify.h"

#include "base/args.h"
#include "base/now.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void tl_notify(const char *lines)
{
    const char *const path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t n = path ? strlen(path) : 0;
    if (!n || n >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') /* abstract socket name */
        to.sun_path[0] = 0;
    const socklen_t to_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    (void)!sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&to, to_n);
    close(fd);
}

void tl_notify_reloading(void)
{
    char text[64];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)(tl_monotonic_ns() / 1000));
    tl_notify(text);
}

int64_t tl_notify_watchdog_ms(void)
{
    const char *const text = getenv("WATCHDOG_USEC");
    const char *const whose = getenv("WATCHDOG_PID");
    uint64_t us, pid;
    if (!text || tl_number_parse(text, &us) < 0 || us == 0 || us > INT64_MAX / 2)
        return 0;
    if (whose && (tl_number_parse(whose, &pid) < 0 || pid != (uint64_t)getpid()))
        return 0;
    return us / 2000 ? (int64_t)(us / 2000) : 1;
}
