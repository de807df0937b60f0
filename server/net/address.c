/* SPDX-License-Identifier: MIT */
/*
 * Parses and prints socket addresses, and tells which are local. A Host is compared as text and not
 * resolved: any name can be made to resolve to this machine, which is how a foreign page would
 * reach the server (DNS rebinding).
 */
#include "net/address.h"

#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Split at the last colon; removes brackets around the host. */
static int split(const char *text, char *host, size_t host_size, const char **port)
{
    const char *const colon = strrchr(text, ':');
    if (!colon || !colon[1])
        return TL_USAGE;
    const char *begin = text;
    const char *end = colon;
    if (*begin == '[' && end > begin + 1 && end[-1] == ']') {
        begin++;
        end--;
    }
    const size_t n = (size_t)(end - begin);
    const size_t digits = strlen(colon + 1);
    if (n == 0 || n >= host_size || digits > 5 || strspn(colon + 1, "0123456789") != digits ||
        atoi(colon + 1) > UINT16_MAX)
        return TL_USAGE;
    memcpy(host, begin, n);
    host[n] = 0;
    *port = colon + 1;
    return TL_OK;
}

int tl_address_parse(struct tl_address *out, const char *text, bool passive, struct tl_fail *fail)
{
    char host[256];
    const char *port;
    if (split(text, host, sizeof host, &port) < 0)
        return tl_fail_set(fail, TL_USAGE, "\"%.80s\" is not ADDR:PORT, e.g. 127.0.0.1:7070", text);
    const bool any = !strcmp(host, "*");
    const bool local = !strcmp(host, "localhost");
    const struct addrinfo hints = {
        .ai_family = any || local ? AF_INET : AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0),
    };
    struct addrinfo *found;
    const int rc = getaddrinfo(any ? NULL : local ? "127.0.0.1" : host, port, &hints, &found);
    if (rc)
        return tl_fail_set(fail, TL_USAGE, "%.80s: %s", text, gai_strerror(rc));
    memset(out, 0, sizeof *out);
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    out->n = found->ai_addrlen;
    freeaddrinfo(found);
    return TL_OK;
}

char *tl_address_text(const struct tl_address *address, char *out, size_t n)
{
    char host[INET6_ADDRSTRLEN];
    char port[8];
    if (getnameinfo((const struct sockaddr *)&address->at, address->n, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(out, n, "?");
    else
        snprintf(out, n, address->at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return out;
}

bool tl_address_loopback(const struct tl_address *address)
{
    if (address->at.ss_family == AF_INET) {
        const struct sockaddr_in *const v4 = (const struct sockaddr_in *)&address->at;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->at.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->at)->sin6_addr);
    return false;
}

bool tl_host_is_local(const char *host)
{
    char name[64];
    struct in_addr v4;
    struct in6_addr v6;
    if (!host)
        return true;
    const bool bracketed = *host == '[';
    const size_t n = bracketed ? strcspn(++host, "]") : strcspn(host, ":");
    if (n >= sizeof name || (bracketed && !host[n]))
        return false;
    const char *const port = host + n + bracketed;
    if (*port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")]))
        return false;
    memcpy(name, host, n);
    name[n] = 0;
    if (bracketed)
        return inet_pton(AF_INET6, name, &v6) == 1;
    return inet_pton(AF_INET, name, &v4) == 1 || !strcasecmp(name, "localhost");
}

int tl_address_is_loopback(const char *address, struct tl_fail *fail)
{
    struct tl_address parsed;
    const int rc = tl_address_parse(&parsed, address, true, fail);
    return rc < 0 ? rc : tl_address_loopback(&parsed);
}

static uint16_t port_of(const struct tl_address *address)
{
    return address->at.ss_family == AF_INET6
               ? ((const struct sockaddr_in6 *)&address->at)->sin6_port
               : ((const struct sockaddr_in *)&address->at)->sin_port;
}

/* An IPv6 socket of any address has those of IPv4, too. */
static bool is_any(const struct tl_address *address, int family)
{
    if (address->at.ss_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&address->at)->sin6_addr);
    return family == AF_INET &&
           ((const struct sockaddr_in *)&address->at)->sin_addr.s_addr == INADDR_ANY;
}

bool tl_address_covers(const char *wide, const char *narrow)
{
    struct tl_address a, b;
    if (tl_address_parse(&a, wide, true, NULL) < 0 ||
        tl_address_parse(&b, narrow, true, NULL) < 0 || port_of(&a) != port_of(&b) ||
        port_of(&a) == 0)
        return false;
    return is_any(&a, b.at.ss_family) || (a.n == b.n && !memcmp(&a.at, &b.at, a.n));
}

int tl_address_listen(struct tl_address *address, struct tl_fail *fail)
{
    char text[80];
    const int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return tl_fail_set(fail, TL_IO, "socket: %s", strerror(errno));
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address->at, address->n) || listen(fd, SOMAXCONN)) {
        const int error = errno;
        close(fd);
        errno = error;
        return tl_fail_set(fail, TL_IO, "cannot listen on %s: %s; choose another address",
                           tl_address_text(address, text, sizeof text), strerror(error));
    }
    address->n = sizeof address->at;
    getsockname(fd, (struct sockaddr *)&address->at, &address->n);
    return fd;
}
