# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What a symbol tells: the name in the source, and, with its PTX, what kinds of parameters a kernel has.

The driver gives the offset and the size of each parameter, not its type. A C++ symbol spells the types out, in the
Itanium ABI's mangling; PTX declares them too, but takes pointers for integers and hides structures. What is not
understood completely is unknown: a wrong kind would let a wrong argument through, or refuse a right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Kind = str | None

FLOATING = "f"
INTEGER = "i"
POINTER = "p"
BYTES = "b"  # a class that no number of Python or C is, such as int4 or __nv_bfloat16
CLASS = "c"  # another class, which may be a complex number or one of half precision
_VALUE = "v"  # not a type, but a value, among the arguments of a template

_BUILTIN: dict[str, Kind] = {
    **dict.fromkeys("bwacshtijlmxyno", INTEGER),
    **dict.fromkeys("fd", FLOATING),
    "e": None,  # long double: another size on the device than on the host
    "g": BYTES,  # __float128
    "v": None,
}
_BUILTIN_D: dict[str, Kind] = {  # what follows the D
    "h": FLOATING,  # half
    "u": INTEGER,
    "s": INTEGER,
    "i": INTEGER,
    "n": POINTER,
    "F16_": FLOATING,
    "F16b": BYTES,  # bfloat16
    "F32_": FLOATING,
    "F64_": FLOATING,
    "F128_": BYTES,
}
_VECTOR_INTEGERS = ("char", "short", "int", "long", "longlong")
_VECTOR_BASES = (*_VECTOR_INTEGERS, *(f"u{name}" for name in _VECTOR_INTEGERS), "float", "double")
_ALIGNED_BASES = ("double", *(f"{sign}{name}" for sign in ("", "u") for name in ("long", "longlong")))
_SMALL_FLOATS = ("fp8_e4m3", "fp8_e5m2", "fp8_e8m0", "fp6_e2m3", "fp6_e3m2", "fp4_e2m1")
_NAMED: dict[str, Kind] = {
    "__half": FLOATING,
    **dict.fromkeys(["__half2", "__nv_bfloat16", "__nv_bfloat162", "dim3", "CUtensorMap_st"], BYTES),
    **{f"__nv_{name.replace('_', f'{lanes}_')}": BYTES for name in _SMALL_FLOATS for lanes in ("", "x2", "x4")},
    **dict.fromkeys([f"{base}{lanes}" for base in _VECTOR_BASES for lanes in range(1, 5)], BYTES),
    **dict.fromkeys([f"{base}4_{alignment}a" for base in _ALIGNED_BASES for alignment in (16, 32)], BYTES),
    **dict.fromkeys(["float2", "double2"], CLASS),  # what cuComplex.h makes complex numbers of
}
_MANGLED = "_Z"
_QUALIFIERS = re.compile("[rVK]*")
_STD_ABBREVIATIONS = "absiod"
_LITERAL_VALUE = re.compile(r"n?[0-9a-f]*E")
_SEQUENCE = re.compile(r"([0-9A-Z]{0,9})_")  # longer numbers are of no symbol, and int refuses very long ones
_NUMBER = re.compile(r"[0-9]{1,9}")
_MANGLED_NAME = re.compile(r"_Z(N[rVK]*)?(?:St)?")
_LENGTH = re.compile(r"L?([1-9][0-9]{0,8})")  # of a name; L is for internal linkage
_CODE_D = re.compile(r"F[0-9]+[_b]|.")

PTX_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_PTX_KINDS: dict[str, Kind] = {
    **{f"f{bits}": FLOATING for bits in (32, 64)},
    **{f"{sign}{bits}": INTEGER for sign in "us" for bits in (8, 16, 32, 64)},
}
_PTX_TYPE = re.compile(r"\.([busf][0-9]+)\b")


class _NotUnderstoodError(Exception):
    """The symbol has something in it that the parser does not know."""


