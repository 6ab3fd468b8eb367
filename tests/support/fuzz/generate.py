# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Writes sequences while they run: what comes next depends on the objects that there are.

A sequence begins with lines that make objects of the usual kinds, goes on with calls of anything, and ends with objects
closed and dropped in any order. With several threads, rounds of one thread alternate with rounds in which all work on
a few objects at the same time. All choices come from the seed; with several threads, they also depend on who is first.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterator

from .grammar import ACTIONS, BEGINNING, PROTOCOLS, USUAL
from .sequence import ASSIGNMENT, CONTAINERS, VARIABLE, Space, Step
from .surface import Member, Parameter, Surface
from .values import SMALL, Budget, Pool, Values

CONTESTS = 0.7  # of the rounds of several threads
BURST = 8  # steps of a thread in a round of several
ALONE = 12  # at most, of the main thread between these


class Shape:
    """How long a sequence is.

    Parameters
    ----------
    threads : int
        How many threads work on the objects.
    steps : int
        About how many steps there are, in all threads.
    """

    def __init__(self, threads: int, steps: int) -> None:
        self.threads = threads
        self.steps = steps


class Generator:
    """Writes the lines of one sequence.

    Parameters
    ----------
    seed : int
        What all choices come from.
    surface : Surface
        The public API.
    space : Space
        Where the lines run.
    perform : callable
        Runs a step in the space.
    """

    def __init__(self, seed: int, surface: Surface, space: Space, perform: Callable[[Step], None]) -> None:
        self.seed = seed
        self.surface = surface
        self.space = space
        self.perform = perform
        self.pool = Pool()
        self.budget = Budget()
        self.number = -1

    def rounds(self, shape: Shape) -> Iterator[dict[int, Callable[[], None]]]:
        """Return the rounds of a sequence, for `sequence.run_rounds`; each is written while it runs."""
        rng = random.Random(self.seed)
        writers = [Writer(self, thread, self.pool) for thread in range(shape.threads)]
        first = writers[0]
        yield self.round({0: first.begin})
        if shape.threads == 1:
            yield self.round({0: lambda number: first.go_on(number, shape.steps)})
        for _ in range(shape.steps // (BURST * shape.threads) if shape.threads > 1 else 0):
            yield self.round({0: lambda number: first.go_on(number, rng.randint(1, ALONE))})
            focus = choose_focus(rng, self.pool)
            if focus and rng.random() < CONTESTS and not self.is_costly(self.pool.lines[focus[0]]):
                yield from self.contest(focus[0], writers)
            else:
                yield from self.burst(focus, writers)
        yield self.round({0: first.end})

    def round(self, work: dict[int, Callable[[int], None]]) -> dict[int, Callable[[], None]]:
        """Return a round: what its threads do, which gets its number."""
        self.number += 1
        return {thread: functools.partial(todo, self.number) for thread, todo in work.items()}

    def is_costly(self, line: str) -> bool:
        """Tell whether a line would ask for much memory if it ran often."""
        sizes = [int(size) for size in re.findall(r"\b\d+\b", line)]
        kinds = [self.pool.kinds.get(name) for name in VARIABLE.findall(line)]
        return max(sizes, default=0) > SMALL or any(kind and kind.__name__ == "VirtualMemoryResource" for kind in kinds)

    def burst(self, focus: tuple[str, ...], writers: list[Writer]) -> Iterator[dict[int, Callable[[], None]]]:
        """Have all threads do anything, mostly with a few objects."""
        pools = [self.pool.copy() for _ in writers]
        for writer, pool in zip(writers, pools):
            writer.join_in(pool, focus)
        yield self.round(
            {writer.thread: lambda number, writer=writer: writer.go_on(number, BURST) for writer in writers}
        )
        for writer in writers:
            writer.join_in(self.pool, ())
        self.merge(pools)

    def contest(self, name: str, writers: list[Writer]) -> Iterator[dict[int, Callable[[], None]]]:
        """Have all threads use the same new objects, one object after the other, some to close it."""
        kind, line = self.pool.kinds[name], self.pool.lines[name]
        before = set(self.pool.kinds)
        yield self.round({0: lambda number: writers[0].write(number, f"many(lambda: {line})")})
        made = self.pool.kinds.keys() - before
        if made:
            (values,) = made
            yield self.round({writer.thread: functools.partial(writer.compete, values, kind) for writer in writers})
            yield self.round({0: lambda number: writers[0].write(number, f"del {values}")})

    def merge(self, pools: list[Pool]) -> None:
        """Take over what the threads made and dropped."""
        for pool in pools:
            for name, kind in pool.kinds.items():
                self.pool.add(name, kind, pool.lines[name])
        for name in [name for name in self.pool.kinds if name not in self.space.names]:
            self.pool.remove(name)


def choose_focus(rng: random.Random, pool: Pool) -> tuple[str, ...]:
    """Return a few variables that all threads work on."""
    closable: dict[type, list[str]] = {}
    for name, kind in pool.kinds.items():
        if hasattr(kind, "close") or hasattr(kind, "destroy"):
            closable.setdefault(kind, []).append(name)
    kinds = rng.sample([*closable], min(len(closable), rng.choice((1, 1, 2, 3))))
    return tuple(rng.choice(closable[kind]) for kind in kinds)


class Writer:
    """Writes what one thread does."""

    def __init__(self, generator: Generator, thread: int, pool: Pool) -> None:
        self.rng = random.Random(f"{generator.seed}/{thread}")
        self.generator = generator
        self.surface = generator.surface
        self.thread = thread
        self.values = Values(self.rng, generator.surface, pool, generator.budget)
        self.prefix = f"v{thread}_" if thread else "v"
        self.count = 0

    @property
    def pool(self) -> Pool:
        return self.values.pool

    def join_in(self, pool: Pool, focus: tuple[str, ...]) -> None:
        """Go on with other variables."""
        self.values.pool, self.values.focus = pool, focus

    def begin(self, number: int) -> None:
        """Make objects of the usual kinds."""
        for template, chance in BEGINNING:
            if self.rng.random() < chance:
                self.write(number, self.values.fill(template))

    def go_on(self, number: int, steps: int) -> None:
        """Do anything."""
        if self.thread and self.count == 0 and self.rng.random() < 0.9:
            self.write(number, "Device(0).set_current()")
        for _ in range(steps):
            self.write(number, self.line())

    def end(self, number: int) -> None:
        """Close and drop what there is, in some order, or leave that to the end of the sequence."""
        for action in self.rng.choice((("close",), ("drop",), ("close", "drop"), ())):
            left = [*self.pool.kinds]
            self.rng.shuffle(left)
            for name in left:
                if action == "drop":
                    self.write(number, f"del {name}")
                elif hasattr(self.pool.kinds.get(name), "close"):
                    self.write(number, f"{name}.close()")

    def compete(self, values: str, kind: type, number: int) -> None:
        """Use each of some objects in the same way."""
        if not self.count and self.thread:
            self.write(number, "Device(0).set_current()")
        self.write(number, f"each({values}, lambda x: {self.rival(kind)})", is_assigned=False)

    def rival(self, kind: type) -> str:
        """Return a use of the object ``x``, as an expression."""
        if self.rng.random() < 0.4:
            for name in ("close", "destroy", "end_building"):
                if hasattr(kind, name):
                    return f"x.{name}()"
        text = self.use("x", kind, True)
        return "x.is_closed" if is_statement(text) else text

    def write(self, number: int, text: str, is_assigned: bool = True) -> None:
        """Run a line, in a variable of its own if it is an expression."""
        if not is_assigned or is_statement(text):
            line = text
        else:
            self.count += 1
            line = f"{self.prefix}{self.count} = {text}"
        self.generator.perform(Step(number, self.thread, line))
        names = self.generator.space.names
        match = ASSIGNMENT.fullmatch(line)
        if match and match[1] in names:
            self.pool.add(match[1], type(names[match[1]]), match[2])
        elif text.startswith("del ") and VARIABLE.fullmatch(text[4:]):
            self.pool.remove(text[4:])

    def line(self) -> str:
        """Return something to do."""
        (action,) = self.rng.choices([name for name, _ in ACTIONS], [weight for _, weight in ACTIONS])
        target = self.target()
        if action == "construct" or target is None:
            return self.call(self.rng.choice([*self.surface.classes.values()]))
        if action == "function" and self.surface.functions:
            return self.call(self.rng.choice([*self.surface.functions.values()]))
        if action == "collect":
            return self.rng.choice(("gc.collect()", "flush_releases()"))
        if action == "drop":
            return f"del {target}"
        kind = self.pool.kinds[target]
        if action == "close" and hasattr(kind, "close"):
            return f"{target}.close()"
        if action == "protocol" and self.surface.is_ours(kind):
            return self.protocol(target, kind)
        return self.use(target, kind, action == "usual")

    def call(self, callee) -> str:
        """Return a call of a public name."""
        return f"{callee.name}({self.values.arguments(callee.name, callee.parameters)})"

    def target(self) -> str | None:
        """Return a variable: one in focus, a late one, or one of any class."""
        kinds = self.pool.kinds
        focus = [name for name in self.values.focus if name in kinds]
        if focus and self.rng.random() < 0.75:
            return self.rng.choice(focus)
        if not kinds:
            return None
        if self.rng.random() < 0.5:
            return self.rng.choice([*kinds][-10:])
        kind = self.rng.choice([*dict.fromkeys(kinds.values())])
        return self.rng.choice([name for name, other in kinds.items() if other is kind])

    def use(self, target: str, kind: type, usually: bool) -> str:
        """Return a use of an object's members."""
        if kind in CONTAINERS:
            return f"[*{target}][{self.rng.choice((0, -1))}]"
        usual = [text for base in kind.__mro__ for text in USUAL.get(base.__name__, ())]
        members = self.surface.members(kind) if self.surface.is_ours(kind) else ()
        if usual and (usually or not members):
            return self.values.fill(self.rng.choice(usual).replace("{v}", target))
        if not members:
            return self.protocol(target, kind)
        return self.access(target, self.rng.choice(members))

    def access(self, target: str, member: Member) -> str:
        """Return a use of one member."""
        if member.callee is not None:
            return f"{target}.{member.name}({self.values.arguments(member.name, member.callee.parameters)})"
        chance = self.rng.random()
        if chance < 0.02:
            return f"del {target}.{member.name}"
        if chance < 0.2:
            value = self.values.argument("", Parameter(member.name, member.annotation, "positional", True))
            return f"{target}.{member.name} = {value}"
        return f"{target}.{member.name}"

    def protocol(self, target: str, kind: type) -> str:
        """Return a use of an object by a protocol, mostly one that its class knows."""
        known = [text for name, text in PROTOCOLS if hasattr(kind, name)]
        text = self.rng.choice(known if self.rng.random() < 0.85 else [text for _, text in PROTOCOLS])
        return self.values.fill(text.replace("{v}", target))


def is_statement(text: str) -> bool:
    """Tell a statement from an expression."""
    try:
        compile(text, "line", "eval")
    except SyntaxError:
        return True
    return False
