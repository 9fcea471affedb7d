"""Partition transforms give what the specification and PyIceberg give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import transforms as peer
from pyiceberg import types
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros

from lakeproof.errors import InvalidInput
from lakeproof.filters import applied
from lakeproof.filters.transforms import is_monotone, murmur3, name_and_width

LONG = types.LongType()
DATES = st.dates()
MOMENTS = st.datetimes()
AWARE = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=timezone(timedelta(hours=2)))
)


def theirs(transform: Any, kind: types.PrimitiveType) -> Callable[[Any], Any]:
    """PyIceberg's transform of stored values."""
    made: Callable[[Any], Any] = transform.transform(kind)
    return made


def signed(number: int) -> int:
    """A 32-bit hash as the specification prints it."""
    return number - (1 << 32) if number >> 31 else number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param((34).to_bytes(8, "little"), 2017239379, id="int and long 34"),
        pytest.param((17486).to_bytes(8, "little"), -653330422, id="date 2017-11-16 as its day"),
        pytest.param((81068000000).to_bytes(8, "little"), -662762989, id="time 22:31:08 as its microsecond"),
        pytest.param((1510871468000000).to_bytes(8, "little"), -2047944441, id="timestamp 2017-11-16T22:31:08"),
        pytest.param((1510871468000001).to_bytes(8, "little"), -1207196810, id="timestamp with one microsecond more"),
        pytest.param((1420).to_bytes(2, "big"), -500754589, id="decimal 14.20 as its unscaled bytes"),
        pytest.param(b"iceberg", 1210000089, id="string iceberg"),
        pytest.param(UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340, id="uuid"),
        pytest.param(b"\x00\x01\x02\x03", -188683207, id="four bytes"),
    ],
)
def test_hashes_of_the_specification(value: bytes, expected: int) -> None:
    assert signed(murmur3(value)) == expected


@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        pytest.param(34, LONG, 34, id="a long"),
        pytest.param(date(2017, 11, 16), types.DateType(), 17486, id="a date"),
        pytest.param(datetime(2017, 11, 16, 22, 31, 8), types.TimestampType(), 1510871468000000, id="a timestamp"),
        pytest.param(
            datetime(2017, 11, 16, 14, 31, 8, tzinfo=timezone(timedelta(hours=-8))),
            types.TimestamptzType(),
            1510871468000000,
            id="a timestamp of another time zone is the same moment",
        ),
        pytest.param(Decimal("14.20"), types.DecimalType(9, 2), Decimal("14.20"), id="a decimal"),
        pytest.param("iceberg", types.StringType(), "iceberg", id="a string"),
        pytest.param(b"\x00\x01\x02\x03", types.BinaryType(), b"\x00\x01\x02\x03", id="bytes"),
    ],
)
def test_a_bucket_is_pyicebergs(value: Any, kind: types.PrimitiveType, stored: Any) -> None:
    for width in (1, 7, 16, 1000):
        assert applied(f"bucket[{width}]", value) == theirs(peer.BucketTransform(width), kind)(stored)


@given(value=st.integers(-(2**63), 2**63 - 1), width=st.integers(1, 2**20))
def test_integers_bucket_and_truncate_as_in_pyiceberg(value: int, width: int) -> None:
    assert applied(f"bucket[{width}]", value) == theirs(peer.BucketTransform(width), LONG)(value)
    assert applied(f"truncate[{width}]", value) == theirs(peer.TruncateTransform(width), LONG)(value)


@given(value=st.text(), width=st.integers(1, 40))
def test_strings_bucket_and_truncate_as_in_pyiceberg(value: str, width: int) -> None:
    kind = types.StringType()
    assert applied(f"bucket[{width}]", value) == theirs(peer.BucketTransform(width), kind)(value)
    assert applied(f"truncate[{width}]", value) == theirs(peer.TruncateTransform(width), kind)(value)


@given(value=st.binary(), width=st.integers(1, 40))
def test_bytes_bucket_and_truncate_as_in_pyiceberg(value: bytes, width: int) -> None:
    kind = types.BinaryType()
    assert applied(f"bucket[{width}]", value) == theirs(peer.BucketTransform(width), kind)(value)
    assert applied(f"truncate[{width}]", value) == value[:width]


