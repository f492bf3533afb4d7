"""The table of observations has one line for each."""

import typing

from coordinator_model import observations as on
from coordinator_model.observations.traits import TRAITS


def test_every_observation_has_one_line() -> None:
    """Nothing can be seen that the table does not know, and it knows nothing else."""
    assert set(TRAITS) == set(typing.get_args(on.AnyObservation))
