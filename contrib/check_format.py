#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold C and C++ files against what clang-format makes of them.

Reads the names of the files, one a line, from standard input. Files that match
a pattern of contrib/format-exceptions.txt are left out.

Compared are the places of statements, declarations and braces, the empty lines
between them, and the spaces inside of lines. What clang-format can't do as our
style has it, or should not decide, is left to the author:

- where a statement that is longer than a line is broken, and how its further
  lines are indented,
- columns: one space is as good as several (members of structures are aligned
  with each other, local variables are not),
- no space in front of the asterisk of a type without a name, as in (char*)p,
  a space in front of (*), none between a cast and an exclamation mark,
- directives of the preprocessor and the bodies of macros,
- in C++, functions and lambdas that fit on one line,
- empty braces.
"""

import concurrent.futures
import fnmatch
import os
import re
import shutil
import subprocess
import sys

import checks

VERSION = 14  # Others see some things in another way
EXCEPTIONS = "contrib/format-exceptions.txt"
SOURCES = (".c", ".h", ".inl", ".cc")
TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>/\*.*?\*/ | //(?:[^\n\\]|\\.)*)
  | (?P<string>(?:u8|[LuU])?R"(?P<end>[^(]*)\(.*?\)(?P=end)"
             | (?:u8|[LuU])?"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
  | (?P<word>[A-Za-z_$][A-Za-z0-9_$]* | \.?[0-9][A-Za-z0-9_.]*)
  | (?P<sign>->\*?|\+\+|--|<<=?|>=|<=|[=!]=|&&|\|\||::|[-+*/%&|^]=
           | \.\.\.|\\\n|.)
""", re.X | re.S)
DIRECTIVE = re.compile(r"#(?:/\*.*?\*/|\\\n|[^\n])*", re.S)
STEPS = ("if", "else", "for", "while", "do", "switch")
ACCESS = ("case", "default", "public", "private", "protected")


class Token:
    """A token and what stands in front of it."""

    def __init__(self, text, kind, space, line):
        self.text = text
        self.kind = kind
        self.line = line
        self.newlines = space.count("\n")
        self.spaces = len(space) - space.rfind("\n") - 1
        self.is_start = False  # Of a statement, or a brace around some
        self.is_loose = False  # Its indentation follows from line breaks
        self.is_free = False   # In a function on one line


def split(text):
    """Tokens of a file."""
    tokens = []
    space, at, line = "", 0, 1
    while at < len(text):
        match = None
        if text[at] == "#" and (not tokens or "\n" in space):
            match, kind = DIRECTIVE.match(text, at), "directive"
        else:
            match = TOKEN.match(text, at)
            kind = match.lastgroup if match.lastgroup != "end" else "string"
        word = match.group()
        if kind == "space" or word == "\\\n":
            space += word
        else:
            tokens.append(Token(word, kind, space, line))
            space = ""
        line += word.count("\n")
        at = match.end()
    return tokens


class Frame:
    """Between two braces."""

    def __init__(self, is_block, is_loose):
        self.is_block = is_block
        self.is_loose = is_loose
        self.depth = 0      # Of parentheses
        self.words = []     # Of the statement so far


def is_block(frame, before):
    """Whether the brace that comes now holds statements."""
    if not frame.is_block or "enum" in frame.words:
        return False
    if before is None or before.text in (";", "{", "}", "else", "do"):
        return True
    if before.text == ":":
        return frame.depth == 0
    if "=" in frame.words and frame.depth == 0 and before.text != ")":
        return False
    return before.text == ")" or before.kind in ("word", "string")


def mark(tokens):
    """Find out which tokens start statements."""
    frames = [Frame(True, False)]
    before = None
    for token in tokens:
        frame = frames[-1]
        start = frame.is_block and not frame.words and frame.depth == 0
        token.is_start = start
        token.is_loose = frame.is_loose
        if token.kind in ("comment", "directive"):
            continue
        if token.text == "{":
            block = is_block(frame, before)
            # A macro alone, such as UCS_STATIC_INIT, is no function's head
            token.is_start = block and not (
                len(frame.words) == 1 and frame.words[0].isupper())
            # A function or lambda in a longer statement
            is_part = frame.depth > 0 or "=" in frame.words
            frames.append(Frame(block, frame.is_loose or is_part))
        elif token.text == "}" and len(frames) > 1:
            token.is_start = frame.is_block
            frames.pop()
            if frame.is_block and frames[-1].depth == 0:
                frames[-1].words = []
        elif token.text == ";" and frame.depth == 0:
            token.is_start = False
            frame.words = []
        elif token.text == ":" and frame.depth == 0 and frame.words and \
                (frame.words[0] in ACCESS or len(frame.words) == 1):
            frame.words = []
        else:
            frame.depth += (token.text in ("(", "[")) - \
                (token.text in (")", "]"))
            frame.depth = max(frame.depth, 0)
            frame.words.append(token.text)
        before = token


