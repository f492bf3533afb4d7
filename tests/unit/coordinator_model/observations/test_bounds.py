"""Numbers that others send are held against the widths of Kafka's own types."""

import pytest

from coordinator_model.observations import bounds


@pytest.mark.parametrize(
    ("digits", "number"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("-1", -1, id="minus-one"),
        pytest.param("2147483647", 2**31 - 1, id="largest"),
        pytest.param("2147483648", None, id="one-too-large"),
        pytest.param("-2147483648", -(2**31), id="smallest"),
        pytest.param("9" * 5_000, None, id="too-long-to-count"),
        pytest.param("", None, id="nothing"),
        pytest.param("-", None, id="a-sign-alone"),
        pytest.param("+1", None, id="plus"),
        pytest.param("1_0", None, id="underscore"),
        pytest.param("\N{ARABIC-INDIC DIGIT ONE}", None, id="arabic-digit"),
    ],
)
def test_an_int32_is_read_or_refused(digits: str, number: int | None) -> None:
    """What Kafka cannot have sent as a generation is None, whatever its length."""
    assert bounds.int32_of(digits) == number


def test_an_int64_is_read_up_to_its_last_number() -> None:
    """Offsets end where msgpack's signed numbers end."""
    assert bounds.int64_of(str(2**63 - 1)) == 2**63 - 1
    assert bounds.int64_of(str(2**63)) is None


def test_times_end_with_the_year_9999() -> None:
    """-1 stands for an unknown time; beyond the last date there is none."""
    assert bounds.is_time_ms(-1)
    assert bounds.is_time_ms(253_402_300_799_999)
    assert not bounds.is_time_ms(253_402_300_800_000)
    assert not bounds.is_time_ms(-2)
