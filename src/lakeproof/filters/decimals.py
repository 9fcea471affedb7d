"""Decimals and the whole numbers that Iceberg stores for them, exactly: Python's own arithmetic rounds at 28 digits."""

from __future__ import annotations

from decimal import Decimal


def unscaled(value: Decimal, scale: int) -> int | None:
    """The value in units of its last digit at this scale; `None`: it has more digits behind the point.

    >>> unscaled(Decimal("5.5"), 2), unscaled(Decimal("5.004"), 2)
    (550, None)
    """
    number, rest = divided(value, scale)
    return None if rest else number


def divided(value: Decimal, scale: int) -> tuple[int, bool]:
    """The greatest whole number of units that is not above the value, and whether something is left.

    >>> divided(Decimal("-5.004"), 2)
    (-501, True)
    """
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a column has neither NaN nor infinity among its decimals"
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    if exponent + scale >= 0:
        return number * 10 ** (exponent + scale), False
    whole, rest = divmod(number, 10 ** -(exponent + scale))
    return whole, rest != 0


def scaled(number: int, scale: int) -> Decimal:
    """The decimal of so many units of its last digit.

    >>> scaled(550, 2)
    Decimal('5.50')
    """
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
