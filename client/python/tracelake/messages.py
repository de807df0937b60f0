# SPDX-License-Identifier: MIT
"""The interface's messages, made of its description at run time: any version of protobuf will do."""

import os

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = 'tracelake.v1'


def _load():
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'descriptors.bin')
    with open(path, 'rb') as f:
        files.ParseFromString(f.read())
    for file in files.file:
        pool.Add(file)
    return pool


_POOL = _load()
if hasattr(message_factory, 'GetMessageClass'):
    _class_of = message_factory.GetMessageClass
else:
    _class_of = message_factory.MessageFactory(_POOL).GetPrototype


def message(name):
    """The class of a message, e.g. message('FetchRequest')."""
    return _class_of(_POOL.FindMessageTypeByName('%s.%s' % (PACKAGE, name)))


class Method:
    """A call: its path, and the classes of what is asked and answered."""

    def __init__(self, service, name):
        try:
            found = _POOL.FindServiceByName('%s.%s' % (PACKAGE, service)).methods_by_name[name]
        except KeyError:
            raise ValueError('there is no call %s.%s' % (service, name)) from None
        self.path = '/%s.%s/%s' % (PACKAGE, service, name)
        self.request = _class_of(found.input_type)
        self.reply = _class_of(found.output_type)
