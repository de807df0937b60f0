// SPDX-License-Identifier: MIT
/*
 * What gRPC's own C++ library makes of the same interface: Fetch sends messages of 64 KiB, and its
 * health service answers. And a client of Fetch, for any server. A stream named "file" is the file
 * whose path is the trace; any other is one buffer
 * sent again and again.
 *
 *     grpc_peer serve                        prints its port; ends with its standard input
 *     grpc_peer fetch HOST:PORT TRACE STREAM TO TIMES   up to TO (0: the end) as .zstf, so many times
 */
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tracelake/v1/ranges.grpc.pb.h"

namespace v1 = tracelake::v1;

namespace {

constexpr size_t kPiece = 64 << 10;

class Lake final : public v1::Ranges::Service {
public:
    // `to` bytes, or the file.
    grpc::Status Fetch(grpc::ServerContext *, const v1::FetchRequest *request,
                       grpc::ServerWriter<v1::FetchReply> *writer) override
    {
        v1::FetchReply reply;
        if (request->stream() == "file")
            return send_file(request->trace(), reply, writer);
        reply.set_data(std::string(kPiece, 'x'));
        for (uint64_t at = 0; at < request->to(); at += kPiece)
            if (!writer->Write(reply))
                return grpc::Status::CANCELLED;
        return grpc::Status::OK;
    }

private:
    static grpc::Status send_file(const std::string &path, v1::FetchReply &reply,
                                  grpc::ServerWriter<v1::FetchReply> *writer)
    {
        std::ifstream file(path, std::ios::binary);
        if (!file)
            return grpc::Status(grpc::StatusCode::NOT_FOUND, path);
        std::string *const data = reply.mutable_data();
        for (;;) {
            data->resize(kPiece);
            file.read(&(*data)[0], kPiece);
            data->resize(static_cast<size_t>(file.gcount()));
            if (data->empty())
                return grpc::Status::OK;
            if (!writer->Write(reply))
                return grpc::Status::CANCELLED;
        }
    }
};

int serve()
{
    Lake lake;
    int port = 0;
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&lake);
    const auto server = builder.BuildAndStart();
    if (!server)
        return 1;
    std::printf("%d\n", port);
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    server->Shutdown();
    return 0;
}

int fetch(const char *address, const char *trace, const char *stream, uint64_t to, int times)
{
    const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    const auto stub = v1::Ranges::NewStub(channel);
    uint64_t bytes = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; i++) {
        grpc::ClientContext context;
        v1::FetchRequest request;
        v1::FetchReply reply;
        request.set_trace(trace);
        request.set_stream(stream);
        request.set_to(to);
        const auto reader = stub->Fetch(&context, request);
        while (reader->Read(&reply))
            bytes += reply.data().size();
        const grpc::Status status = reader->Finish();
        if (!status.ok()) {
            std::fprintf(stderr, "%s\n", status.error_message().c_str());
            return 1;
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%llu %.6f\n", static_cast<unsigned long long>(bytes), took.count());
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && !std::strcmp(argv[1], "serve"))
        return serve();
    if (argc == 7 && !std::strcmp(argv[1], "fetch"))
        return fetch(argv[2], argv[3], argv[4], std::strtoull(argv[5], nullptr, 10),
                     std::atoi(argv[6]));
    std::fprintf(stderr, "usage: grpc_peer serve | fetch HOST:PORT TRACE STREAM TO TIMES\n");
    return 2;
}
