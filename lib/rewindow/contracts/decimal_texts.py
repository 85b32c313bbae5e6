"""Decimals in text files: which commas and points group digits, and which begin the fraction.

Parsers skip what their locale uses to group digits, wherever it is: `12,50` is 1250 in English, and `12.50` in German. So the
groups are checked: all but the first have three digits, or two in front of the last, as in India, and the first does not begin
with a zero. `39,302` fits, and may be another country's 39.302 all the same, so it is read only if the source states its locale.
"""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation

BY_COMMAS = r"^[^0-9.,]*[1-9][0-9]{0,2}(,[0-9]{2,3})*,[0-9]{3}(?![0-9])(\.[0-9]*)?[^.,]*$"
"""A number with groups, where a point begins the fraction."""
BY_POINTS = r"^[^0-9.,]*[1-9][0-9]{0,2}(\.[0-9]{3})+(?![0-9])(,[0-9]*)?[^.,]*$"
"""A number with groups, where a comma begins the fraction."""
UNCERTAIN = r"^[^0-9.,]*[0-9]{1,3},[0-9]{3}[^.,]*$"
"""A number with one comma that may group digits or begin the fraction."""

AGAIN = "and, if files were landed before, `rewindow land FEED --new-generation`"
"""The second half of an advice that changes what a feed is."""
DEFAULT_LOCALE = "en-US"
MOST_DIGITS = 38
"""The digits of Spark's longest decimal."""
_EXACT = Context(prec=100)
_COMMA_BEGINS_FRACTION = frozenset(
    {"da", "de", "el", "es", "fi", "fr", "hu", "it", "nb", "nl", "no", "pl", "pt", "ro", "ru", "sv", "tr", "uk"}
)
_POINT_REGIONS = frozenset({"ch", "li", "mx", "us", "pr", "gt", "hn", "ni", "pa", "pe", "sv"})


def told_decimal(locale: str) -> str:
    """Return what is wrong with a decimal whose commas or points do not fit a locale, as the end of a sentence."""
    if begins_with_comma(locale):
        return f"is not a number in the locale {locale}, where a comma begins the fraction and points are before three digits"
    return (
        f"is not a number in the locale {locale}, where commas are before three digits. If commas begin the fractions of all "
        f"files, add `options: {{locale: de-DE}}` to the source, {AGAIN}"
    )


def told_uncertain(value: str) -> str:
    """Return what is wrong with an `UNCERTAIN` decimal without a stated locale, as the end of a sentence."""
    whole, fraction = (value.strip().replace(",", one) for one in ("", "."))
    return (
        f"is {whole} or {fraction}: add `options: {{locale: en-US}}` to the source if commas group digits, or "
        f"`options: {{locale: de-DE}}` if they begin the fractions of all files, {AGAIN}"
    )


def beyond_decimal(number: str, kind: str) -> str | None:
    """Return what is wrong with a number that a type such as ``decimal(12,2)`` cannot hold exactly; None if it can.

    None, too, for a text that is no number in Python's form. Decimals of `MOST_DIGITS` are rounded: no type holds one digit more.
    """
    digits, scale = (int(one or 0) for one in kind.removeprefix("decimal(").removesuffix(")").partition(",")[::2])
    try:
        value = Decimal(number.strip())
    except InvalidOperation:
        return None
    if not value.is_finite():
        return "is not a number"
    try:
        stored = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    except InvalidOperation:
        return f"does not fit {kind.upper()}"
    if stored != value and digits < MOST_DIGITS:
        return f"has more digits after the point than {kind.upper()} holds"
    return f"does not fit {kind.upper()}" if len(stored.as_tuple().digits) > digits else None


def begins_with_comma(locale: str) -> bool:
    """Return whether a comma begins the fraction in a locale. False, too, where it is not known."""
    language, _, region = locale.replace("_", "-").lower().partition("-")
    return language in _COMMA_BEGINS_FRACTION and region not in _POINT_REGIONS