def kinds_from_symbol(symbol: str) -> tuple[Kind, ...] | None:
    """Return the kinds of a kernel's parameters from its mangled C++ name, such as ``"_Z5saxpyfPfi"``.

    Each is one of `FLOATING`, `INTEGER`, `POINTER`, `BYTES`, `CLASS`, or None if its type may be a structure or an
    enumeration. Return None altogether if the symbol is not mangled, or not understood.
    """
    if not symbol.startswith(_MANGLED):
        return None
    try:
        return _Symbol(symbol).parameters()
    except (_NotUnderstoodError, IndexError, RecursionError):
        return None


def kinds_from_ptx(ptx: str, symbol: str) -> tuple[Kind, ...] | None:
    """Return the kinds of a kernel's parameters from its declaration in PTX, as :func:`kinds_from_symbol` does.

    An integer of 64 bits may be a pointer; every class is an array of bytes.
    """
    entry = re.search(rf"\.entry\s+{re.escape(symbol)}(?![\w$])", ptx)
    if entry is None:
        return None
    rest = PTX_COMMENT.sub("", ptx[entry.end() : ptx.find("{", entry.end())])
    opening = re.match(r"\s*\(([^()]*)\)", rest)
    if opening is None:
        return ()
    declarations = opening[1].strip()
    return tuple(_ptx_kind(item) for item in declarations.split(",")) if declarations else ()


def merge_kinds(first: tuple[Kind, ...] | None, second: tuple[Kind, ...] | None) -> tuple[Kind, ...] | None:
    """Merge the kinds from symbol and PTX. Only the symbol distinguishes pointers from integers, and classes.

    Where the two contradict each other the kind is unknown, and so are all where they differ in number.
    """
    if first is None or second is None:
        return second if first is None else first
    if len(first) != len(second):
        return None
    return tuple(_merge(*pair) for pair in zip(first, second))


def is_mangled(symbol: str) -> bool:
    """Return whether a symbol is a C++ name in the Itanium ABI's mangling."""
    return symbol.startswith(_MANGLED)


def readable_name(symbol: str) -> str:
    """Return the name that a symbol has in the source, with its namespaces, without arguments of any kind.

    Of ``"_ZN2ns5scaleIfEEvPT_S1_"`` that is ``"ns::scale"``; the symbol itself if it is not mangled, or not understood.
    """
    found = _MANGLED_NAME.match(symbol)
    if found is None:
        return symbol
    names, at = [], found.end()
    while length := _LENGTH.match(symbol, at):
        at = length.end() + int(length[1])
        names.append(symbol[length.end() : at])
        if not found[1]:  # not nested
            break
    return "::".join(names) if names and at <= len(symbol) else symbol


def _merge(first: Kind, second: Kind) -> Kind:
    if first is None or second is None or first == second:
        return second if first is None else first
    if second == CLASS:  # __half is one, and so is __int128
        return first
    return POINTER if (first, second) == (POINTER, INTEGER) else None


def _ptx_kind(declaration: str) -> Kind:
    found = _PTX_TYPE.search(declaration)
    if found is None:
        return None
    if "[" in declaration:
        return CLASS if found[1] == "b8" else None
    return POINTER if ".ptr" in declaration else _PTX_KINDS.get(found[1])


