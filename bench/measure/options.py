# SPDX-License-Identifier: BSD-3-Clause
"""Options of a row: what they may be, and what a command line says."""

import dataclasses
import os


class WrongOption(Exception):
    """What is wrong."""


class UnknownOption(WrongOption):
    """The help says which there are."""


def _directory(text):
    if not os.path.isdir(text):
        raise WrongOption(f"there is no directory {text}")
    return os.path.realpath(text)


def _existing(text):
    if not os.path.exists(text):
        raise WrongOption(f"there is no {text}")
    return os.path.realpath(text)


@dataclasses.dataclass(frozen=True)
class Kind:
    """noun: what the value is called; none, if the option has no value."""
    noun: str = ""
    read: callable = str
    empty: bool = False         # whether the value may be ""


FLAG = Kind()
NUMBER = Kind("a number")
NAME = Kind("a name")
DIRECTORY = Kind("a directory", _directory)
PLACE = Kind("a directory", os.path.realpath)   # made, if it is not there
SOURCE = Kind("a source tree or an archive", _existing)
MAYBE = Kind("a directory or \"\"", empty=True)

HELP = ("--help", "-h")


class Options:
    """What was given, in its order."""

    def __init__(self):
        self.given = []         # (name, value)
        self.operands = []

    def __contains__(self, name):
        return any(name == each for each, _ in self.given)

    def all(self, name):
        return [value for each, value in self.given if each == name]

    def last(self, *names, default=None):
        """The value of the option, or name of the flag, that comes last."""
        found = [value or each for each, value in self.given if each in names]
        return found[-1] if found else default

    def words(self, but=()):
        """A command line of them, without those in `but`."""
        return [word for name, value in self.given if name not in but
                for word in ([name] if value is None else [name, value])]


def parse(kinds, words, others=False, operands=0):
    """Options of a command line, and as many operands at most. kinds: {name:
    Kind}; others: whether others
    are possible, which are passed on. Nothing counts behind one of HELP."""
    options = Options()
    words = list(words)
    while words:
        name = words.pop(0)
        if not name.startswith("-") and len(options.operands) < operands:
            options.operands.append(name)
            continue
        kind = kinds.get(name, FLAG if others or name in HELP else None)
        if kind is None:
            raise UnknownOption(f"unknown option {name}")
        value = None
        if kind.noun:
            if not words or not (words[0] or kind.empty):
                raise WrongOption(f"{name} needs {kind.noun}")
            value = kind.read(words.pop(0))
        options.given.append((name, value))
        if name in HELP:
            break
    return options
