# tracelake in a small image: built in one stage, run unprivileged in the other.
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
    gcc libc6-dev cmake ninja-build pkg-config ca-certificates nodejs npm \
    libmicrohttpd-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler libnghttp2-dev \
    libzstd-dev libcmocka-dev libssl-dev libuv1-dev libsqlite3-dev libelf-dev libdw-dev libcjson-dev \
    libinih-dev libzmq3-dev zlib1g-dev liblzma-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cmake -S . -B build -G Ninja && ninja -C build tracelake

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
    curl libmicrohttpd12 libprotobuf-c1 libnghttp2-14 libzstd1 libssl3 libuv1 libsqlite3-0 \
    libelf1 libdw1 libcjson1 libinih1 libzmq5 libllvm14 zlib1g liblzma5 && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --create-home tracelake
COPY --from=build /src/build/tracelake /usr/local/bin/tracelake
USER tracelake
VOLUME /data
EXPOSE 7070 7443
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD curl -fsS http://127.0.0.1:7070/healthz || exit 1
# The plain port stays on loopback inside the container; give --tokens and publish 7443.
ENTRYPOINT ["tracelake", "serve", "--data", "/data", "--listen", "127.0.0.1:7070"]
CMD ["--listen-tls", "127.0.0.1:7443"]
