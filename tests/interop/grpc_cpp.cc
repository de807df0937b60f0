// SPDX-License-Identifier: MIT
/*
 * Every call of calls.json by gRPC's own C++ library: requests and replies are the classes that
 * protoc makes for C++, which has rules for names that C and Python do not have. A reply that these
 * do not know whole is a failure.
 *
 *     grpc_cpp HOST:PORT CALLS
 */
#include <google/protobuf/descriptor.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tracelake/v1/catalog.pb.h"
#include "tracelake/v1/images.pb.h"
#include "tracelake/v1/ingest.pb.h"
#include "tracelake/v1/lookups.pb.h"
#include "tracelake/v1/ranges.pb.h"
#include "tracelake/v1/raw.pb.h"

namespace pb = google::protobuf;

namespace {

using Message = std::unique_ptr<pb::Message>;
using Call = grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

void require(bool is_true, const std::string &what)
{
    if (!is_true)
        throw std::runtime_error(what);
}

Message make(const pb::Descriptor *kind)
{
    const pb::Message *const empty = pb::MessageFactory::generated_factory()->GetPrototype(kind);
    require(empty, kind->full_name() + " has no class");
    return Message(empty->New());
}

// "package.Service/Method"
const pb::MethodDescriptor *find_method(std::string path)
{
    path[path.find('/')] = '.';
    const auto *const method = pb::DescriptorPool::generated_pool()->FindMethodByName(path);
    require(method, path + " is not in the .proto files");
    return method;
}

grpc::ByteBuffer bytes_of(const pb::Message &message)
{
    const grpc::Slice slice(message.SerializeAsString());
    return grpc::ByteBuffer(&slice, 1);
}

bool is_known(const pb::Message &message)
{
    const pb::Reflection *const reflection = message.GetReflection();
    if (!reflection->GetUnknownFields(message).empty())
        return false;
    std::vector<const pb::FieldDescriptor *> fields;
    reflection->ListFields(message, &fields);
    for (const auto *const field : fields) {
        if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE)
            continue;
        const int n = field->is_repeated() ? reflection->FieldSize(message, field) : 0;
        for (int i = 0; i < n; i++)
            if (!is_known(reflection->GetRepeatedMessage(message, field, i)))
                return false;
        if (!field->is_repeated() && !is_known(reflection->GetMessage(message, field)))
            return false;
    }
    return true;
}

void read_reply(const grpc::ByteBuffer &bytes, const pb::Descriptor *kind)
{
    std::vector<grpc::Slice> slices;
    require(bytes.Dump(&slices).ok(), "a reply without bytes");
    std::string all;
    for (const auto &slice : slices)
        all.append(reinterpret_cast<const char *>(slice.begin()), slice.size());
    const Message reply = make(kind);
    require(reply->ParseFromString(all), kind->full_name() + " cannot be read");
    require(is_known(*reply), kind->full_name() + " has unknown fields: " + reply->ShortDebugString());
}

// One step of a call after the other, on a queue of its own.
class Steps {
public:
    explicit Steps(grpc::GenericStub &stub, const std::string &path)
    {
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
        call = stub.PrepareCall(&context, "/" + path, &queue);
        call->StartCall(this);
        require(done(), path + ": no call");
    }
    ~Steps()
    {
        context.TryCancel();
        queue.Shutdown();
        void *tag;
        for (bool ok; queue.Next(&tag, &ok);)
            continue;
    }
    Steps(const Steps &) = delete;
    Steps &operator=(const Steps &) = delete;

    void write(const pb::Message &message)
    {
        call->Write(bytes_of(message), this);
        done(); // refused: the status says why
    }
    void end_writing()
    {
        call->WritesDone(this);
        done();
    }
    bool read(grpc::ByteBuffer &out)
    {
        call->Read(&out, this);
        return done();
    }
    grpc::Status finish()
    {
        grpc::Status status;
        call->Finish(&status, this);
        done();
        return status;
    }

private:
    bool done()
    {
        void *tag;
        bool ok = false;
        return queue.Next(&tag, &ok) && ok;
    }

    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    std::unique_ptr<Call> call;
};

void make_call(grpc::GenericStub &stub, const pb::Struct &told)
{
    const auto &fields = told.fields();
    const std::string &path = fields.at("method").string_value();
    const bool endless = fields.count("endless") > 0;
    const pb::MethodDescriptor *const method = find_method(path);
    Steps steps(stub, path);
    for (const auto &value : fields.at("requests").list_value().values()) {
        std::string json;
        const Message request = make(method->input_type());
        require(pb::util::MessageToJsonString(value, &json).ok() &&
                    pb::util::JsonStringToMessage(json, request.get()).ok(),
                path + ": no " + method->input_type()->full_name() + ": " + json);
        steps.write(*request);
    }
    steps.end_writing();
    int replies = 0;
    for (grpc::ByteBuffer bytes; !(endless && replies > 0) && steps.read(bytes); replies++)
        read_reply(bytes, method->output_type());
    if (!endless) {
        const grpc::Status status = steps.finish();
        require(status.ok(), path + ": " + status.error_message());
    }
    require(replies > 0, path + " has no reply");
}

void make_calls(const std::string &address, const std::string &file)
{
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    pb::ListValue calls;
    require(pb::util::JsonStringToMessage(text.str(), &calls).ok(), file + " is no list");
    grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    for (const auto &call : calls.values())
        make_call(stub, call.struct_value());
    require(calls.values_size() > 0, "no calls");
    printf("%d calls\n", calls.values_size());
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s HOST:PORT CALLS\n", argv[0]);
        return 1;
    }
    try {
        make_calls(argv[1], argv[2]);
    } catch (const std::exception &e) {
        fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
