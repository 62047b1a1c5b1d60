"""The mutants of a module: small changes of its source, each of which some test has to notice.

mutmut's operators make them. mutmut itself changes neither code outside of functions nor decorated functions; here most
verdicts are tables outside of functions, so this module walks the whole source and adds operators for tables, conditions,
statements and regular expressions."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from msgspec import Struct
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_number, operator_string

RECIPE = 2
"""Goes up when this module makes other mutants, so that no verdict of an older version is used."""

_SWAPPED = (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot, cst.In, cst.NotIn)
"""mutmut negates these comparisons."""

_LARGE = 99

_UNSEEN_KEYWORDS = frozenset({"frozen", "kw_only"})
"""Options of a Struct that only the type checker's rules depend on."""


class Mutant(Struct, frozen=True):
    """One change of one file."""

    file: str
    """Relative to the project."""
    function: str
    """`Class.method`; empty outside of functions."""
    before: str
    """The lines that change, without indentation, in one line."""
    after: str
    nth: int
    """1 for the first change of the function that reads like this."""
    first: int
    """First line of the changed statement; a compound statement counts up to its colon, a function as a whole."""
    last: int
    scope: str
    """Digest of the function, or of the whole file outside of functions: a verdict holds as long as this is the same."""
    begin: int
    """The characters of the file that are replaced, up to `end`, by `text`."""
    end: int
    text: str

    def applied(self, source: str) -> str:
        """The whole file with the change."""
        return source[: self.begin] + self.text + source[self.end :]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return (self.file, self.function, self.before, self.after, self.nth)

    @property
    def id(self) -> str:
        return hashlib.sha256("\0".join(map(str, (RECIPE, *self.key))).encode()).hexdigest()[:16]


def mutants(file: str, text: str) -> list[Mutant]:
    """All mutants of a file, in the order of the source."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    walk = _Walk(file)
    wrapper.visit(walk)
    module = wrapper.module
    parts = [module.code_for_node(line) for line in module.header]
    parts += [module.code_for_node(statement) for statement in module.body]
    parts += [module.code_for_node(line) for line in module.footer]
    assert "".join(parts) == text, f"{file} is not what was parsed"
    place = {id(statement): len(module.header) + number for number, statement in enumerate(module.body)}
    whole = _digest(text)
    seen: set[str] = set()
    counts: dict[tuple[str, str, str], int] = {}
    found = []
    for change in walk.changes:
        number = place[id(change.top)]
        replaced = change.top.visit(_Replacement(change.old, change.new))
        assert isinstance(replaced, cst.CSTNode)
        part = module.code_for_node(replaced)
        source = "".join([*parts[:number], part, *parts[number + 1 :]])
        if source in seen or source == text or not _compiles(source, file):
            continue
        seen.add(source)
        before, after = _changed_lines(parts[number], part)
        nth = counts[change.function, before, after] = counts.get((change.function, before, after), 0) + 1
        scope = _digest(module.code_for_node(change.scope.with_changes(leading_lines=[]))) if change.scope else whole
        span = _difference(text, source)
        found.append(Mutant(file, change.function, before, after, nth, change.first, change.last, scope, *span))
    return found


def _difference(old: str, new: str) -> tuple[int, int, str]:
    """The start and the end of the difference between two texts, in the old text, and the new text between them."""
    begin = _common(old, new)
    same = _common(old[begin:][::-1], new[begin:][::-1])
    return begin, len(old) - same, new[begin : len(new) - same]


def _common(one: str, two: str) -> int:
    """The length of the common beginning of two texts."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((number for number, (left, right) in pairs if left != right), min(len(one), len(two)))


