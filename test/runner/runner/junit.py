# SPDX-License-Identifier: BSD-3-Clause
"""Write results as the XML that CI systems read (JUnit's)."""

import os
import re
import xml.etree.ElementTree as ElementTree

from . import result

# What XML 1.0 cannot hold
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(path, results):
    """One suite per part and run."""
    root = ElementTree.Element("testsuites")
    _attributes(root, results)
    groups = {}
    for each in results:
        run = each.part if each.test == each.run else f"{each.part}.{each.run}"
        groups.setdefault(run.rstrip(":"), []).append(each)
    for name, members in groups.items():
        suite = ElementTree.SubElement(root, "testsuite", name=_fit(name))
        _attributes(suite, members)
        for each in members:
            _case(suite, name, each)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8",
                                        xml_declaration=True)


def _attributes(element, results):
    _, failed, skipped = result.count(results)
    element.set("tests", str(len(results)))
    element.set("failures", str(failed))
    element.set("errors", "0")
    element.set("skipped", str(skipped))
    element.set("time", f"{sum(each.seconds for each in results):.3f}")


def _case(suite, group, each):
    case = ElementTree.SubElement(suite, "testcase")
    where, _, name = each.test.rpartition(".")
    case.set("classname", _fit(f"{group}.{where}" if where else group))
    case.set("name", _fit(name))
    case.set("time", f"{each.seconds:.3f}")
    if each.status == result.FAILED:
        failure = ElementTree.SubElement(case, "failure",
                                         message=_fit(each.reason))
        failure.text = _fit(f"{each.reason}\nlog: {each.log}")
    elif each.status == result.SKIPPED:
        ElementTree.SubElement(case, "skipped", message=_fit(each.reason))


def _fit(text):
    return _UNFIT.sub("?", text)
