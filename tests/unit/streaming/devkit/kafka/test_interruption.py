"""Nothing is started that an interrupt would make us forget."""

import signal

import pytest

from streaming.devkit.kafka.interruption import interruptible, uninterrupted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_waits_until_what_was_started_is_known(number: signal.Signals) -> None:
    """The signal of the worst moment is raised when the moment is over, not lost and not earlier."""
    done: list[str] = []

    def start() -> None:
        with uninterrupted():
            signal.raise_signal(number)
            done.append("noted")
        done.append("never")

    with pytest.raises(KeyboardInterrupt), interruptible():
        start()

    assert done == ["noted"]


def test_elsewhere_an_interrupt_is_raised_at_once() -> None:
    """SIGTERM unwinds like Ctrl-C, and the old handler is back afterwards."""
    before = signal.getsignal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGTERM)

    assert signal.getsignal(signal.SIGTERM) is before
