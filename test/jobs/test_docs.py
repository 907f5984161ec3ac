# SPDX-License-Identifier: BSD-3-Clause
"""The documentation says what the sources say."""

import fnmatch
import json
import os
import re
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
PAGES = ("README.md", "NEWS", "CONTRIBUTING.md") + tuple(sorted(
    f"docs/{name}" for name in os.listdir(os.path.join(TOP, "docs"))
    if name.endswith(".md")))

# Pages that lead through the sources
WALKS = ("docs/walk-of-a-put.md", "docs/walk-of-a-doorbell.md",
         "docs/add-an-opcode.md", "docs/add-a-category.md")


def read(*names):
    with open(os.path.join(TOP, *names), encoding="utf-8") as file:
        return file.read()


class Documentation(unittest.TestCase):

    @staticmethod
    def anchors(page):
        """What links may have behind "#", made of headings as forges do."""
        text = re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S)
        return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
                for heading in re.findall(r"^#+ (.*)$", text, re.M)}

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)",
                                             read(page)):
                name = os.path.normpath(os.path.join(os.path.dirname(page),
                                                     target)) if target else page
                self.assertTrue(os.path.exists(os.path.join(TOP, name)),
                                f"{page}: {target}")
                if anchor:
                    self.assertIn(anchor, self.anchors(name), page)

    def test_files_that_are_named_exist(self):
        pattern = r"`((?:contrib|config|src|test|docs)/[\w./-]*\w)`"
        for page in PAGES:
            for name in re.findall(pattern, read(page)):
                found = os.path.exists(os.path.join(TOP, name)) or \
                    name == "src/ucx-config.h"
                self.assertTrue(found, f"{page}: {name}")

    def test_functions_are_in_the_files_that_are_named_with_them(self):
        """They are defined in a file that the same section names."""
        for page in WALKS:
            text = re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S)
            for section in re.split(r"^#+ ", text, flags=re.M):
                words = re.findall(r"`([^`\n]+)`", section)
                sources = [read(word) for word in words if
                           re.fullmatch(r"(?:src|test)/[\w./-]+\.\w+", word)]
                for name in re.findall(r"`((?:uct_sep|mlx5sim)_\w+)\(\)`",
                                       section):
                    defined = rf"(?m)^(?:\S.*\b)?{name}\([^;{{}}]*\)\n\{{"
                    self.assertTrue(any(re.search(defined, source)
                                        for source in sources),
                                    f"{page}: {name}()")

    def test_functions_in_pictures_exist(self):
        sources = [read(where, name)
                   for where, _, names in os.walk(os.path.join(TOP, "src"))
                   for name in names if name.endswith((".c", ".inl"))]
        names = re.findall(r"(?:uct_sep|mlx5sim)_\w+",
                           read("docs/pictures/put.dot"))
        self.assertGreater(len(names), 2)
        for name in names:
            self.assertTrue(any(f"\n{name}(" in source or f" {name}(" in source
                                for source in sources), name)

    def test_table_of_modules_is_that_of_the_directory(self):
        text = read("docs/architecture.md")
        section = text[text.index("### Modules"):text.index("### Objects")]
        patterns = re.findall(r"`([\w/.*\[\]]+\.[\w\[\]]+)`", section)
        folder = os.path.join(TOP, "src/uct/ib/sep")
        files = [os.path.relpath(os.path.join(where, name), folder)
                 for where, _, names in os.walk(folder) for name in names
                 if os.path.splitext(name)[1] in (".c", ".h", ".inl")]
        for pattern in patterns:
            self.assertTrue(fnmatch.filter(files, pattern), pattern)
        for name in files:
            self.assertTrue(any(fnmatch.fnmatch(name, pattern) for pattern in
                                patterns), f"{name} is in no row")


