"""What is said of brokers whose times are corrected."""

from streaming.driver.corrections import BROKERS_MAX, Corrections
from streaming.health.query_progress import Progress


def test_a_zone_is_said_once_and_told_to_every_shard() -> None:
    """Each shard finds it, at each start anew; the operator reads one sentence."""
    progress, shown = Progress("prod"), list[tuple[int, float]]()
    corrections = Corrections(progress.notice, lambda broker, seconds: shown.append((broker, seconds)))
    for _ in range(50):
        corrections.found(2, -18_000_000)
    assert shown == [(2, 18_000.0)]
    assert corrections.zones_ms() == {2: -18_000_000}
    (notice,) = progress.notices
    assert "The log lines of broker 2 are 5 h 0 min behind the records" in notice


def test_a_zone_that_is_right_by_now_is_said_no_more() -> None:
    """The shards are told that it is; the operator has set it right."""
    progress, shown = Progress("prod"), list[tuple[int, float]]()
    corrections = Corrections(progress.notice, lambda broker, seconds: shown.append((broker, seconds)))
    corrections.found(2, 3_600_000)
    corrections.found(2, 0)

    assert (corrections.zones_ms(), shown[-1], progress.notices) == ({2: 0}, (2, 0.0), [])


def test_a_wrong_clock_is_said_while_it_is_wrong() -> None:
    """A skew that needs no correction is none; zone and clock of one broker add up."""
    progress, shown = Progress("prod"), list[tuple[int, float]]()
    corrections = Corrections(progress.notice, lambda broker, seconds: shown.append((broker, seconds)))
    corrections.measured({1: 4_990, 3: -300_000})
    corrections.measured({1: 4_990, 3: -300_000})
    corrections.found(3, 3_600_000)
    assert shown == [(3, 300.0), (3, -3_300.0)]
    assert "The clock of broker 3 is 300 s behind the driver's" in progress.notices[0]
    corrections.measured({1: 4_990})
    assert shown[-1] == (3, -3_600.0)
    assert len(progress.notices) == 1


def test_brokers_that_anybody_can_name_are_bounded() -> None:
    """Lines name brokers, and who may write lines may name any."""
    corrections = Corrections()
    for broker in range(5_000):
        corrections.found(broker, 900_000)
    assert len(corrections.zones_ms()) == BROKERS_MAX