def _digest(code: str) -> str:
    """A digest of what the code does. Comments, docstrings and layout do not count."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _compiles(source: str, file: str) -> bool:
    try:
        compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _changed_lines(old: str, new: str) -> tuple[str, str]:
    """The lines in which two texts differ, each without its indentation, joined by blanks."""
    one, two = old.splitlines(), new.splitlines()
    while one and two and one[0] == two[0]:
        del one[0], two[0]
    while one and two and one[-1] == two[-1]:
        del one[-1], two[-1]
    before, after = (" ".join(line.strip() for line in lines) for lines in (one, two))
    return before, after


class _Change(Struct, frozen=True):
    old: cst.CSTNode
    new: cst.CSTNode
    top: cst.CSTNode
    """The statement of the module that contains it."""
    scope: cst.FunctionDef | None
    """The outermost function or method around it."""
    function: str
    first: int
    last: int


class _Replacement(cst.CSTTransformer):  # type: ignore[misc]
    def __init__(self, old: cst.CSTNode, new: cst.CSTNode) -> None:
        super().__init__()
        self._old = old
        self._new = new

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node is not self._old

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:
        return self._new if original_node is self._old else updated_node


class _Walk(cst.CSTVisitor):  # type: ignore[misc]
    """Collects the changes of a module."""

    METADATA_DEPENDENCIES = (ParentNodeProvider, PositionProvider)

    def __init__(self, file: str) -> None:
        super().__init__()
        self.changes: list[_Change] = []
        self._file = file
        self._names: list[cst.ClassDef | cst.FunctionDef] = []
        self._tops: list[cst.CSTNode] = []
        self._spans: list[tuple[int, int]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Module):
            return True
        if self._skipped(node):
            return False
        parent = self.get_metadata(ParentNodeProvider, node)
        if isinstance(parent, cst.Module):
            self._tops.append(node)
        if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.ExceptHandler, cst.MatchCase)):
            self._spans.append(self._span(node))
        if not isinstance(node, (cst.ClassDef, cst.FunctionDef)):
            self._mutate(node, parent)
        else:
            self._names.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if self._names and self._names[-1] is original_node:
            self._names.pop()
        if isinstance(
            original_node, (cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.ExceptHandler, cst.MatchCase)
        ) and not self._skipped(original_node):
            self._spans.pop()

    def _span(self, node: cst.CSTNode) -> tuple[int, int]:
        """First and last line, without the body if there is one. A function's header runs where the function is defined,
        but only its body shows what a default means."""
        position = self.get_metadata(PositionProvider, node)
        body = None if isinstance(node, cst.FunctionDef) else getattr(node, "body", None)
        if not isinstance(body, cst.BaseSuite):
            return position.start.line, position.end.line
        begin = self.get_metadata(PositionProvider, body).start.line
        return position.start.line, max(position.start.line, begin - isinstance(body, cst.IndentedBlock))

    def _skipped(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)):
            return True
        if isinstance(node, cst.Expr):
            return isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString)) or _is_log(node.value)
        if isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value in _UNSEEN_KEYWORDS:
            return True
        return isinstance(node, cst.If) and isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"

    def _mutate(self, node: cst.CSTNode, parent: cst.CSTNode) -> None:
        functions = [one for one in self._names if isinstance(one, cst.FunctionDef)]
        name = ".".join(one.name.value for one in self._names) if functions else ""
        for new in (*_by_mutmut(node), *_by_us(node, parent)):
            scope = functions[0] if functions else None
            first, last = self._spans[-1]
            self.changes.append(_Change(node, new, self._tops[-1], scope, name, first, last))


def _is_log(node: cst.BaseExpression) -> bool:
    """A call like log.info(...): no verdict depends on it."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and isinstance(node.func.value, cst.Name)
        and node.func.value.value == "log"
    )