def free_short_functions(tokens):
    """Functions on one line are as good as others: do not compare them."""
    opened = []
    first = None  # Of the statement
    for index, token in enumerate(tokens):
        if token.is_start and token.text not in "{}":
            first = token
        if token.text == "{" and token.is_start:
            opened.append((index, first))
        elif token.text == "}" and token.is_start and opened:
            start, word = opened.pop()
            inner = tokens[start:index + 1]
            if not any(one.newlines for one in inner[1:]) and \
                    (word is None or word.text not in STEPS):
                for one in inner:
                    one.is_start = False
                    one.is_free = True


def is_type_end(tokens, index):
    """Whether asterisks from here on end a type without a name."""
    while index < len(tokens) and tokens[index].text in ("*", "&", "const"):
        index += 1
    return index < len(tokens) and tokens[index].text in (")", ",", ">", "{")


def differs(ours, theirs, index):
    """Why the white space in front of a token is not as it should be."""
    mine, wanted = ours[index], theirs[index]
    if mine.text == "}" and ours[index - 1].text == "{":
        return None
    if wanted.is_start and not mine.is_free:
        if mine.newlines != wanted.newlines:
            return f"{wanted.newlines} line breaks are wanted in front of"
        if mine.newlines and not mine.is_loose and \
                mine.spaces != wanted.spaces and mine.kind != "directive":
            return f"indentation of {wanted.spaces} is wanted for"
    if mine.newlines or wanted.newlines or mine.kind in ("comment",
                                                         "directive"):
        return None
    if mine.text in ("*", "&") and is_type_end(ours, index):
        return None
    if mine.text == "!" and ours[index - 1].text == ")":
        return None
    if [token.text for token in ours[index:index + 3]] == ["(", "*", ")"]:
        return None
    if bool(mine.spaces) != bool(wanted.spaces):
        return ("a space" if wanted.spaces else "no space") + \
            " is wanted in front of"
    return None


def find_clang_format():
    others = []
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path is not None:
            said = subprocess.run([path, "--version"], capture_output=True,
                                  text=True, check=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return path
            others.append(said.strip())
    print(f"clang-format {VERSION} is not to be found",
          *(f"(there is {said})" for said in others), file=sys.stderr)
    # A system that has another one has no use for this check
    sys.exit(77 if others else 1)


def run_clang_format(program, top, path, text):
    # .inl is C here
    name = re.sub(r"\.inl$", ".c", os.path.join(top, path))
    return subprocess.run([program, "--style=file", "--assume-filename", name],
                          input=text, capture_output=True, text=True,
                          check=True, cwd=top).stdout


def compare(text, wanted, is_cpp=False):
    """[(line, what is wrong)] of a file."""
    ours, theirs = split(text), split(wanted)
    if [re.sub(r"\s|\\\n", "", token.text) for token in ours] != \
            [re.sub(r"\s|\\\n", "", token.text) for token in theirs]:
        return [(1, "clang-format changes more than white space")]
    mark(ours)
    mark(theirs)
    if is_cpp:
        free_short_functions(ours)
    found = []
    for index, token in enumerate(ours):
        problem = differs(ours, theirs, index)
        if problem is not None:
            word = token.text.split("\n")[0]
            found.append((token.line, f"{problem} {word}"))
    return found


def read_exceptions(top):
    """Patterns; a reason follows each in the file."""
    with open(os.path.join(top, EXCEPTIONS), encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [line.split()[0] for line in lines if line and line[0] != "#"]


def covered(paths, exceptions):
    return [path for path in paths if path.endswith(SOURCES) and
            not any(fnmatch.fnmatch(path, pattern) for pattern in exceptions)]


def main():
    parser = checks.parser(__doc__)
    parser.add_argument("--top", default=".", help="the tree, default .")
    parser.add_argument("--summary", action="store_true",
                        help="only how many files are covered and differ")
    parser.add_argument("files", nargs="*",
                        help="only these, instead of all on standard input")
    options = parser.parse_args()
    program = find_clang_format()
    names = options.files or sys.stdin.read().splitlines()
    exceptions = read_exceptions(options.top)
    unused = [pattern for pattern in exceptions
              if not options.files and not fnmatch.filter(names, pattern)]
    paths = [name for name in covered(names, exceptions)
             if os.path.isfile(os.path.join(options.top, name))]

    def look(path):
        with open(os.path.join(options.top, path), encoding="utf-8") as file:
            text = file.read()
        return compare(text, run_clang_format(program, options.top, path,
                                              text),
                       path.endswith(".cc") or path.startswith("test/gtest/"))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(paths, pool.map(look, paths)))
    if options.summary:
        for path in paths:
            if found[path]:
                print(len(found[path]), path)
        bad = sum(1 for path in paths if found[path])
        print(f"{len(paths)} files are covered, {bad} differ")
        return 0
    return checks.report([
        *(f"{path}:{line}: {problem}" for path in paths
          for line, problem in found[path]),
        *(f"{EXCEPTIONS}: {pattern} matches no file" for pattern in unused)])


if __name__ == "__main__":
    sys.exit(main())
