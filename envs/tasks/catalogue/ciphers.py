"""Simple ciphers. They change small letters; every other character stays as it is."""

from __future__ import annotations

from string import ascii_lowercase as LETTERS

from decentral.envs.tasks.catalogue.draws import until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, TEXT, TEXTS

_SHIFTS = tuple(str.maketrans(LETTERS, LETTERS[by:] + LETTERS[:by]) for by in range(len(LETTERS)))
_MIRROR = str.maketrans(LETTERS, LETTERS[::-1])


@task(takes=INTEGERS, gives=TEXT, says="Replace each number mod 26 by a letter: 0 by a, 1 by b, up to 25 by z.")
def spell(numbers: tuple[int, ...]) -> str:
    return "".join(LETTERS[number % 26] for number in numbers)


@task(takes=TEXT, gives=TEXT, says="Replace each letter by the next in the alphabet, z by a.")
def caesar(text: str) -> str:
    return text.translate(_SHIFTS[1])


@task(takes=TEXT, gives=INTEGERS, says="List each letter's place in the alphabet, a is 1, and 0 for other characters.")
def places(text: str) -> tuple[int, ...]:
    return tuple(LETTERS.find(character) + 1 for character in text)


@task(
    takes=TEXT,
    gives=TEXT,
    draw=until(TEXT.draw, lambda text: any(a != b for a, b in zip(text[::2], text[1::2]))),
    says="Swap the 1st and 2nd character, the 3rd and 4th and so on; an odd last one stays.",
)
def swap_neighbours(text: str) -> str:
    return "".join(text[at : at + 2][::-1] for at in range(0, len(text), 2))


@task(takes=TEXT, gives=TEXT, says="Replace each letter by the one as far from z as it is from a.")
def atbash(text: str) -> str:
    return text.translate(_MIRROR)


@task(
    takes=TEXT,
    gives=TEXT,
    says="Move the 1st character on by 1 in the alphabet, the 2nd by 2 and so on, z to a; what is no letter stays.",
)
def trithemius(text: str) -> str:
    return "".join(character.translate(_SHIFTS[place % 26]) for place, character in enumerate(text, 1))


@task(
    takes=TEXT,
    gives=TEXT,
    draw=until(TEXT.draw, lambda text: text != text[1::2] + text[::2]),
    says="Write the 2nd, 4th, 6th character and so on, then the 1st, 3rd, 5th and so on.",
)
def rail_fence(text: str) -> str:
    return text[1::2] + text[::2]


@task(takes=TEXTS, gives=TEXTS, says="Replace each letter by the one before it in the alphabet, a by z.")
def caesar_back(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.translate(_SHIFTS[-1]) for text in texts)


@task(takes=TEXT, gives=INTEGER, says="Add the places of all letters in the alphabet, where a is 1.")
def letter_sum(text: str) -> int:
    return sum(places(text))
