# SPDX-License-Identifier: BSD-3-Clause
"""docs/book.md, from the tables."""

KINDS = {
    "exact": "the same on each machine, and checked by CI",
    "counted": "counted, in release builds; processors and compilers differ "
               "by some percent"
}

HEAD = """\
# The book of evidence

A page per figure of the papers on which the project stands: theirs as numbers, ours from
this repository, whether they agree, and why if they don't. `contrib/book.sh` writes it,
with the tables (`docs/book/*.tsv`) and figures; nothing here was written by hand after the
fact. There is no adapter behind any number of ours: resources, instructions and the work of
the device are counted on the [software device](software-device.md), and rates are
predicted by a [model](model.md).

<!-- not run: 20 minutes, after UCX has been built; the second takes minutes, CI runs it -->
```sh
contrib/book.sh                 # measure everything, and write the book
contrib/book.sh --check         # have the exact numbers changed?
contrib/book.sh --list          # chapters
contrib/book.sh --only rates    # measure one, and write the book
contrib/book.sh --draw          # write page and figures from the tables
```

"""


def chapter_text(chapter, table, number, has_figure):
    lines = [f"## {number}. {chapter.title}\n",
             f"*{chapter.source}.* Numbers: {KINDS[chapter.kind]}.\n"]
    if has_figure:
        lines.append(f"![{chapter.title}](book/{chapter.name}.svg)\n")
    lines += [chapter.shown(table).markdown(),
              f"**Theirs.** {chapter.theirs(table)}\n",
              f"**Verdict.** {chapter.verdict(table)}\n",
              f"From [{chapter.name}.tsv](book/{chapter.name}.tsv): "
              f"`{chapter.command}`\n"]
    return "\n".join(lines)


def contents(chapters):
    lines = [f"{number}. [{chapter.title}](#{anchor(number, chapter.title)})"
             for number, chapter in enumerate(chapters, 1)]
    return "\n".join(lines) + "\n\n"


def anchor(number, title):
    """As the sites that show Markdown make them."""
    kept = "".join(letter for letter in f"{number}. {title}".lower()
                   if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def text(tables, figures):
    """The page. tables: [(chapter, table)]; figures: names of those drawn."""
    chapters = [chapter for chapter, _ in tables]
    return HEAD + contents(chapters) + "\n".join(
        chapter_text(chapter, table, number, chapter.name in figures)
        for number, (chapter, table) in enumerate(tables, 1))
