"""Number theory: divisors, primes and remainders."""

from __future__ import annotations

from itertools import count
from math import gcd as greatest
from math import isqrt
from math import lcm as least
from random import Random

from decentral.envs.tasks.catalogue.draws import until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, PAIR, TEXT, OutOfDomain

LARGEST = 1_000_000
"""Numbers are factored by trial division, so larger ones would take too long."""


def _with_divisor(random: Random, level: int) -> tuple[int, int]:
    """Draws two numbers that often have a common divisor."""
    divisor = random.randint(1, 4 + level)
    first, second = PAIR.draw(random, level)
    return divisor * first, divisor * second


def _two_digits(random: Random, level: int) -> int:
    """Draws at least two digits, so that there is something to list."""
    return random.randrange(10, 10 ** (2 + level // 2))


@task(takes=INTEGERS, gives=INTEGERS, says="Replace each number by its square mod 7.")
def square_remainders(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number * number % 7 for number in numbers)


@task(takes=INTEGER, gives=INTEGERS, draw=_two_digits, says="Drop the sign and list the decimal digits.")
def digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


@task(
    takes=INTEGER,
    gives=INTEGERS,
    draw=until(INTEGER.draw, lambda number: number > 3 and not _is_prime(number)),
    says="List the prime factors in ascending order, repeats too.",
)
def prime_factors(number: int) -> tuple[int, ...]:
    rest, found = _factorable(number), []
    for divisor in range(2, isqrt(number) + 1):
        while rest % divisor == 0:
            rest //= divisor
            found.append(divisor)
        if divisor * divisor > rest:
            break
    return (*found, rest) if rest > 1 else tuple(found)


@task(
    takes=PAIR, gives=INTEGER, draw=_with_divisor, says="Give the greatest common divisor, or 0 if both numbers are 0."
)
def gcd(pair: tuple[int, int]) -> int:
    return greatest(*pair)


@task(
    takes=PAIR, gives=INTEGER, draw=until(PAIR.draw, all), says="Give the least common multiple, or 0 if a number is 0."
)
def lcm(pair: tuple[int, int]) -> int:
    return least(*pair)


@task(takes=PAIR, gives=PAIR, says="Divide the first number by the second: give quotient and remainder.")
def divide(pair: tuple[int, int]) -> tuple[int, int]:
    if pair[0] < 0 or pair[1] < 1:
        raise OutOfDomain(f"{pair} is not divided: the first number must be at least 0 and the second at least 1")
    return divmod(pair[0], pair[1])


@task(takes=PAIR, gives=INTEGER, says="Raise the first number to the power of the second, mod 100.")
def power(pair: tuple[int, int]) -> int:
    if pair[1] < 0:
        raise OutOfDomain(f"{pair[1]} is no exponent: it must be at least 0")
    return pow(*pair, 100)


@task(takes=INTEGER, gives=INTEGERS, says="List all positive divisors in ascending order.")
def divisors(number: int) -> tuple[int, ...]:
    small = [divisor for divisor in range(1, isqrt(_factorable(number)) + 1) if number % divisor == 0]
    return (*small, *(number // divisor for divisor in reversed(small) if divisor * divisor != number))


@task(takes=INTEGER, gives=INTEGER, says="Give the smallest prime above the number.")
def next_prime(number: int) -> int:
    if number > LARGEST:
        raise OutOfDomain(f"{number} is too large to look for a prime above it: it must be at most {LARGEST}")
    return next(other for other in count(max(2, number + 1)) if _is_prime(other))


@task(takes=INTEGER, gives=INTEGER, says="Count the numbers from 1 to it that share no prime factor with it.")
def totient(number: int) -> int:
    found = _factorable(number)
    for prime in set(prime_factors(number)):
        found -= found // prime
    return found


@task(
    takes=INTEGER,
    gives=TEXT,
    draw=until(INTEGER.draw, lambda number: number > 1),
    says="Drop the sign and write the number in base 2.",
)
def binary(number: int) -> str:
    return f"{abs(number):b}"


def _factorable(number: int) -> int:
    if not 1 <= number <= LARGEST:
        raise OutOfDomain(f"{number} is not factored: it must be between 1 and {LARGEST}")
    return number


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, isqrt(number) + 1))
