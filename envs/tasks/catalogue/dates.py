"""Dates and times of day."""

from __future__ import annotations

from calendar import day_name
from datetime import date, timedelta

from decentral.envs.tasks.catalogue.draws import until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, PAIR, TEXT, OutOfDomain

_YEAR_2000 = date(2000, 1, 1)
_COMMON_YEAR = date(2001, 1, 1)
_DAY_MINUTES = 24 * 60


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    says="Give for each the weekday so many days after a Monday: Monday is 1, Sunday is 7.",
)
def weekdays(days: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number % 7 + 1 for number in days)


@task(takes=INTEGER, gives=INTEGERS, says="List year, month and day of the date so many weeks before 2000-01-01.")
def weeks_before(weeks: int) -> tuple[int, ...]:
    found = _shifted(-7 * weeks)
    return found.year, found.month, found.day


@task(
    takes=INTEGER,
    gives=PAIR,
    says="Give month and day of the date that is the number mod 365 days after 1 January 2001.",
)
def month_and_day(days: int) -> tuple[int, int]:
    found = _COMMON_YEAR + timedelta(days=days % 365)
    return found.month, found.day


@task(takes=PAIR, gives=TEXT, says="Take hours mod 24 and minutes mod 60 and write the time as hh:mm.")
def clock(time: tuple[int, int]) -> str:
    return f"{time[0] % 24:02}:{time[1] % 60:02}"


@task(
    takes=INTEGER,
    gives=TEXT,
    draw=until(INTEGER.draw, bool),
    says="Write the date so many days after 2000-01-01 as year-month-day.",
)
def date_after(days: int) -> str:
    return _shifted(days).isoformat()


@task(takes=INTEGER, gives=TEXT, says="Write in small letters the weekday so many days after a Monday.")
def weekday_after(days: int) -> str:
    return day_name[days % 7].lower()


@task(takes=PAIR, gives=PAIR, says="Take hours and minutes, add 50 minutes, and give hours and minutes of the day.")
def later(time: tuple[int, int]) -> tuple[int, int]:
    return divmod((60 * time[0] + time[1] + 50) % _DAY_MINUTES, 60)


@task(takes=PAIR, gives=INTEGER, says="Take hours and minutes and count the minutes to the next midnight, at least 1.")
def minutes_left(time: tuple[int, int]) -> int:
    return _DAY_MINUTES - (60 * time[0] + time[1]) % _DAY_MINUTES


def _shifted(days: int) -> date:
    """Returns the date so many days after 1 January 2000. Raises OutOfDomain if no calendar has it."""
    try:
        return _YEAR_2000 + timedelta(days=days)
    except OverflowError:
        raise OutOfDomain(
            f"{days} days from 2000-01-01 there is no date: the calendar has the years 1 to 9999"
        ) from None