@given(unscaled=st.integers(-(10**18), 10**18), scale=st.integers(0, 6), width=st.integers(1, 1000))
def test_decimals_bucket_and_truncate_as_in_pyiceberg(unscaled: int, scale: int, width: int) -> None:
    value, kind = Decimal(unscaled).scaleb(-scale), types.DecimalType(38, scale)
    assert applied(f"bucket[{width}]", value) == theirs(peer.BucketTransform(width), kind)(value)
    assert applied(f"truncate[{width}]", value) == theirs(peer.TruncateTransform(width), kind)(value)


@given(value=DATES, width=st.integers(1, 100))
def test_dates_fall_where_pyiceberg_puts_them(value: date, width: int) -> None:
    kind, days = types.DateType(), date_to_days(value)
    assert applied("year", value) == theirs(peer.YearTransform(), kind)(days)
    assert applied("month", value) == theirs(peer.MonthTransform(), kind)(days)
    assert applied("day", value) == theirs(peer.DayTransform(), kind)(days)
    assert applied(f"bucket[{width}]", value) == theirs(peer.BucketTransform(width), kind)(days)


@given(value=MOMENTS, width=st.integers(1, 100))
def test_timestamps_fall_where_pyiceberg_puts_them(value: datetime, width: int) -> None:
    same_moment(value, types.TimestampType(), datetime_to_micros(value), width)


@given(value=AWARE, width=st.integers(1, 100))
def test_timestamps_of_a_time_zone_fall_where_their_moment_falls(value: datetime, width: int) -> None:
    micros = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    same_moment(value, types.TimestamptzType(), micros, width)


def same_moment(value: datetime, kind: types.PrimitiveType, micros: int, width: int) -> None:
    """Every transform of this moment equals PyIceberg's of its microseconds."""
    assert applied("year", value) == theirs(peer.YearTransform(), kind)(micros)
    assert applied("month", value) == theirs(peer.MonthTransform(), kind)(micros)
    assert applied("day", value) == theirs(peer.DayTransform(), kind)(micros)
    assert applied("hour", value) == theirs(peer.HourTransform(), kind)(micros)
    assert applied(f"bucket[{width}]", value) == theirs(peer.BucketTransform(width), kind)(micros)


@pytest.mark.parametrize("transform", ["identity", "void", "year", "month", "day", "hour", "bucket[3]", "truncate[3]"])
def test_null_stays_null(transform: str) -> None:
    assert applied(transform, None) is None


@pytest.mark.parametrize(
    ("transform", "value"),
    [
        pytest.param("hour", date(2020, 1, 1), id="a date has no hour"),
        pytest.param("year", "2020-01-01", id="a string is not a date"),
        pytest.param("bucket[4]", 1.5, id="floats are not bucketed"),
        pytest.param("bucket[4]", True, id="nor are booleans"),
        pytest.param("truncate[4]", 1.5, id="floats are not truncated"),
        pytest.param("truncate[4]", True, id="booleans are not integers here"),
        pytest.param("truncate[4]", date(2020, 1, 1), id="dates are not truncated"),
    ],
)
def test_a_transform_that_does_not_fit_the_type_says_so(transform: str, value: Any) -> None:
    with pytest.raises(TypeError):
        applied(transform, value)


@pytest.mark.parametrize("text", ["bucket", "truncate[]", "year[3]", "bucket[-1]", "zorder", "bucket[4] "])
def test_what_is_not_a_transform_is_named(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        name_and_width(text)
    assert caught.value.message == f"{text!r} is not a partition transform"
    assert "bucket[n]" in caught.value.hint


@given(a=st.integers(), b=st.integers(), width=st.integers(1, 50))
def test_truncation_keeps_the_order_of_integers(a: int, b: int, width: int) -> None:
    low, high = sorted((a, b))
    truncated: Any = [applied(f"truncate[{width}]", value) for value in (low, high)]
    assert truncated == sorted(truncated)
    assert is_monotone(f"truncate[{width}]")


def test_buckets_keep_no_order() -> None:
    assert not is_monotone("bucket[16]")
    assert not is_monotone("void")