class _Symbol:
    """A parser of the part of the mangling that kernels use. It keeps kinds where a demangler would keep text."""

    def __init__(self, symbol: str) -> None:
        self._text = symbol
        self._at = len(_MANGLED)
        self._seen: list[Kind] = []  # what S_, S0_, ... stand for
        self._arguments: list[Kind] | None = None  # what T_, T0_, ... stand for

    def parameters(self) -> tuple[Kind, ...]:
        if self._function_name():
            self._expect("v")  # the name of a template's instance is followed by the return type
        if self._text[self._at :] == "v":
            return ()
        kinds = []
        while self._at < len(self._text):
            if self._peek() == "v":
                raise _NotUnderstoodError
            kinds.append(self._type())
        if not kinds:
            raise _NotUnderstoodError
        return tuple(kinds)

    def _peek(self) -> str:
        return self._text[self._at]

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise _NotUnderstoodError

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        if found:
            self._at += len(text)
        return found

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _NotUnderstoodError
        self._at = found.end()
        return found

    def _function_name(self) -> bool:
        """Skip the kernel's name and return whether it is an instance of a template."""
        if self._take("N"):
            return self._nested()
        self._take("St")
        self._source_name()
        if not self._take("I"):
            return False
        self._seen.append(None)
        self._arguments = self._template_arguments()
        return True

    def _nested(self) -> bool:
        """Skip names up to the closing E and return whether the last is an instance of a template."""
        instance = False
        while not self._take("E"):
            instance, known = self._take("I"), False
            if instance:
                self._arguments = self._template_arguments()
            elif self._take("St"):
                known = True
            elif self._take("S"):
                self._substitution()
                known = True
            else:
                self._source_name()
            if not known and self._peek() != "E":
                self._seen.append(CLASS if instance else None)
        return instance

    def _source_name(self) -> str:
        self._take("L")  # internal linkage
        length = int(self._match(_NUMBER)[0])
        name = self._text[self._at : self._at + length]
        if len(name) != length or length == 0:
            raise _NotUnderstoodError
        self._at += length
        return name

    def _substitution(self) -> Kind:
        if self._peek() in _STD_ABBREVIATIONS:
            self._at += 1
            return None
        return self._seen[self._sequence()]

    def _sequence(self) -> int:
        digits = self._match(_SEQUENCE)[1]
        return int(digits, 36) + 1 if digits else 0

    def _template_arguments(self) -> list[Kind]:
        arguments: list[Kind] = []
        while not self._take("E"):
            if self._take("L"):
                if self._peek() == "_":
                    raise _NotUnderstoodError
                self._type()
                self._match(_LITERAL_VALUE)
                arguments.append(_VALUE)
            elif self._peek() == "J":
                raise _NotUnderstoodError  # a parameter pack
            else:
                arguments.append(self._type())
        return arguments

    def _type(self) -> Kind:
        letter = self._peek()
        if letter.isdigit():
            return self._instance(self._remember(_NAMED.get(self._source_name())))
        self._at += 1
        if letter in _BUILTIN:
            return _BUILTIN[letter]
        if letter not in _RULES:
            raise _NotUnderstoodError
        return _RULES[letter](self)

    def _remember(self, kind: Kind) -> Kind:
        self._seen.append(kind)
        return kind

    def _instance(self, kind: Kind) -> Kind:
        """Return the kind of a named type that was just read, or of the instance if it is a template's."""
        if self._take("I"):
            self._template_arguments()
            return self._remember(CLASS)
        return kind

    def _qualified(self) -> Kind:
        self._match(_QUALIFIERS)
        return self._remember(self._type())

    def _pointer(self) -> Kind:
        self._type()
        return self._remember(POINTER)

    def _builtin_d(self) -> Kind:
        code = self._match(_CODE_D)[0]
        if code not in _BUILTIN_D:
            raise _NotUnderstoodError
        return _BUILTIN_D[code]

    def _nested_class(self) -> Kind:
        outer = self._arguments
        instance = self._nested()
        self._arguments = outer
        return self._remember(CLASS if instance else None)

    def _array(self) -> Kind:
        self._match(_NUMBER)
        self._expect("_")
        self._type()
        return self._remember(None)

    def _function(self) -> Kind:
        self._take("Y")
        while not self._take("E"):
            self._type()
        return self._remember(None)

    def _template_parameter(self) -> Kind:
        index = self._sequence()
        if self._arguments is None or self._arguments[index] == _VALUE or self._take("I"):
            raise _NotUnderstoodError
        return self._remember(self._arguments[index])

    def _substituted(self) -> Kind:
        if self._take("t"):
            self._source_name()
            return self._instance(self._remember(None))
        return self._instance(self._substitution())

    def _vendor(self) -> Kind:
        self._source_name()
        return self._remember(None)


_RULES: dict[str, Callable[[_Symbol], Kind]] = {
    **dict.fromkeys("rVK", _Symbol._qualified),
    **dict.fromkeys("PRO", _Symbol._pointer),
    "A": _Symbol._array,
    "D": _Symbol._builtin_d,
    "F": _Symbol._function,
    "N": _Symbol._nested_class,
    "S": _Symbol._substituted,
    "T": _Symbol._template_parameter,
    "u": _Symbol._vendor,
}
