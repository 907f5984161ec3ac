#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""State has an owner: who writes what of the transport's objects.

Interface, send queue and memory domain are what all rooms work on. Each struct
in them belongs to the room whose header declares it, and "ROOM/state" to ROOM:
there is what a room keeps in an object of a lower one. A struct of another room as
a whole, or a pointer to one, is that room's as well: it makes them. A room may
read all that it can see, and writes only what is its own; for the rest it calls
a function of the owner. contrib/check_layers.py refuses other writes, with what is found
here: assignments, increments, and calls of the functions in WRITERS with an
address. What the owner's functions do with a pointer is theirs.

With --list, print every field with the rooms that write it.
"""

import collections
import os
import re
import sys

import checks

ROOT = "src/uct/ib/sep"
# What rooms share. The structs that are part of one of these are, too.
OBJECTS = ("uct_sep_iface", "uct_sep_txwq", "uct_sep_md")

# Writes by another room that stay: (room, field) -> why
CREATES = ("creates the object by libibverbs, as queue/ and recv/ do by direct "
           "verbs")
POSTS = "posts receives by libibverbs, as recv/ does by direct verbs"
OPENS = "chosen when the interface is opened, by what its queues can do"
EXCEPTIONS = {
    ("open", "uct_sep_iface.api"): OPENS,
    ("open", "uct_sep_iface.super"): OPENS,
    ("verbs", "uct_sep_cq.cq"): CREATES,
    ("verbs", "uct_sep_cq.length"): CREATES,
    ("verbs", "uct_sep_txwq.qp"): CREATES,
    ("verbs", "uct_sep_srq.buf"): CREATES,
    ("verbs", "uct_sep_srq.length"): CREATES,
    ("verbs", "uct_sep_srq.counter"): POSTS,
    ("verbs", "uct_sep_srq.head"): POSTS,
    ("verbs", "uct_sep_srq.published"): POSTS,
    ("verbs", "uct_sep_srq.tail"): POSTS,
}

WRITERS = (r"ucs_list_(?:add_tail|add_head|del|head_init|splice_tail|"
           r"extract_head|insert_before|insert_after)|"
           r"ucs_queue_(?:head_init|push|push_head|pull|pull_non_empty|"
           r"pull_elem_non_empty|remove|splice|del_iter)|"
           r"__atomic_(?:store_n|exchange_n|add_fetch|sub_fetch|fetch_add|"
           r"fetch_sub)|ucs_atomic_\w+|memset")

COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
STRUCT = re.compile(r"\b(struct|union)\s*(\w*)\s*\{")
VARIABLE = re.compile(r"\b(?:struct\s+)?(uct_sep_\w+?)(?:_t)?\b\s*\**\s*"
                      r"(?:const\s+)?\b(\w+)\s*(?=[,;)=\[])")
# The function of a class has an argument that its macro names
SELF = re.compile(r"UCS_CLASS_(?:INIT|CLEANUP)_FUNC\((\w+?)_t\b")
FUNCTION = re.compile(r"\b(uct_sep_\w+?)_t\s*\*\s*(uct_sep_\w+)\(")
ROOTED = r"(\w+)(\([^()]*\))?((?:\s*(?:->|\.)\s*\w+(?:\[[^\]]*\])*)+)"
WRITE = re.compile(r"(?:(\+\+|--)\s*)?\b" + ROOTED +
                   r"\s*(=(?!=)|[-+|&^*]=|<<=|>>=|\+\+|--)?")
CALL = re.compile(r"\b(?:" + WRITERS + r")\s*\(")
ADDRESS = re.compile(r"&\s*" + ROOTED)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def matching(text, start, pair="{}"):
    """Index behind the bracket that closes the one at start."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if depth == 0:
            return i + 1
    return len(text)


class Struct:
    """A struct of the transport, with those inside that have no name."""

    def __init__(self, name, body, path):
        self.name = name
        self.path = path
        self.fields = {}  # name -> type, another Struct, or None
        self.embeds = set()  # names of structs that are part of this one
        self.parse(body)

    def parse(self, body):
        while True:
            match = STRUCT.search(body)
            if not match:
                break
            end = matching(body, match.end() - 1)
            after = re.match(r"\s*(\w*)\s*(\[[^;]*)?;", body[end:])
            inner = Struct(self.name, body[match.end():end - 1], self.path)
            if after and after.group(1):
                self.fields[after.group(1)] = inner
            else:
                self.fields.update(inner.fields)
            self.embeds |= inner.embeds
            body = body[:match.start()] + \
                body[end + (after.end() if after else 0):]
        for line in body.split(";"):
            match = re.match(r"\s*(?:const\s+|struct\s+|union\s+)*(\w+)(.*)$",
                             line, re.S)
            if not match:
                continue
            kind = re.sub("_t$", "", match.group(1))
            for name in match.group(2).split(","):
                field = re.match(r"\s*(\**)\s*(?:UCS_V_\w+\s*)?(\w+)", name)
                if field:
                    self.fields[field.group(2)] = kind
                    if not field.group(1):
                        self.embeds.add(kind)


