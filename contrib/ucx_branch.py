#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the commits of contrib/ucx-branch.sh.

The files of contrib/ucx-branch are the commits, in order of their names: a
message, and below a line "--" what it takes of the patches of src/ucp/opt, of
that of UCX's guides (ucx-branch-guides.patch) and of the files that are added:

    patch NAME [REGEX]         hunks of a patch, perhaps those that match only
    file PATH                  an added file
    lines PATH | FROM [| TO]   of an added file the lines from each that matches to
                               the next that matches the other, both included
    function PATH NAME...      of an added file functions, with their comments
    option NAME...             what src/ucp/opt/ucp_opt.[ch] have of a switch

Tests are in contrib/ucx-branch/tests, as below UCX's test/gtest, whose list of
sources they get into with their first line. There a function may also be a
UCS_TEST_P, which goes by its second name, or what is inside of a class.

What is more particular counts: a file without lines, a patch without hunks that
another commit takes. The list of sources, and what differs between releases, go
with the first commit that needs them. What no commit takes is an error, so the
tree of the last one is that which contrib/build-ucx-opt.sh builds.

What is added by the last commits is the transport: a skeleton, then its rooms in
the order of docs/architecture.md. With the last one comes its test, and the
transport gets into the lists of UCX's tests of UCP (ucx-branch-tests.patch).
Behind it come the commits that change no code: ucx-branch-NAME.txt has the
message, ucx-branch-NAME.patch what changes, contrib/ucx-branch/NAME what is
added. "package" is UCX's packages and builds, "ci" what its CI runs on the
software device, and "news" is NEWS."""

import difflib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP       = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
MESSAGES  = os.path.join(TOP, "contrib/ucx-branch")
OPT       = os.path.join(TOP, "src/ucp/opt")
COMPAT    = "src/ucp/opt/ucp_opt_compat.h"
OPTIONS   = ("src/ucp/opt/ucp_opt.c", "src/ucp/opt/ucp_opt.h",
             "src/uct/ib/opt/ib_opt.c", "src/uct/ib/opt/ib_opt.h")
LISTS     = ("src/ucp/opt/sources.am", "src/uct/ib/opt/sources.am")
SEP       = "src/uct/ib/sep/"
TESTS     = "test/gtest/"
TEST_LIST = "test/gtest/Makefile.am"
SEP_TEST  = "uct/ib/test_sep.cc"
TRANSPORT = "0001-sep-transport"
UCP_TESTS = os.path.join(TOP, "contrib/ucx-branch-tests.patch")
# What UCX's guides say of the optimisations, and with the skeleton of the transport
GUIDES    = [os.path.join(TOP, f"contrib/ucx-branch-{name}.patch")
             for name in ("guides", "module")]
LAST      = [os.path.join(TOP, f"contrib/ucx-branch-{name}")
             for name in ("package", "ci", "news")]
TITLE     = re.compile(r"UC[PST]/[A-Z]+: [A-Z][^.]*")
COVER     = os.path.join(TOP, "contrib/ucx-branch-cover.txt")
BRANCH    = "sep"
LIMIT     = 500


class Line:
    """A line of a file: which commit adds it, and which removes it. None: it is
    there from the start, or until the end."""

    def __init__(self, text, added=None, removed=None):
        self.text, self.added, self.removed = text, added, removed


class Commit:
    """A file of contrib/ucx-branch."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.message, _, takes = file.read().partition("\n--\n")
        self.name  = os.path.basename(path)
        self.takes = [line.split(None, 1) for line in takes.splitlines()]
        title = self.message.split("\n", 1)[0]
        if not TITLE.fullmatch(title) or len(title) > 72:
            sys.exit(f"{path}: a title is COMPONENT/SUBCOMPONENT: and what is"
                     f" done, not \"{title}\"")

    def of(self, kind):
        return [rest.split(None, 1) for word, rest in self.takes
                if word == kind]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines(keepends=True)


