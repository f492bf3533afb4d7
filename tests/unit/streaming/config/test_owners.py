"""Owners from a file that others write."""

from pathlib import Path

import pytest

from streaming.config.config import Config, ConfigError, parse_config
from streaming.config.reloading import Changes, Reloads, changes

TEXT = """
clusters: [{{name: eu, bootstrap_servers: ['h:1']}}]
owners: [{{owner: us, groups: a}}]
owners_file: {}
"""


class Job:
    """A process that takes what it is given."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.good: list[bool] = []

    def change(self, config: Config) -> Changes:
        """Take it."""
        found = changes(self.config, config)
        self.config = found.config
        return found

    def reloaded(self, *, is_good: bool) -> None:
        """Remember whether the file was good."""
        self.good.append(is_good)

    @property
    def owners(self) -> list[str]:
        """Return the owners that hold."""
        return [one.owner for one in self.config.owners]


def test_the_files_owners_follow_our_own(tmp_path: Path) -> None:
    """In their order; YAML and JSON are both read, and an empty file has none."""
    file = tmp_path / "owners"
    for text, owners in (
        ("- {owner: they, groups: [b, c.*], clusters: [eu]}", ["us", "they"]),
        (
            '[{"owner": "they", "groups": "b"}, {"owner": "others", "groups": ["c"]}]',
            ["us", "they", "others"],
        ),
        ("", ["us"]),
    ):
        file.write_text(text)
        config = parse_config(TEXT.format(file))
        assert [one.owner for one in config.owners] == owners


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {owner: they}", "0.groups: Field required"),
        ("- {owner: they, groups: '('}", "not a regular expression"),
        ("- {owner: they, groups: a, team: b}", "0.team"),
        ("owner: they", "valid list"),
        ("[", "owners_file: "),
        ("- {owner: '${HOME}', groups: a}", "owners_file: "),
    ],
)
def test_mistakes_of_the_file_are_named(tmp_path: Path, text: str, said: str) -> None:
    """With its place in that file; variables of our environment are not for its authors."""
    file = tmp_path / "owners"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        parse_config(TEXT.format(file), {"HOME": "secret-of-ours"})
    assert said in str(caught.value)
    assert "secret-of-ours" not in str(caught.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """Instead of owners that are silently nobody."""
    with pytest.raises(ConfigError, match="owners_file: cannot be read"):
        parse_config(TEXT.format(tmp_path / "nothing"))


def test_a_changed_file_is_read_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    """Without a signal; what is half written is told once, and taken when it is whole."""
    file = tmp_path / "owners"
    file.write_text("- {owner: they, groups: b}")

    def load() -> Config:
        return parse_config(TEXT.format(file))

    job, reloads = Job(load()), Reloads(load, str(file))
    reloads.serve(job)
    assert job.good == []
    file.write_text("- {owner: others, groups: b}")
    reloads.serve(job)
    assert (job.owners, job.good) == (["us", "others"], [True])
    file.write_text("- {owner: broken,")
    reloads.serve(job)
    reloads.serve(job)
    assert (job.owners, job.good) == (["us", "others"], [True, False])
    file.unlink()
    reloads.serve(job)
    assert (job.owners, job.good) == (["us", "others"], [True, False, False])
    file.write_text("- {owner: third, groups: b}")
    reloads.serve(job)
    assert job.owners == ["us", "third"]