class MainJob(unittest.TestCase):

    def test_rows_that_are_shown_are_those_of_the_main_job(self):
        """Where dots do not stand for others, all of them."""
        rows = subprocess.run(
            [os.path.join(TOP, "test/jobs/main_job"), "--quick", "--list"],
            check=True, capture_output=True, text=True,
            timeout=300).stdout.splitlines()
        table = read("docs/main-job.md").partition("\n---")[2]
        table = table.partition("\n\n")[0].splitlines()[1:]
        shown = [re.split(r"  +", line)[0] for line in table
                 if not line.startswith(" ")]
        self.assertGreater(len(shown), 20)
        places = [None if name == "..." else rows.index(name)
                  for name in shown]
        for first, second in zip(places, [*places[1:], len(rows)]):
            if first is not None and second is not None:
                self.assertEqual(first + 1, second, rows[first])
        numbers = [place for place in places if place is not None]
        self.assertEqual(sorted(set(numbers)), numbers)


class Timeline(unittest.TestCase):

    def test_the_doorbells_that_follow_soonest_are_drawn(self):
        events = [("M", "thread_name", 7, 0), ("i", "BlueFlame", 1, 0),
                  ("X", "SEND", 7, 2), ("i", "doorbell", 1, 100),
                  ("X", "RDMA_WRITE", 7, 101), ("i", "doorbell", 1, 104),
                  ("X", "NOP", 7, 105)]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("[\n" + "".join(json.dumps({
                "ph": phase, "name": name, "pid": 1, "tid": row, "ts": time,
                "dur": 2 if phase == "X" else 0,
                "args": {"name": "QP 0x7"}}) + ",\n"
                for phase, name, row, time in events))
            file.flush()
            picture = subprocess.run(
                [os.path.join(TOP, "contrib/draw_timeline.py"), file.name],
                check=True, capture_output=True, text=True,
                timeout=300).stdout
        texts = re.findall(r">([^<\n]+)</text>", picture)
        self.assertEqual(["process 1, thread", "process 1, QP 0x7", "doorbell",
                          "RDMA_WRITE"], texts[:4])
        self.assertFalse({"BlueFlame", "SEND", "NOP"} & set(texts))