def write(path, lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def messages():
    """The files of the commits, in order."""
    return sorted(filter(os.path.isfile, glob.glob(f"{MESSAGES}/*")))


def tests():
    """The tests of UCX's that are added, as below test/gtest."""
    return below(f"{MESSAGES}/tests")


def below(top):
    """The files of a directory."""
    return sorted(os.path.relpath(os.path.join(folder, name), top)
                  for folder, _, entries in os.walk(top) for name in entries)


def list_tests(lines, files):
    """Put tests into UCX's list of sources, each in front of what it is beside,
    with the commit that adds it."""
    for name in files:
        beside = re.sub(r"_opt(?=\.)", "", re.sub(r"test_ucp_opt\w*", "ucp_test",
                                                 name))
        places = [number for number, line in enumerate(lines)
                  if re.match(rf"\s+{re.escape(beside)}\b", line.text)]
        if len(places) != 1:
            sys.exit(f"{TEST_LIST} has {beside} {len(places)} times")
        lines.insert(places[0], Line(f"\t{name} \\\n", min(
            line.added for line in files[name])))


def paths_of(patch):
    """What a patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", "".join(read(patch)), re.M)


def apply(patch, tree):
    subprocess.run(["patch", "-d", tree, "-p1", "-F0", "-s",
                    "--no-backup-if-mismatch", "-i", patch], check=True)


def patched_files(series, tree):
    """Apply each patch to what it changes of a tree: lines by path, added and
    removed by the patch's name."""
    files = {}
    with tempfile.TemporaryDirectory() as scratch:
        for patch in series:
            name = os.path.basename(patch)[:-len(".patch")]
            paths = paths_of(patch)
            for path in paths:
                if path not in files:
                    files[path] = [Line(text)
                                   for text in read(os.path.join(tree, path))]
                    write(os.path.join(scratch, path),
                          [line.text for line in files[path]])
            apply(patch, scratch)
            for path in paths:
                files[path] = changed(files[path],
                                      read(os.path.join(scratch, path)), name)
    return files


def changed(lines, after, name):
    """Lines of a file after a patch."""
    visible = [line for line in lines if line.removed is None]
    matcher = difflib.SequenceMatcher(
        None, [line.text for line in visible], after, autojunk=False)
    places = {}
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag != "equal":
            for line in visible[start:end]:
                if line.added is not None:
                    sys.exit(f"{name} removes a line of {line.added}")
                line.removed = name
            place = id(visible[end - 1 if end > start else end]) \
                if (end > start or end < len(visible)) else None
            places[place] = (end > start,
                             [Line(text, name) for text in after[first:last]])
    result = []
    for line in lines:
        behind, new = places.pop(id(line), (False, []))
        result += [line] + new if behind else new + [line]
    return result + [line for _, new in places.values() for line in new]


def runs(lines):
    """Hunks: lines that one patch changes, without any between them."""
    run, label = [], None
    for line in lines + [Line("")]:
        now = line.removed or line.added
        if run and now != label:
            yield label, run
            run = []
        if now:
            run.append(line)
        label = now


def assign_patches(files, commits):
    """Put numbers of commits in place of the names of patches."""
    for path, lines in files.items():
        for patch, run in list(runs(lines)):
            text = "".join(line.text for line in run)
            whole, part = [], []
            for number, commit in enumerate(commits):
                for name, *regex in commit.of("patch"):
                    if name == patch and not regex:
                        whole.append(number)
                    elif name == patch and re.search(regex[0], text):
                        part.append(number)
            if len(part or whole) != 1:
                sys.exit(f"{patch}: {len(part or whole)} commits take this of"
                         f" {path}:\n{text}")
            for line in run:
                if line.added:
                    line.added = (part or whole)[0]
                else:
                    line.removed = (part or whole)[0]


def blocks(lines, start, end):
    """Each range of lines from one that matches to one that does."""
    first = None
    for number, line in enumerate(lines):
        if first is None and re.search(start, line.text):
            first = number
        if first is not None and re.search(end, line.text):
            yield lines[first:number + 1]
            first = None


def function_lines(lines, name):
    """A function, the comment in front of it and the empty line behind it."""
    text  = [line.text for line in lines]
    start = next((number for number, line in enumerate(text)
                  if re.match(rf"[a-z].*\b{name}\(|{name}\(|"
                              rf"UCS_TEST\w*\(\w+, {name}\b|"
                              rf" +(?:class|void) {name}\b", line)), None)
    if start is None:
        sys.exit(f"no function {name}")
    indent = re.match(" *", text[start])[0]
    end    = next(number for number in range(start, len(text))
                  if text[number] in (indent + "}\n", indent + "};\n"))
    while start and text[start - 1].strip():
        start -= 1
    return lines[start:end + 2]


def assign_files(files, commits):
    """Say which commit adds each line of the files that are added."""
    for number, commit in enumerate(commits):
        for (path,) in commit.of("file"):
            for line in files[path]:
                line.added = number
    for number, commit in enumerate(commits):
        for _, rest in [take for take in commit.takes if take[0] == "lines"]:
            path, start, *end = rest.split(" | ")
            found = list(blocks(files[path], start, end[0] if end else start))
            if not found:
                sys.exit(f"{commit.name}: {path} has no line {start}")
            for line in sum(found, []):
                line.added = number
        for path, names in commit.of("function"):
            for name in names.split():
                for line in function_lines(files[path], name):
                    line.added = number
        for take in commit.of("option"):
            for name in " ".join(take).split():
                assign_option(files, number, name)


def assign_option(files, number, name):
    """What the files of options have of one of them."""
    for path in OPTIONS:
        lines, low = files[path], name.lower()
        for start, end in ((rf"^    int {low};", ";"),
                           (rf'^    {{"{name}",', "^$"),
                           (r"^    if \(", r"^    \}$"),
                           (rf"^    /\*\* UCX_OPT_{name}\b", "^$|^};"),
                           (r"^#define UC[PT]_\w*OPT_", r"[^\\\n]\n")):
            for block in blocks(lines, start, end):
                text = "".join(line.text for line in block)
                if re.search(rf'config\.{low}\b|"{name}"|int {low};|'
                             rf"OPT_{name}(_EPS|_AM|_AUTO)?\b", text):
                    if block[-1].text == "};\n":
                        block.pop()
                    if "#endif\n" in [line.text for line in block]:
                        # With the condition, for releases that have it
                        block.insert(0, lines[lines.index(block[0]) - 1])
                    for line in block:
                        line.added = number


def chunks(lines):
    """What compat.h consists of: a comment of its own, or a conditional or
    definition with the comment in front of it."""
    chunk, depth = [], 0
    for line in lines:
        chunk.append(line)
        text = line.text
        depth += bool(re.match(r"#\s*if", text)) - text.startswith("#endif")
        if depth == 0 and text == "\n":
            if not chunk[-2:-1] or not chunk[-2].text.endswith("\\\n"):
                yield chunk
                chunk = []
    yield chunk


def assign_compat(files):
    """What differs between releases, with the first commit that needs it."""
    body  = files[COMPAT]
    inner = body[next(number for number, line in enumerate(body)
                      if "/* Endpoints */" in line.text):-1]
    for line in body:
        line.added = 0
    pending = list(chunks(inner))
    for chunk in pending:
        names = set(re.findall(r"#\s*define (\w+)",
                               "".join(line.text for line in chunk)))
        users = [line.added
                 for path, lines in files.items()
                 if path != COMPAT for line in lines
                 if line.added is not None and isinstance(line.added, int) and
                 names & set(re.findall(r"\w+", line.text))]
        # A macro that another one of these is made of
        users += [other[0].added for other in pending if other is not chunk and
                  names & set(re.findall(r"\w+", "".join(
                      line.text for line in other)))]
        for line in chunk:
            line.added = min(users) if users and names else 0


def assign_lists(files, names):
    """A line of a list of sources comes with its file; without the last line of
    a list, the one before it ends it."""
    for path in LISTS:
        folder = path.rsplit("/", 2)[0]
        for line in files[path]:
            found = [os.path.normpath(f"{folder}/{word}") for word in
                     re.findall(r"\S+\.(?:h|c|inl)\b", line.text)]
            line.added = min((file.added for name in found
                              for file in files[name]),
                             default=min(line.added for name in names
                                         if name.startswith(folder + "/opt/")
                                         for line in files[name]
                                         if line.added is not None))


def ended(lines):
    """Take the backslash from the last line of each list."""
    for number, text in enumerate(lines):
        if text.endswith("\\\n") and (number + 1 == len(lines) or
                                      not lines[number + 1].strip()):
            lines[number] = text[:-2].rstrip() + "\n"
    return lines


def state(path, lines, number):
    """The lines of a file when so many commits are there."""
    here = [line.text for line in lines
            if (line.added is None or line.added <= number) and
            (line.removed is None or line.removed > number)]
    if path in LISTS:
        # What has no file yet is not begun, either
        here = re.sub(r"^\w+ \+= \\\n(?=\n|\Z)", "", "".join(here),
                      flags=re.M).splitlines(keepends=True)
        here = ended(here)
    if all(line.added is not None for line in lines):
        # Or what was in front of lines that are not there yet
        while here and not here[-1].strip():
            here.pop()
    return here


def rooms():
    """Rooms of the transport, bottom up, and what they are for."""
    with open(os.path.join(TOP, "docs/architecture.md"),
              encoding="utf-8") as file:
        table = file.read().split("### Rooms: `src/uct/ib/sep`", 1)[1]
    return re.findall(r"^\| `([a-z/]+)/` \| (.*?) \| ",
                      table.split("![", 1)[0], re.M)


def in_order(names, texts):
    """Files of a room, each behind those that it includes; a source follows its
    header, when what asked for that has come."""
    result, seen, sources = [], set(), []

    def visit(name):
        if name in seen:
            return
        seen.add(name)
        for other in re.findall(r'#\s*(?:include|define \w+) +[<"](\S+)[>"]',
                                texts[name]):
            other = "src/" + other if "/" in other else \
                os.path.dirname(name) + "/" + other
            if other in names:
                visit(other)
        result.append(name)
        source = re.sub(r"\.h$", ".c", name)
        if source in names:
            sources.append(source)

    for name in sorted(names, key=lambda name: (name.endswith(".c"), name)):
        visit(name)
        while sources:
            visit(sources.pop(0))
    return result


def module_lines(tree):
    """Lines of the transport in a tree: of all its sources, of what differs between
    releases of UCX, and of the check that it was built for the one that loads it."""
    sizes = {name: len(read(os.path.join(tree, SEP, name)))
             for name in below(os.path.join(tree, SEP))
             if name.endswith((".c", ".h", ".inl"))}
    return [sum(size for name, size in sizes.items() if re.search(which, name))
            for which in ("", "^compat/", "abi")]


def pieces(lines):
    """Ends of the parts in which a file of more lines than a commit may add comes,
    each behind a function."""
    end, last = 0, len(lines)
    # The list of sources has a line as well
    while last - end > LIMIT - 1:
        limit = end + LIMIT - 1
        end = max((number for number in range(end + 1, limit + 1)
                   if lines[number - 1].text in ("}\n", "};\n")), default=limit)
        yield end
    yield last


def transport_steps(files):
    """Commits of the transport: message, and the files of each with how many of
    their lines are there then."""
    texts = {name: "".join(line.text for line in lines)
             for name, lines in files.items()}
    for room, what in rooms():
        names = in_order([name for name in files
                          if os.path.dirname(name) == SEP + room], texts)
        parts, size = [], LIMIT
        for name in names:
            start = 0
            for end in pieces(files[name]):
                if size + end - start + 1 > LIMIT:
                    parts.append([])
                    size = 0
                parts[-1].append((name, start, end))
                size += end - start + 1
                start = end
        for number, part in enumerate(parts):
            title = f"UCT/SEP: Add {room}"
            if len(parts) > 1:
                title += f", part {number + 1} of {len(parts)}"
            body = f"{what}.\n\n" + "".join(
                f"  {os.path.basename(name)}: " +
                (f"{end} lines" if end - start == len(files[name]) else
                 f"lines {start + 1} to {end} of {len(files[name])}") + "\n"
                for name, start, end in part)
            if any(end < len(files[name]) for name, _, end in part):
                body += "\nA file is compiled when it is complete.\n"
            yield f"{title}\n\n{body}", [(name, end) for name, _, end in part]


class Tree:
    """The git tree that is made."""

    def __init__(self, path):
        self.path = path
        self.git("init", "-q", "-b", BRANCH)
        for key, value in (("user.name", "SEP"), ("user.email", "sep@localhost"),
                           ("core.autocrlf", "false"), ("gc.auto", "0")):
            if not key.startswith("user.") or subprocess.run(
                    ["git", "-C", path, "config", key],
                    capture_output=True, check=False).returncode:
                self.git("config", key, value)

    def git(self, *words, **options):
        return subprocess.run(["git", "-C", self.path, *words], check=True,
                              capture_output=True, text=True, **options).stdout

    def commit(self, message):
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--no-verify", "-F", "-", input=message)
        rows = [row.split("\t") for row in self.git(
            "show", "--numstat", "--format=", "HEAD").splitlines()]
        added, removed = (sum(int(row[column]) for row in rows
                              if row[column] != "-") for column in (0, 1))
        print(f"{self.git('rev-parse', '--short', 'HEAD').strip()} {added:6}"
              f" {removed:6}  {message.splitlines()[0]}", flush=True)
        return added


def main():
    release, path, final = sys.argv[1:4]
    commits = [Commit(name) for name in messages()]
    with open(f"{OPT}/patches/{release}/series", encoding="utf-8") as file:
        series = [f"{OPT}/patches/{release}/{line.split()[0]}" for line in file
                  if line.strip() and line[0] != "#"]
    tree = Tree(path)
    tree.git("add", "-A", "-f")
    tree.git("commit", "-q", "--no-verify", "-m", f"UCX {release} as released")

    files = patched_files([name for name in series if TRANSPORT not in name] +
                          GUIDES[:1], path)
    assign_patches(files, commits)
    names = [os.path.relpath(os.path.join(folder, name), f"{OPT}/tree")
             for folder, _, entries in os.walk(f"{OPT}/tree")
             for name in entries]
    names = sorted(name for name in names if not name.startswith(SEP))
    for name in names:
        files[name] = [Line(text) for text in read(f"{OPT}/tree/{name}")]
    added = {name: files[name] for name in names}
    own = {name: [Line(text) for text in read(f"{MESSAGES}/tests/{name}")]
           for name in tests() if name != SEP_TEST}
    added.update((TESTS + name, lines) for name, lines in own.items())
    assign_files(added, commits)
    assign_compat(files)
    assign_lists(added, [name for name in names if name not in LISTS])
    for name, lines in added.items():
        for line in lines:
            if line.added is None:
                sys.exit(f"{name}: no commit takes this line:\n{line.text}")
    files.update(added)
    files[TEST_LIST] = [Line(text)
                        for text in read(os.path.join(path, TEST_LIST))]
    list_tests(files[TEST_LIST], own)

    large = 0
    for number, commit in enumerate(commits):
        for name, lines in files.items():
            now = state(name, lines, number)
            if now or name not in added:
                write(os.path.join(path, name), now)
        large += tree.commit(commit.message + "\n") > LIMIT

    large += transport(tree, final, release)
    alone = [TEST_LIST, *(TESTS + name for name in tests()),
             *sum(map(paths_of, [UCP_TESTS, *GUIDES]), [])]
    for name in LAST:
        new = os.path.join(MESSAGES, name.rsplit("-", 1)[1])
        if os.path.isdir(new):
            shutil.copytree(new, path, dirs_exist_ok=True)
        apply(f"{name}.patch", path)
        with open(f"{name}.txt", encoding="utf-8") as file:
            large += tree.commit(file.read()) > LIMIT
        alone += [*paths_of(f"{name}.patch"), *below(new)]
    # Tests, guides, packages and CI are for the branch alone
    other = tree.git("--work-tree", final, "status", "--porcelain", "--ignored",
                     "--", ".", *(f":(exclude){name}" for name in alone))
    if other:
        sys.exit(f"what {path} has in the end is not what is built:\n{other}")
    with open(COVER, encoding="utf-8") as file:
        tree.git("config", f"branch.{BRANCH}.description", file.read())
    print(f"{large} commits of more than {LIMIT} added lines")
    print(f"Cover text: git config branch.{BRANCH}.description")
    print("The transport: {} lines, {} of them compat/, {} the check of the ABI"
          .format(*module_lines(path)))


def transport(tree, final, release):
    """The commits of the transport, from the tree that is built."""
    every = [os.path.relpath(os.path.join(folder, name), final)
             for folder, _, entries in os.walk(os.path.join(final, SEP))
             for name in entries]
    inner = {name: [Line(text) for text in read(os.path.join(final, name))]
             for name in every if name.count("/") > SEP.count("/")}
    outer = [name for name in every if name not in inner]
    apply(f"{OPT}/patches/{release}/{TRANSPORT}.patch", tree.path)
    sources = read(os.path.join(final, SEP, "files.am"))
    have = []

    def put(parts):
        for name, end in parts:
            lines = read(os.path.join(final, name))
            write(os.path.join(tree.path, name), lines[:end])
            if end in (None, len(lines)):
                have.append(name[len(SEP):])
        lines = [line for line in sources if line == sources[0] or
                 line.strip(" \t\\\n") in have]
        write(os.path.join(tree.path, SEP, "files.am"), ended(lines))

    put((name, None) for name in outer)
    apply(GUIDES[1], tree.path)
    with open(os.path.join(MESSAGES, "..", "ucx-branch-module.txt"),
              encoding="utf-8") as file:
        large = tree.commit(file.read()) > LIMIT
    steps = list(transport_steps(inner))
    for number, (message, parts) in enumerate(steps):
        put(parts)
        if number == len(steps) - 1:
            put_test(tree.path)
            apply(UCP_TESTS, tree.path)
        large += tree.commit(message) > LIMIT
    return large


def put_test(path):
    """The transport's test, which is built where the transport is."""
    write(os.path.join(path, TESTS, SEP_TEST),
          read(f"{MESSAGES}/tests/{SEP_TEST}"))
    lines = read(os.path.join(path, TEST_LIST))
    place = lines.index("endif # HAVE_IB\n")
    lines[place:place] = ["if HAVE_SEP\n", "gtest_SOURCES += \\\n",
                          f"\t{SEP_TEST}\n", "endif\n"]
    write(os.path.join(path, TEST_LIST), lines)


if __name__ == "__main__":
    main()
