#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print what changes from one source tree of UCX to the next, of what the
transport reaches in UCX's headers: types, enumerations, functions, bodies of
inline functions, macros. A definition is reached if the transport names it, or
if one that is reached does. docs/ucx-releases.md has what came out of it.

Exit status: 0 if nothing differs, 1 if something does."""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

TOP       = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TRANSPORT = os.path.join(TOP, "src/uct/ib/sep")
NAME      = re.compile(r"[A-Za-z_]\w*")
TOKEN     = re.compile(r'[A-Za-z_]\w*|"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'|"
                       r"[0-9][\w.]*|\S")
NO_NAMES  = {"__attribute__", "__attribute", "packed"}


def transport_text():
    """The transport's sources without comments."""
    texts = []
    for directory, _, files in os.walk(TRANSPORT):
        for name in files:
            if name.endswith((".c", ".h", ".inl")):
                with open(os.path.join(directory, name),
                          encoding="utf-8") as file:
                    texts.append(file.read())
    return re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.S)


def preprocess(tree, headers, config):
    """Lines of these headers, and of those that they include, with macros
    expanded and the definitions of macros. Places in files mean nothing."""
    source = os.path.join(tree, "src")
    lines  = [f'#include "{config}"'] + [
        f"#include <{header}>" for header in headers
        if os.path.exists(os.path.join(source, header))]
    result = subprocess.run(
        ["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-E", "-dD", "-x", "c",
         "-Wno-builtin-macro-redefined", '-D__FILE__="file"', "-D__LINE__=0",
         "-D__FUNCTION__=__func__", f"-I{source}", "-"],
        input="\n".join(lines) + "\n", capture_output=True, text=True,
        check=False)
    if result.returncode != 0:
        sys.exit(f"{tree}: {result.stderr}")
    inside = False
    for line in result.stdout.split("\n"):
        place = re.match(r'# \d+ "([^"]*)"', line)
        if place:
            inside = place.group(1).startswith(source + "/")
        elif inside:
            yield line


def statements(tokens):
    """What is between semicolons, or ends with the body of a function."""
    depth = start = 0
    for i, token in enumerate(tokens):
        if token in "{([":
            depth += 1
        elif token in "})]":
            depth -= 1
        if depth != 0:
            continue
        item = tokens[start:i + 1]
        if token == ";" or (token == "}" and
                            item[item.index("{") - 1] == ")"):
            yield item
            start = i + 1


def function_name(item):
    """What is in front of the first parenthesis outside of others."""
    depth = 0
    for i, token in enumerate(item):
        if (token == "(" and depth == 0 and i > 0 and
                NAME.fullmatch(item[i - 1]) and item[i - 1] not in NO_NAMES):
            return item[i - 1]
        depth += {"(": 1, ")": -1}.get(token, 0)
    return None


def enumerators(item):
    """From the names of an enumeration to their values, or places in it."""
    result, depth, start = {}, 0, item.index("{") + 1
    for i in range(start, len(item)):
        depth += {"(": 1, ")": -1}.get(item[i], 0)
        if depth == 0 and item[i] in ",}":
            if start < i:
                result[item[start]] = " ".join(item[start + 1:i]) or \
                    f"number {len(result)}"
            start = i + 1
        if item[i] == "}":
            break
    return result


def names_of(item):
    """What a statement defines or declares, but for enumerators."""
    text  = " ".join(item)
    words = [word for word in item
             if NAME.fullmatch(word) and word not in NO_NAMES]
    is_type = item[0] in ("typedef", "struct", "union", "enum") and not (
        "{" in item and item[item.index("{") - 1] == ")")
    if not is_type:
        return {function_name(item) or words[-1]} if words else set()
    names = set()
    if "{" in item:
        opened = item.index("{")
        if item[opened - 1] not in ("struct", "union", "enum"):
            names.add(item[opened - 1])
    if item[0] == "typedef":
        pointer = re.search(r"\( \* (\w+) \)", text)
        names.add(pointer.group(1) if pointer and "{" not in item
                  else words[-1])
    return names


def definitions(tree, headers, config):
    """From names to texts."""
    found, code = {}, []
    for line in preprocess(tree, headers, config):
        macro = re.match(r"#define (\w+)(.*)", line)
        if macro:
            found[macro.group(1)] = " ".join(TOKEN.findall(macro.group(2)))
        elif not line.startswith("#"):
            code.append(line)
    for item in statements(TOKEN.findall(" ".join(code))):
        for name in names_of(item):
            text = " ".join(item)
            found[name] = f"{found[name]} {text}" if name in found else text
        if "enum" in item[:2] and "{" in item:
            found.update(enumerators(item))
    return found


def reached(found, names):
    """Those definitions that a set of names leads to."""
    todo, result = [name for name in names if name in found], {}
    while todo:
        name = todo.pop()
        if name not in result:
            result[name] = found[name]
            todo += [word for word in NAME.findall(found[name])
                     if word in found and word not in result]
    return result


def difference(before, after):
    """The tokens that differ."""
    before, after = before.split(), after.split()
    parts = []
    for kind, i, j, k, l in difflib.SequenceMatcher(
            None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            parts.append(f"[{' '.join(before[i:j])} -> {' '.join(after[k:l])}]")
    return " ".join(parts)


def main():
    """Compare each tree with the one in front of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ucx-info", default="ucx_info", metavar="PROGRAM",
                        help="whose configuration is that of all trees")
    parser.add_argument("trees", nargs="+", metavar="TREE",
                        help="source tree of UCX; two or more")
    args  = parser.parse_args()
    trees = [os.path.realpath(tree) for tree in args.trees]
    if len(trees) < 2:
        parser.error("two trees are needed")

    text    = transport_text()
    names   = set(NAME.findall(text))
    headers = [header for header in
               sorted(set(re.findall(r"#\s*include <(uc[mst]/[^>]+)>", text)))
               if not header.startswith("uct/ib/sep/")]
    all_definitions = []
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["sh", os.path.join(TOP, "config/gen-ucx-config.sh"),
                        args.ucx_info, "", directory], check=True)
        for tree in trees:
            config = os.path.join(directory, "ucx-config.h")
            all_definitions.append(
                reached(definitions(tree, headers, config), names))

    differ = 0
    for i in range(1, len(trees)):
        before, after = all_definitions[i - 1:i + 1]
        changed = [name for name in sorted(set(before) | set(after))
                   if before.get(name) != after.get(name)]
        print(f"{trees[i - 1]} ({len(before)} definitions) -> {trees[i]} "
              f"({len(after)}): {len(changed)} differ")
        for name in changed:
            if name not in before or name not in after:
                print(f"  {'-' if name in before else '+'} {name}")
            else:
                print(f"  * {name} {difference(before[name], after[name])}")
        differ += len(changed)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
