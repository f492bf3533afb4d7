"""The names of kafka-python that we use; no other package imports the library."""

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

__all__ = [
    "ClusterAuthorizationFailedError",
    "ConfigResource",
    "ConfigResourceType",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
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
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "TopicPartition",
    "UnknownBrokerIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedVersionError",
    "for_code",
]
