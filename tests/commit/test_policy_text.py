"""A user's own policy: what it changes, and how a mistake in it is named."""

from __future__ import annotations

import pytest

from lakeproof.commit import POLICIES, Command, Isolation, Mode, Stamp, checks_of
from lakeproof.commit.policy_text import named_policy, policy_from_text
from lakeproof.errors import InvalidInput

OURS = """\
base = "iceberg-spark"
name = "ours"
carries_deletes = true
compaction_stamp = "maximum"

[[line]]
commands = ["DELETE", "update"]
mode = "merge-on-read"
always = ["data_files_exist", "no_new_delete_files"]
serializable = ["added_data_files"]
"""


def test_a_file_changes_what_it_names_and_keeps_the_rest() -> None:
    policy = policy_from_text(OURS, place="ours.toml")
    assert (policy.name, policy.title) == ("ours", "iceberg-spark, changed by ours.toml")
    assert policy.carries_deletes
    assert not policy.runs_again
    assert policy.compaction_stamp is Stamp.MAXIMUM
    for command in (Command.DELETE, Command.UPDATE):
        asked = checks_of(policy, command, Mode.MERGE_ON_READ, Isolation.SERIALIZABLE)
        assert asked.names == ("data_files_exist", "no_new_delete_files", "added_data_files")
    unchanged = (Command.MERGE, Mode.MERGE_ON_READ, Isolation.SNAPSHOT)
    assert checks_of(policy, *unchanged) == checks_of(POLICIES["iceberg-spark"], *unchanged)


def test_without_a_base_it_stands_on_lakeproof() -> None:
    assert policy_from_text("", place="empty.toml").lines == POLICIES["lakeproof"].lines


@pytest.mark.parametrize(
    ("old", "new", "message", "place", "hint"),
    [
        pytest.param(
            '"no_new_delete_files"',
            '"no_new_delete_file"',
            "'no_new_delete_file' is not the name of a check",
            "ours.toml:9",
            "did you mean no_new_delete_files?",
            id="a check that does not exist",
        ),
        pytest.param(
            '"update"',
            '"updat"',
            "'updat' is not the name of a command",
            "ours.toml:7",
            "did you mean update?",
            id="a command that does not exist",
        ),
        pytest.param(
            '"merge-on-read"',
            '"merge on read"',
            "'merge on read' is not the name of a mode",
            "ours.toml:8",
            "did you mean merge-on-read?",
            id="a mode that does not exist",
        ),
        pytest.param(
            "serializable =",
            "serialisable =",
            "'serialisable' is not the name of a key of a line",
            "ours.toml:10",
            "did you mean serializable?",
            id="a key of a line that does not exist",
        ),
        pytest.param(
            "carries_deletes",
            "carry_deletes",
            "'carry_deletes' is not the name of a key of a policy",
            "ours.toml:3",
            "did you mean carries_deletes?",
            id="a switch that does not exist",
        ),
        pytest.param(
            '"maximum"',
            '"maximal"',
            "'maximal' is not the name of a stamp",
            "ours.toml:4",
            "did you mean maximum?",
            id="a stamp that does not exist",
        ),
        pytest.param(
            '"iceberg-spark"',
            '"iceberg-sparc"',
            "'iceberg-sparc' is not the name of a policy",
            "ours.toml:1",
            "did you mean iceberg-spark?",
            id="a base that does not exist",
        ),
        pytest.param(
            "carries_deletes = true",
            "carries_deletes = 1",
            "carries_deletes must be true or false",
            "ours.toml:3",
            "",
            id="a switch that is neither on nor off",
        ),
        pytest.param(
            '["data_files_exist", "no_new_delete_files"]',
            '"data_files_exist"',
            "always must be a list of names",
            "ours.toml:9",
            "",
            id="a name where a list is meant",
        ),
        pytest.param(
            '["added_data_files"]',
            "[3]",
            "serializable must be a list of names",
            "ours.toml:10",
            "",
            id="a number where a name is meant",
        ),
        pytest.param(
            '"merge-on-read"', "2", "'2' is not the name of a mode", "ours.toml:8", None, id="a mode that is a number"
        ),
        pytest.param(
            'commands = ["DELETE", "update"]\n',
            "",
            "A line must name its commands",
            "ours.toml",
            'write commands = ["DELETE"]',
            id="a line without commands",
        ),
        pytest.param(
            "[[line]]",
            "[line]",
            "`line` must be a list of tables: write [[line]]",
            "ours.toml",
            "",
            id="a table that is not a list",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, message: str, place: str, hint: str | None) -> None:
    assert old in OURS
    with pytest.raises(InvalidInput) as caught:
        policy_from_text(OURS.replace(old, new), place="ours.toml")
    assert (caught.value.message, caught.value.place) == (message, place)
    if hint is not None:
        assert caught.value.hint == hint


def test_a_mistake_is_found_on_its_own_line_and_not_inside_another_word() -> None:
    text = "# we had no_new_delete_file_checks here\n" + OURS.replace('"data_files_exist"', '"no_new_delete_file"')
    with pytest.raises(InvalidInput) as caught:
        policy_from_text(text.replace('serializable = ["added_data_files"]', ""), place="p")
    assert caught.value.place == "p:10"


def test_what_is_not_toml_says_where() -> None:
    with pytest.raises(InvalidInput, match=r"not TOML: .*line 2") as caught:
        policy_from_text("name = 'a'\nbase = \n", place="broken.toml")
    assert caught.value.place == "broken.toml"


def test_a_policy_by_name() -> None:
    assert named_policy("pyiceberg") is POLICIES["pyiceberg"]
    with pytest.raises(InvalidInput) as caught:
        named_policy("spark")
    assert caught.value.message == "'spark' is not the name of a policy"
