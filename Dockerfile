# tracelake in a small image: built in one stage, run unprivileged in the other.
#
# It runs as user and group 10001, keeps everything in /data, and listens for TLS on 7443 for whoever
# may reach the container, so it wants tokens (/etc/tracelake/tokens, that user's, closed to others):
#
#     docker run --rm -v tracelake-etc:/etc/tracelake tracelake \
#         token add --tokens /etc/tracelake/tokens --role admin --name me >me.token
#     docker run -d -p 7443:7443 -v tracelake-etc:/etc/tracelake -v tracelake-data:/data tracelake
#     docker logs CONTAINER | grep SHA-256        # the fingerprint, for --fingerprint
#
# Folders of the host in place of volumes must belong to 10001: chown 10001:10001 FOLDER. Options of
# your own: `docker run … tracelake serve --data /data …`, or a file mounted as serve.conf and
# `serve --config /etc/tracelake/serve.conf`.
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
    gcc g++ libc6-dev cmake ninja-build pkg-config ca-certificates nodejs npm libtinfo-dev \
    libmicrohttpd-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler libnghttp2-dev \
    libzstd-dev libssl-dev libuv1-dev libsqlite3-dev libelf-dev libdw-dev libcjson-dev \
    libzmq3-dev librados-dev libiberty-dev zlib1g-dev liblzma-dev \
    && cd /tmp && apt-get download llvm-14-dev && dpkg-deb -x llvm-14-dev_*.deb /llvm \
    && rm -rf llvm-14-dev_*.deb /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cmake -S . -B build -G Ninja -DTL_TESTS=OFF && ninja -C build tracelake pages \
    && cmake --install build --component command --strip --prefix /out/usr/local \
    && mkdir -p /out/usr/local/lib && packaging/llvm-disassemblers.sh /out/usr/local/lib /llvm/usr/lib/llvm-14/lib \
    && cp /llvm/usr/share/doc/llvm-14-dev/copyright /out/usr/local/share/doc/tracelake/copyright.llvm \
    && rm -rf /out/usr/local/lib/systemd /out/usr/local/lib/sysusers.d /out/usr/local/share/man

FROM debian:12-slim
RUN printf 'path-exclude /usr/share/%s/*\n' man locale info >/etc/dpkg/dpkg.cfg.d/small \
    && printf 'path-exclude /usr/share/doc/*\npath-include /usr/share/doc/*/copyright\n' >>/etc/dpkg/dpkg.cfg.d/small \
    && apt-get update && apt-get install -y --no-install-recommends \
    libmicrohttpd12 libprotobuf-c1 libnghttp2-14 libzstd1 libssl3 libuv1 libsqlite3-0 \
    libelf1 libdw1 libcjson1 libzmq5 librados2 zlib1g liblzma5 libtinfo6 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/* \
    && groupadd --system --gid 10001 tracelake \
    && useradd --system --uid 10001 --gid 10001 --home-dir /data --no-create-home tracelake \
    && install -d -o tracelake -g tracelake -m 0750 /data /etc/tracelake
COPY --from=build /out/ /
RUN ldconfig
USER tracelake
VOLUME /data /etc/tracelake
EXPOSE 7443
# The plain port stays inside of the container.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD \
    ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7070 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q ^ok <&3"]
ENTRYPOINT ["tracelake"]
CMD ["serve", "--data", "/data", "--listen", "127.0.0.1:7070", "--listen-tls", "0.0.0.0:7443", "--tokens", "/etc/tracelake/tokens"]
