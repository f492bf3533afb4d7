"""Requests that describe groups of the modern protocols; kafka-python has no classes for them."""

from kafka.protocol.api_message import ApiMessage

from streaming.kafka_clients import schemas
from streaming.kafka_clients.workarounds import settle_answers


class ConsumerGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[call-arg,misc]
    """KIP-848: describes groups of type consumer."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[call-arg,misc]
    """Its answer."""


class ShareGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[call-arg,misc]
    """KIP-932: describes groups of type share."""


class ShareGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[call-arg,misc]
    """Its answer."""


class StreamsGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[call-arg,misc]
    """KIP-1071: describes groups of type streams."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[call-arg,misc]
    """Its answer."""


settle_answers()  # two clusters may be asked at once
