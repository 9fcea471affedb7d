"""Parameters that cannot be are refused with one sentence, a place and a hint."""

from __future__ import annotations

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.models.paimon import build, setup_from


@pytest.mark.parametrize(
    ("parameters", "message", "hint"),
    [
        ({"num-writer": "2"}, "the Paimon model has no parameter 'num-writer'", "did you mean num-writers?"),
        ({"preset": "two-compactor"}, "the Paimon model has no preset 'two-compactor'", "did you mean two-compactors?"),
        ({"num-writers": "0"}, "num-writers takes a number from 1 on, not '0'", "for example num-writers=2"),
        ({"num-writers": "two"}, "num-writers takes a number from 1 on, not 'two'", "for example num-writers=2"),
        ({"max-write-ops": "-1"}, "max-write-ops takes a number from 0 on, not '-1'", "for example max-write-ops=2"),
        ({"max-level": "10"}, "an LSM tree has at most 9 levels here, not 10", "Paimon itself has 5"),
        ({"use-lock": "ture"}, "use-lock is true or false, not 'ture'", "did you mean use-lock=true?"),
        ({"use-lock": ""}, "use-lock is true or false, not ''", "did you mean use-lock=true?"),
        (
            {"compactors": "colocated"},
            "compactors is co-located or dedicated, not 'colocated'",
            "did you mean compactors=co-located?",
        ),
        (
            {"col2-values": "red,red"},
            "col2-values takes different names with commas between them, not 'red,red'",
            "for example col2-values=red,blue",
        ),
        (
            {"num-keys": "3", "col1-values": "jack"},
            "num-keys=3 and col1-values name different numbers of keys",
            "give one of the two",
        ),
        (
            {"num-writers": "3", "num-buckets": "2"},
            "3 writers cannot have a bucket each: there are 2",
            "set num-buckets higher, or one-writer-per-bucket=false",
        ),
        (
            {"num-compactors": "3", "num-buckets": "2"},
            "3 dedicated compactors cannot have a bucket each: there are 2",
            "set num-buckets higher, or one-writer-per-bucket=false",
        ),
        (
            {"num-writers": "1", "num-compactors": "2", "compactors": "co-located"},
            "2 co-located compactors need as many writers: there are 1",
            "set compactors=dedicated",
        ),
        (
            {"sequence-field": "true", "sequence-snapshot-ordering": "true"},
            "sequence-snapshot-ordering excludes a sequence-field: both say which row of a key is the newest",
            "set one of the two",
        ),
        (
            {"num-compactors": "1", "sequence-snapshot-ordering": "true"},
            "sequence-snapshot-ordering needs writers that only write",
            "set compactors=dedicated",
        ),
        (
            {"strict-mode": "true", "put-if-absent": "false"},
            "strict mode and compaction rollback read the snapshots since, which nothing protects here",
            "set put-if-absent=true or use-lock=true",
        ),
        (
            {"strict-mode": "true", "committer": "apart"},
            "strict mode is modelled for processes that commit themselves",
            "set committer=co-located",
        ),
    ],
)
def test_what_cannot_be_is_refused(parameters: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        build(parameters)
    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert refused.value.place.startswith("--set ")


def test_further_parameters_change_a_preset() -> None:
    setup = setup_from({"preset": "two-compactors", "max-write-ops": "4", "num-keys": "2"})
    assert (setup.max_writes, setup.max_compactions, setup.keys) == (4, 3, ("jack", "sarah"))


def test_max_compaction_ops_is_max_compactions() -> None:
    assert setup_from({"preset": "two-compactors", "max-compaction-ops": "5"}).max_compactions == 5


def test_as_in_spec_is_a_bundle_that_its_parts_can_change() -> None:
    setup = setup_from({"as-in-spec": "true", "keep-deletes": "true"})
    assert (setup.prune_vectors, setup.keep_deletes, setup.read_vectors) == (False, True, False)
    plain = setup_from({})
    assert (plain.prune_vectors, plain.keep_deletes, plain.read_vectors) == (True, True, True)


def test_the_defaults_are_the_public_specifications() -> None:
    setup = setup_from({})
    assert (setup.num_writers, setup.num_compactors, setup.partitions, setup.buckets) == (2, 0, 1, 2)
    assert (setup.keys, setup.col2, setup.col3) == (("jack", "sarah"), ("red", "blue"), ("A",))
    assert (setup.max_level, setup.max_writes, setup.put_if_absent, setup.use_lock) == (2, 3, True, False)
    assert (setup.dv_enabled, setup.one_writer_per_bucket, setup.streaming_sink) == (True, True, False)


def test_keys_and_buckets_are_dealt_out_in_turn() -> None:
    setup = setup_from({"preset": "one-writer-per-bucket", "num-keys": "6"})
    assert setup.keys_of_bucket == (("jack", "paul"), ("lucy", "sarah"), ("john",), ("mary",))
    assert [setup.buckets_of_writer(i) for i in range(2)] == [(0, 2), (1, 3)]
    assert [setup.buckets_of_compactor(i) for i in range(2)] == [(0, 2), (1, 3)]
    assert [setup.partition_of(i) for i in range(4)] == [0, 0, 1, 1]


def test_twelve_keys_have_names() -> None:
    assert setup_from({"num-keys": "12"}).keys[7:] == ("ruth", "key8", "key9", "key10", "key11")
