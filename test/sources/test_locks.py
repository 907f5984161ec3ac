# SPDX-License-Identifier: BSD-3-Clause
"""Tests of contrib/check_locks.py, on sources that are right and wrong."""

import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "contrib"))
import check_locks  # noqa: E402

FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-I" + os.path.join(TOP, "src"))
# As files of the transport are
HEAD = """
#include <uct/ib/sep/base/sep_lock.h>

UCT_SEP_MUTEX_DEFINE(door_mutex)
UCT_SEP_SPINLOCK_DEFINE(key_spinlock)

typedef struct {
    door_mutex_t   lock;
    key_spinlock_t key;
    int            guests UCT_SEP_GUARDED_BY(door_mutex);
    int            weight UCT_SEP_GUARDED_BY(key_spinlock);
} house_t;

void enter(house_t *house) UCT_SEP_REQUIRES(door_mutex);
void call(house_t *house) UCT_SEP_EXCLUDES(door_mutex);
"""
RIGHT = """
void enter(house_t *house)
{
    ++house->guests;
}

void visit(house_t *house)
{
    door_mutex_lock(&house->lock);
    enter(house);
    door_mutex_unlock(&house->lock);
    call(house);
    if (key_spinlock_trylock(&house->key)) {
        ++house->weight;
        key_spinlock_unlock(&house->key);
    }
}
"""
# What a visit must not be, and what is said about that
WRONG = {
    "++house->guests;": "writing variable 'guests'",
    "enter(house);": "calling function 'enter' requires",
    "door_mutex_lock(&house->lock);": "still held at the end",
    "door_mutex_unlock(&house->lock);": "that was not held",
    "door_mutex_lock(&house->lock); call(house); "
    "door_mutex_unlock(&house->lock);": "cannot call function 'call'",
    "key_spinlock_lock(&house->key); ++house->guests; "
    "key_spinlock_unlock(&house->key);": "writing variable 'guests'",
    "key_spinlock_trylock(&house->key); ++house->weight; "
    "key_spinlock_unlock(&house->key);": "writing variable 'weight'",
}


class Locks(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.clang = check_locks.find_clang()
        if cls.clang is None:
            raise unittest.SkipTest("no clang")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "house.c")

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(HEAD + text)

    def complaints(self, text):
        self.write(text)
        return check_locks.complaints(self.clang, FLAGS, self.path)

    def test_what_is_right_is_not_mentioned(self):
        self.assertEqual(self.complaints(RIGHT), "")

    def test_what_is_wrong_is_found(self):
        for statements, words in WRONG.items():
            with self.subTest(statements):
                said = self.complaints(
                    f"void visit(house_t *house)\n{{ {statements} }}\n")
                self.assertIn(words, said)
                self.assertIn("[-Werror,-Wthread-safety-analysis]", said)

    def test_other_compilers_see_nothing_of_it(self):
        self.write(RIGHT)
        result = subprocess.run(
            ("gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *FLAGS,
             self.path), stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
