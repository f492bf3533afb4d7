"""Kafka clients: the only package that imports kafka-python; other rooms take its names from here."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, OffsetSpec
from kafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)
from kafka.future import Future
from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.structs import OffsetAndMetadata

from streaming.kafka_clients.clients import (
    GROUP_PREFIX,
    ClientPropertyError,
    admin_client,
    close_quietly,
    consumer,
    producer,
    python_options,
    spark_options,
)
from streaming.kafka_clients.fenced import READ_COMMITTED, FencedError, FencedProducer, Output
from streaming.kafka_clients.group_messages import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from streaming.kafka_clients.whole_topics import read_whole
from streaming.kafka_clients.workarounds import Admin, say_why_like_java

__all__ = [
    "GROUP_PREFIX",
    "READ_COMMITTED",
    "Admin",
    "ClientPropertyError",
    "ClusterAuthorizationFailedError",
    "ConfigResource",
    "ConfigResourceType",
    "ConsumerGroupDescribeRequest",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
    "FencedError",
    "FencedProducer",
    "FindCoordinatorRequest",
    "Future",
    "IncrementalAlterConfigsRequest",
    "IsolationLevel",
    "KafkaAdminClient",
    "KafkaConnectionError",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "KafkaTimeoutError",
    "LeaderNotAvailableError",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "MetadataRequest",
    "OffsetAndMetadata",
    "OffsetSpec",
    "Output",
    "ShareGroupDescribeRequest",
    "StreamsGroupDescribeRequest",
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "TopicPartition",
    "UnknownBrokerIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedVersionError",
    "admin_client",
    "close_quietly",
    "consumer",
    "for_code",
    "producer",
    "python_options",
    "read_whole",
    "say_why_like_java",
    "spark_options",
]
