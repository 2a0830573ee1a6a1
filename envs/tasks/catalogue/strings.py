"""Strings: letters, words and what they are made of."""

from __future__ import annotations

from itertools import groupby
from random import Random
from string import ascii_lowercase

from decentral.envs.tasks.catalogue.draws import letters_of, until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, TEXT, TEXTS

VOWELS = frozenset("aeiou")


def _few_letters(random: Random, level: int) -> str:
    """Draws from any number of letters up to the length, so that the length does not tell how many differ."""
    return letters_of(ascii_lowercase[: random.randint(1, 3 + level)])(random, level)


@task(takes=TEXT, gives=TEXT, draw=until(TEXT.draw, lambda text: text != text[::-1]), says="Reverse the text.")
def reverse_text(text: str) -> str:
    return text[::-1]


@task(takes=TEXTS, gives=INTEGERS, says="List the length of each text.")
def lengths(texts: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(len, texts))


@task(
    takes=TEXT,
    gives=TEXT,
    draw=until(TEXT.draw, lambda text: list(text) != sorted(text)),
    says="Sort the characters alphabetically.",
)
def sort_characters(text: str) -> str:
    return "".join(sorted(text))


@task(takes=TEXT, gives=TEXT, says="Replace each run of equal characters by the character and the run's length.")
def run_lengths(text: str) -> str:
    return "".join(f"{character}{len(tuple(run))}" for character, run in groupby(text))


@task(
    takes=TEXT,
    gives=TEXT,
    draw=until(TEXT.draw, lambda text: len(set(text)) > 1),
    says="Move the first character to the end.",
)
def rotate_text(text: str) -> str:
    return text[1:] + text[:1]


@task(
    takes=TEXT,
    gives=TEXT,
    draw=until(TEXT.draw, lambda text: len(set(text)) < len(text)),
    says="Keep only the first of equal characters.",
)
def once_each(text: str) -> str:
    return "".join(dict.fromkeys(text))


@task(takes=TEXT, gives=INTEGER, says="Count the characters and add how many are a, e, i, o or u.")
def length_and_vowels(text: str) -> int:
    return len(text) + sum(character in VOWELS for character in text)


@task(takes=TEXT, gives=INTEGER, draw=_few_letters, says="Count how many different characters the text has.")
def different_characters(text: str) -> int:
    return len(set(text))


@task(takes=TEXT, gives=TEXTS, says="Cut the text into pieces of two characters; the last may have one.")
def cut(text: str) -> tuple[str, ...]:
    return tuple(text[at : at + 2] for at in range(0, len(text), 2))


@task(takes=TEXTS, gives=TEXT, says="Join the first characters of all texts.")
def initials(texts: tuple[str, ...]) -> str:
    return "".join(text[0] for text in texts)


@task(takes=TEXTS, gives=TEXTS, says="Reverse each text, and keep their order.")
def reverse_each(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text[::-1] for text in texts)


@task(takes=TEXTS, gives=TEXTS, says="Reverse the order of the texts.")
def reverse_order(texts: tuple[str, ...]) -> tuple[str, ...]:
    return texts[::-1]