def _by_mutmut(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for kind, operator in mutation_operators:
        if not isinstance(node, kind):
            continue
        changed = list(operator(node))
        if operator is operator_string:
            # One change is enough: mutmut would write it in upper and in lower case as well.
            yield from changed[:1]
        elif operator is operator_number:
            yield from map(_visible, changed)
        elif operator is operator_arg_removal:
            yield from (new for new in changed if _worth_calling(node, new))
        else:
            yield from changed


def _visible(number: cst.BaseNumber) -> cst.BaseNumber:
    """mutmut counts one on. Of a limit that is a large number no test can notice that, so those are doubled."""
    if isinstance(number, cst.Integer) and number.evaluated_value > _LARGE:
        return cst.Integer(str(2 * (number.evaluated_value - 1)))
    return number


def _worth_calling(old: cst.Call, new: cst.Call) -> bool:
    """False for a call without an argument in the middle, which fails at once whatever the tests are, and for one that is
    another mutant as well: `get(key)` is `get(key, None)`."""
    if len(old.args) == len(new.args):
        return True
    if isinstance(old.func, cst.Attribute) and old.func.attr.value == "get":
        return False
    pairs = enumerate(zip(old.args, new.args, strict=False))
    number = next((place for place, (one, two) in pairs if one is not two), len(new.args))
    return old.args[number].keyword is not None or number == len(old.args) - 1


def _by_us(node: cst.CSTNode, parent: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(node, (cst.If, cst.While, cst.CompIf, cst.Assert)):
        yield from _negated(node)
    elif isinstance(node, (cst.Tuple, cst.List, cst.Set, cst.Dict)):
        if not isinstance(parent, (cst.AssignTarget, cst.For, cst.CompFor, cst.Index, cst.AsName, cst.NamedExpr)):
            yield from _shortened(node)
    elif isinstance(node, (cst.Raise, cst.Expr)):
        yield cst.Pass()
    elif isinstance(node, cst.SimpleString) and "r" in node.prefix and not node.quote.startswith(('"""', "'''")):
        for pattern in narrower(node.raw_value):
            yield node.with_changes(value=f"{node.prefix}{node.quote}{pattern}{node.quote}")


def _negated(node: cst.If | cst.While | cst.CompIf | cst.Assert) -> Iterator[cst.CSTNode]:
    test = node.test
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return
    swapped = isinstance(test, cst.Comparison) and len(test.comparisons) == 1
    if swapped and isinstance(test.comparisons[0].operator, _SWAPPED):
        return
    inner = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), inner))


def _shortened(node: cst.Tuple | cst.List | cst.Set | cst.Dict) -> Iterator[cst.CSTNode]:
    """The collection without one of its elements."""
    for number in range(len(node.elements)):
        left = [*node.elements[:number], *node.elements[number + 1 :]]
        if isinstance(node, cst.Tuple):
            if len(left) == 1:
                left = [left[0].with_changes(comma=cst.Comma())]
            parens = {"lpar": node.lpar or [cst.LeftParen()], "rpar": node.rpar or [cst.RightParen()]}
            yield node.with_changes(elements=left, **parens)
        elif isinstance(node, cst.Set) and not left:
            yield cst.parse_expression("set()")
        else:
            yield node.with_changes(elements=left)


def narrower(pattern: str) -> Iterator[str]:
    """A regular expression without one of its alternatives, or without an anchor.

    >>> list(narrower("^a|b(c|d)"))
    ['b(c|d)', '^a', '^a|b(d)', '^a|b(c)', 'a|b(c|d)']
    """
    for begin, bars, end in _groups(pattern):
        edges = [begin, *bars, end]
        for number in range(len(edges) - 1 if bars else 0):
            first = number == 0
            cut = (begin, edges[1] + 1) if first else (edges[number], edges[number + 1])
            yield pattern[: cut[0]] + pattern[cut[1] :]
    if pattern.startswith("^"):
        yield pattern[1:]
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        yield pattern[:-1]


def _groups(pattern: str) -> Iterable[tuple[int, Sequence[int], int]]:
    """For the whole pattern and each group: the offsets of its beginning, its bars and its end. Empty if the text is only a part
    of a pattern."""
    stack: list[tuple[int, list[int]]] = [(0, [])]
    found: list[tuple[int, list[int], int]] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter == "\\":
            position += 1
        elif letter == "[":
            close = pattern.find("]", position + 2 + (pattern[position + 1 : position + 2] == "^"))
            if close < 0:
                return []
            position = close
        elif letter == "(":
            stack.append((_inside(pattern, position), []))
        elif letter == "|":
            stack[-1][1].append(position)
        elif letter == ")":
            if len(stack) == 1:
                return []
            begin, bars = stack.pop()
            found.append((begin, bars, position))
        position += 1
    if len(stack) != 1:
        return []
    return [(stack[0][0], stack[0][1], len(pattern)), *found]


def _inside(pattern: str, position: int) -> int:
    """The offset of a group's own pattern: after `(`, `(?:`, `(?P<name>` or `(?=`."""
    for opening in ("(?P<", "(?<"):
        if pattern.startswith(opening, position) and pattern[position + len(opening)] not in "=!":
            return pattern.index(">", position) + 1
    for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!"):
        if pattern.startswith(opening, position):
            return position + len(opening)
    return position + 1