class Variables(unittest.TestCase):

    def test_those_of_the_device_are_in_its_manual(self):
        names = set(re.findall(r'\{"(MLX5SIM_\w+)"',
                               read("src/sim/config/config.c")))
        table = read("docs/software-device.md")
        documented = set(re.findall(r"^\| `(MLX5SIM_\w+)` \|", table, re.M))
        self.assertEqual(names, documented)

    def assert_generated(self, table):
        """A table of the manual is what mlx5sim-stat prints."""
        program = os.path.join(os.environ.get("SEP_BUILD_DIR", TOP),
                               "bin/mlx5sim-stat")
        if not os.access(program, os.X_OK):
            self.skipTest("mlx5sim-stat is not built")
        wanted = subprocess.run([program, f"--{table}-markdown"], check=True,
                                capture_output=True, text=True,
                                timeout=300).stdout.strip()
        found = re.search(rf"<!-- {table}:.*?-->\n(.*?)\n<!-- end",
                          read("docs/software-device.md"), re.S)
        self.assertEqual(found.group(1).strip(), wanted)

    def test_table_of_the_manual_is_the_generated_one(self):
        self.assert_generated("variables")

    def test_table_of_what_is_not_emulated_is_the_generated_one(self):
        self.assert_generated("missing")

    def test_table_of_firmware_commands_is_the_generated_one(self):
        self.assert_generated("opcodes")

    def test_tables_of_resources_are_the_generated_ones(self):
        build = os.environ.get("SEP_BUILD_DIR", TOP)
        if not os.access(os.path.join(build, "bin/sep_info"), os.X_OK):
            self.skipTest("sep_info is not built")
        wanted = subprocess.run(
            [os.path.join(TOP, "contrib/bench-resources.sh"), "--build", build,
             "--markdown"], check=True, capture_output=True, text=True,
            timeout=300).stdout.strip()
        found = re.search(r"<!-- tables:.*?-->\n(.*?)\n<!-- end",
                          read("docs/resources.md"), re.S)
        self.assertEqual(found.group(1).strip(), wanted)

    def test_options_of_sep_info_in_the_readme_exist(self):
        usage = read("src/tools/info/sep_info_options.c")
        for page in ("docs/using.md", "docs/resources.md", "docs/categories.md"):
            for line in re.findall(r"^.*\bsep_info -.*$", read(page), re.M):
                command = line.split("#")[0].split("`")
                command = command[1] if len(command) > 1 else command[0]
                for option in re.findall(r" -([a-zA-Z])\b", command):
                    self.assertRegex(usage, rf'(?m)^"  -{option}\b', line)

    def test_page_of_settings_is_the_generated_one(self):
        build = os.environ.get("SEP_BUILD_DIR", TOP)
        if not os.path.exists(os.path.join(build, "lib/sep/ucx-1.13")):
            self.skipTest("other releases of UCX name types in other words")
        wanted = subprocess.run(
            [os.path.join(TOP, "contrib/settings.py"), build], check=True,
            capture_output=True, text=True, timeout=300).stdout
        self.assertEqual(read("docs/settings.md"), wanted)

    def test_page_of_settings_has_each_variable_once(self):
        names = []
        for source in ("iface/sep_config.c", "md/sep_md_config.c"):
            found = re.findall(r'^    \{"([A-Z][A-Z_]+)",',
                               read("src/uct/ib/sep/" + source), re.M)
            self.assertGreater(len(found), 5, source)
            names += found
        page = re.findall(r"^\| `([A-Z_]+)` \|", read("docs/settings.md"), re.M)
        self.assertEqual(sorted(names), sorted(page))

    def test_categories_and_what_auto_chooses_are_in_the_guide(self):
        program = os.path.join(os.environ.get("SEP_BUILD_DIR", TOP),
                               "bin/sep_info")
        if not os.access(program, os.X_OK):
            self.skipTest("sep_info is not built")
        rows = json.loads(subprocess.run(
            [program, "-l", "--json"], check=True, capture_output=True,
            text=True, timeout=300).stdout)["categories"]
        text = read("docs/categories.md")
        for row in rows:
            self.assertRegex(text, rf"(?m)^\| `{row['category']}` \|")
        self.assertIn("`auto`", text)

        steps = [(1, row["category"]) for row in rows if row["auto_alone"]]
        steps += [(row.get("auto_workers"), row["category"]) for row in rows
                  if row["auto"]]
        self.assertGreaterEqual(len(steps), 5)
        first = 1
        for last, name in steps:
            count = f"{first} and more" if last is None else \
                f"{first}" if last == first else f"{first} to {last}"
            self.assertIn(f"| {count} | `{name}` |", text)
            first = last + 1 if last is not None else None
        self.assertIsNone(first)

    def test_those_that_the_launcher_sets_are_in_its_help(self):
        script = read("src/tools/run/sep-run.in")
        usage = script[script.index("usage() {"):script.index("fail() {")]
        names = re.findall(r"^(?:.*\|\| )?default ([A-Z]\w+) ", script, re.M)
        self.assertGreater(len(names), 5)
        for name in names:
            self.assertIn(f"  {name}=", usage)