class Sources:
    """The transport's text, without comments, and its structs."""

    def __init__(self, top, root=ROOT, objects=OBJECTS):
        self.root = root
        self.texts = {}
        self.structs = {}
        self.returns = {}
        for folder, _, names in os.walk(os.path.join(top, root)):
            for name in names:
                if name.endswith((".c", ".h", ".inl")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        text = COMMENT.sub(blank, file.read())
                    self.texts[os.path.relpath(path, top)] = text
        for path, text in sorted(self.texts.items()):
            self.returns.update({name: kind for kind, name
                                 in FUNCTION.findall(text)})
            if path.endswith(".h"):
                self.read_structs(path, text)

        self.shared = set()
        left = [name for name in objects if name in self.structs]
        while left:
            name = left.pop()
            if name not in self.shared:
                self.shared.add(name)
                left += [other for other in self.structs[name].embeds
                         if other in self.structs]

    def read_structs(self, path, text):
        place = 0
        while True:
            match = STRUCT.search(text, place)
            if not match:
                break
            place = matching(text, match.end() - 1)
            after = re.match(r"[\s\w]*?\b(\w+)\s*;", text[place:])
            name = match.group(2) or \
                (re.sub("_t$", "", after.group(1)) if after else "")
            self.structs[name] = Struct(name, text[match.end():place - 1],
                                        path)

    def room(self, path):
        """Who owns what a file declares."""
        folder = os.path.relpath(os.path.dirname(path), self.root)
        return os.path.dirname(folder) if folder.endswith("/state") else folder

    def resolve(self, kind, steps):
        """The struct that has the last of the fields that is one of ours, how
        the field is called, and whose it may be; or None."""
        struct, name, last = self.structs.get(kind), [], None
        for step in steps:
            if struct is None or step not in struct.fields:
                break
            field = struct.fields[step]
            name.append(step)
            last = (struct, ".".join(name), field)
            if isinstance(field, Struct):
                struct = field
            else:
                struct, name = self.structs.get(field), []
        if last is None:
            return None

        struct, name, field = last
        owners = {self.room(struct.path)}
        if not isinstance(field, Struct) and field in self.structs:
            owners.add(self.room(self.structs[field].path))
        return struct, name, owners

    def writes(self, path):
        """Yields line, struct, name of the field and owners for each write."""
        text = self.texts[path]
        kinds = collections.defaultdict(list)
        for match in VARIABLE.finditer(text):
            kinds[match.group(2)].append((match.start(), match.group(1)))
        for match in SELF.finditer(text):
            kinds["self"].append((match.start(), match.group(1)))

        found = [(match.start(), *match.group(2, 3, 4))
                 for match in WRITE.finditer(text)
                 if match.group(1) or match.group(5)]
        for call in CALL.finditer(text):
            end = matching(text, call.end() - 1, "()")
            found += [(call.start(), *match.groups())
                      for match in ADDRESS.finditer(text, call.end(), end)]
        for start, name, args, steps in sorted(found):
            if args:
                kind = self.returns.get(name)
            else:
                before = [kind for place, kind in kinds[name]
                          if place < start]
                kind = before[-1] if before else None
            field = self.resolve(kind, re.findall(
                r"\w+", re.sub(r"\[[^\]]*\]", "", steps)))
            if field and field[0].name in self.shared:
                yield (text.count("\n", 0, start) + 1, *field)


def check(top, root=ROOT, objects=OBJECTS, exceptions=None):
    """Complaints about writes to what is another room's."""
    exceptions = EXCEPTIONS if exceptions is None else exceptions
    sources = Sources(top, root, objects)
    problems, used = [], set()
    for path in sorted(sources.texts):
        room = sources.room(path)
        for line, struct, field, owners in sources.writes(path):
            key = (room, f"{struct.name}.{field}")
            if room in owners:
                continue
            if key in exceptions:
                used.add(key)
                continue
            problems.append(f"{path}:{line}: writes {key[1]}, which is of "
                            f"{' and '.join(sorted(owners))}: call a function "
                            "of that room")
    for room, field in sorted(set(exceptions) - used):
        if field.partition(".")[0] not in sources.structs:
            continue
        problems.append(f"contrib/check_owners.py: {room} may write {field} "
                        "and does not")
    return problems


def show(top):
    sources = Sources(top)
    writers = collections.defaultdict(collections.Counter)
    for path in sources.texts:
        for _, struct, field, owners in sources.writes(path):
            writers[tuple(sorted(owners)), struct.name,
                    field][sources.room(path)] += 1
    for (owners, struct, field), rooms in sorted(writers.items()):
        print(f"{' '.join(owners)}\t{struct}.{field}\t" +
              " ".join(f"{room}:{count}" for room, count
                       in sorted(rooms.items())))
    several = sum(len(rooms) > 1 for rooms in writers.values())
    foreign = sum(count for (owners, *_), rooms in writers.items()
                  for room, count in rooms.items() if room not in owners)
    others = sum(bool(set(rooms) - set(owners)) for (owners, *_), rooms
                 in writers.items())
    print(f"{len(writers)} fields are written, {several} from more than one "
          f"room, {others} from others than the owner, in {foreign} places")


if __name__ == "__main__":
    sys.exit(checks.main(__doc__, check, "--list", show))