class Numbers(unittest.TestCase):
    """Pages quote what the book's files say, rounded to the digits that they
    show."""

    OPERATIONS = {"put_short 8 B": "put_short", "am_short 8 B": "am_short",
                  "put_bcopy 1 KB": "put_bcopy", "am_bcopy 1 KB": "am_bcopy",
                  "get_bcopy 8 B": "get_bcopy", "fadd64": "fadd64",
                  "receive 8 B": "recv", "completion of a put": "completion",
                  "idle progress": "progress_idle", "put and flush": "flush"}

    CATEGORIES = ("mpi_everywhere", "2xdynamic", "dynamic", "shared_dynamic",
                  "static", "mpi_threads")

    @staticmethod
    def book(name):
        """Rows of a file by the first cell, each with names of columns."""
        names, *rows = [line.split("\t") for line in
                        read("docs/book", name + ".tsv").splitlines()]
        return {row[0]: dict(zip(names, row)) for row in rows}

    @staticmethod
    def table(page, *names):
        """Cells of the table with these names of columns, by the first one."""
        head = ("| " + " | ".join(names) + " |\n").replace("|  |", "| |") + \
            "|" + "---|" * len(names) + "\n"
        text = read(page)
        start = text.index(head) + len(head)
        rows = re.match(r"(?:\|.*\n)+", text[start:]).group(0).splitlines()
        cells = [[cell.strip() for cell in row.strip("|").split("|")]
                 for row in rows]
        return {row[0]: row[1:] for row in cells}

    def assert_quotes(self, shown, exact, where):
        """A number with as many digits as it has, up or down if between two."""
        digits = len(shown.partition(".")[2])
        self.assertLessEqual(abs(float(shown) - float(exact)),
                             0.5 * 10 ** -digits + 1e-9, f"{where}: {shown}")

    def assert_pairs(self, cells, row, columns, where):
        for cell, column in zip(cells, columns):
            for shown, transport in zip(cell.split(" / "),
                                        ("sep_mlx5", "rc_mlx5")):
                name = f"{column} {transport}".strip()
                self.assert_quotes(shown, row[name], f"{where}, {name}")

    # Releases of UCX, and the version of the protocols of each of their tables
    UCP_TABLES = (("1.22.0", "yn"), ("1.18.1", "yn"), ("1.13.1", "ny"))

    # Rows that have more of libucp than stock, and why: ucp-optimisations.md
    MORE_OF_UCP = {"worker_flush_nothing", "rkey_unpack"}

    @classmethod
    def ucp_rows(cls, release, proto):
        """{row: {transport: cells by name}} of a release."""
        rows = {}
        for name, cells in cls.book(f"ucp-{release}").items():
            row, _, suffix = name.partition(":")
            transport, version = (suffix or "rc_mlx5:n").split(":")
            if version == proto:
                rows.setdefault(row, {})[transport] = cells
        return rows

    def assert_counts(self, shown, stock, patched, where):
        """"1 → 2", or nothing if there is no such row."""
        if "-" in (stock, patched):
            self.assertEqual("", shown, where)
            return
        pair = shown.split(" → ")
        self.assertEqual(2, len(pair), f"{where}: {shown}")
        for text, exact in zip(pair, (stock, patched)):
            self.assert_quotes(text, exact, where)

    def test_instructions_of_ucp(self):
        absent = dict.fromkeys(("stock", "patched", "stock_ucp", "patched_ucp"),
                               "-")
        page = read("docs/ucp-optimisations.md")
        for release, protos in self.UCP_TABLES:
            section = page.partition(f"### UCX {release}\n")[2]
            section = section.partition("\n### ")[0]
            tables = re.findall(r"(?m)^\| row \|.*\n\|---.*\n((?:\|.*\n)+)",
                                section)
            self.assertEqual(2, len(tables), release)
            for proto, table in zip(protos, tables):
                exact = self.ucp_rows(release, proto)
                shown = set()
                for line in table.splitlines():
                    name, *cells = [cell.strip(" `") for cell in
                                    line.strip("|").split("|")]
                    shown.add(name)
                    for number, transport in ((0, "rc_mlx5"), (2, "sep_mlx5")):
                        row = exact[name].get(transport, absent)
                        where = f"{release}, {proto}, {name}, {transport}"
                        self.assert_counts(cells[number], row["stock"],
                                           row["patched"], where)
                        self.assert_counts(cells[number + 1], row["stock_ucp"],
                                           row["patched_ucp"], where)
                there = {name for name, row in exact.items() if
                         any(each["stock"] != "-" for each in row.values())}
                self.assertEqual(there - {"ucp_put_above_uct"}, shown, release)

    def test_no_row_of_ucp_has_more_than_stock(self):
        more_of_ucp = set()
        for release, protos in self.UCP_TABLES:
            for name, row in self.book(f"ucp-{release}").items():
                row_name = name.partition(":")[0]
                if row["stock"] == "-" or row_name == "put_rate":
                    continue
                where = f"{release}, {name}"
                self.assertLessEqual(float(row["patched"]),
                                     float(row["stock"]), where)
                if "-" not in (row["stock_ucp"], row["patched_ucp"]) and \
                        float(row["patched_ucp"]) > float(row["stock_ucp"]):
                    more_of_ucp.add(row_name)
        self.assertLessEqual(more_of_ucp, self.MORE_OF_UCP)

    def test_direct_verbs_and_libibverbs(self):
        columns = ("sep_mlx5 (dv)", "sep_mlx5 (wr)", "sep_mlx5 (verbs)",
                   "rc_mlx5", "rc_verbs")
        exact = self.book("apis")
        table = self.table("docs/tuning.md", "", *columns)
        self.assertEqual(set(self.OPERATIONS), set(table))
        for name, cells in table.items():
            for column, shown in zip(columns, cells):
                self.assert_quotes(shown, exact[self.OPERATIONS[name]][column],
                                   f"{name}, {column}")

    def test_what_instructions_do_not_show(self):
        exact = self.book("instructions")
        table = self.table("docs/tuning.md", "", "lines", "code", "reads",
                           "writes", "stores to the device")
        self.assertEqual(set(self.OPERATIONS), set(table))
        for name, cells in table.items():
            self.assert_pairs(cells, exact[self.OPERATIONS[name]], (
                "lines", "code", "reads", "writes", "mmio"), name)

    def test_instructions_beside_those_with_newer_ucx(self):
        exact = self.book("instructions")
        table = self.table("docs/tuning.md", "", "UCX 1.13.1", "1.18.1",
                           "1.22.0")
        self.assertEqual(set(self.OPERATIONS), set(table))
        for name, cells in table.items():
            self.assert_pairs(cells[:1], exact[self.OPERATIONS[name]], ("",),
                              name)

    def test_what_interfaces_take(self):
        exact = self.book("connect")
        table = self.table(
            "README.md", "interfaces", "queue pairs: `sep_mlx5`", "`rc_mlx5`",
            "memory, MB: `sep_mlx5`", "`rc_mlx5`")
        self.assertGreater(len(table), 2)
        for count, cells in table.items():
            rows = [exact[f"{transport}, 2 processes, {count}"]
                    for transport in ("sep_mlx5", "rc_mlx5")]
            for shown, row, column in zip(cells, rows * 2, (
                    "qps", "qps", "memory_mb", "memory_mb")):
                self.assert_quotes(shown, row[column], f"{count}, {column}")

    def test_the_default_category_beside_others(self):
        names = {"receive of an 8 B message": "recv",
                 "progress, idle": "progress_idle", "flush of one put": "flush",
                 **self.OPERATIONS}
        exact = self.book("instructions")
        table = self.table("docs/resources.md", "operation", *(
            f"`{name}`" for name in self.CATEGORIES))
        self.assertEqual(len(exact), len(table))
        place = self.CATEGORIES.index("dynamic")
        for name, cells in table.items():
            self.assert_quotes(cells[place], exact[names[name]]["sep_mlx5"],
                               name)

    def test_a_put_in_each_category(self):
        names = [f"`{name}`" for name in self.CATEGORIES]
        exact = self.table("docs/resources.md", "operation",
                           *names)["put_short 8 B"]
        shown = self.table("docs/categories.md", "",
                           *names)["instructions of an 8-byte put"]
        for cell, number, name in zip(shown, exact, names):
            self.assert_quotes(cell, number, name)


class Installed(unittest.TestCase):

    TARGETS = [f"install-dist_doc{name}DATA" for name in
               ("", "pages", "book", "pictures")]

    @unittest.skipUnless(os.path.exists(os.path.join(
        os.environ.get("SEP_BUILD_DIR", TOP), "Makefile")), "no Makefile")
    def test_links_and_pictures_are_there(self):
        build = os.environ.get("SEP_BUILD_DIR", TOP)
        with tempfile.TemporaryDirectory(prefix="sep-docs.") as top:
            subprocess.run(["make", "-C", build, *self.TARGETS,
                            f"DESTDIR={top}"], check=True, timeout=300,
                           capture_output=True)
            pages = [os.path.join(where, name)
                     for where, _, names in os.walk(top)
                     for name in names if name.endswith((".md", "NEWS"))]
            self.assertEqual(len(PAGES), len(pages))
            for page in pages:
                with open(page, encoding="utf-8") as file:
                    links = re.findall(r"\]\(([^)#]+)", file.read())
                for link in links:
                    self.assertTrue(os.path.exists(os.path.join(
                        os.path.dirname(page), link)), f"{page}: {link}")


if __name__ == "__main__":
    unittest.main()
