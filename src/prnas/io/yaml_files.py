"""YAML: read safely (nothing is executed or expanded), written to be read by people."""

# PyYAML's stubs leave its loaders untyped.
# pyright: standard

import re
from typing import Any

import yaml

from prnas.io.errors import FormatError
from prnas.io.reading import MAX_DIGITS

MAX_YAML = 400_000  # Characters: PyYAML takes seconds for these already.
_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"


class _Loader(yaml.SafeLoader):
    """Plain data only. Aliases are refused (a few lines of them expand to gigabytes)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise _error("aliases (*name) are not supported", self.peek_event())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise _error(f"the key '{key.value!s:.60}' is given twice", key)
            if isinstance(key.value, str):
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: Any) -> Any:
        """Refuse long numbers: in hexadecimal or base 60 (1:59), some would take hours to read."""
        if node.tag in (_INT, _FLOAT) and len(node.value) > MAX_DIGITS:
            raise _error("a number is too large", node)
        return super().construct_scalar(node)


def _error(problem: str, token: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=token.start_mark)


# PyYAML follows YAML 1.1, where 3e-4 is a string; people who write it mean a number.
_SHORT_FLOAT = _FLOAT, re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+"), list("-+0123456789")
_Loader.add_implicit_resolver(*_SHORT_FLOAT)


def parse_yaml(text: str) -> Any:
    """Plain data from YAML text; a `FormatError` names the line of a problem."""
    if len(text) > MAX_YAML:
        raise FormatError([f"the text has more than {MAX_YAML:,} characters"])
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = f"not valid YAML ({error.problem or error.context})"
        if re.search(r"but got '[\[{]'", problem):
            problem += ": in a list or mapping, quote text that has brackets of its own"
        raise FormatError([f"{where}{problem}"]) from None
    except yaml.YAMLError as error:
        raise FormatError([f"not valid YAML ({str(error).splitlines()[0]:.120})"]) from None
    except RecursionError:
        raise FormatError(["nested too deeply"]) from None
    # An impossible date or number; PyYAML itself fails at some, such as `!!bool x`.
    except (ValueError, OverflowError, TypeError, LookupError, AttributeError) as error:
        raise FormatError([f"not valid YAML ({error!s:.120})"]) from None


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)


def _short_in_line(dumper: _Dumper, data: dict[str, Any]) -> yaml.Node:
    """A mapping in one line if it is a cycle of the schedule, else with a line for each key."""
    plain = all(not isinstance(value, dict | list) for value in data.values())
    style = plain and "epochs" in data
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=style)


def _list_in_line(dumper: _Dumper, data: list[Any]) -> yaml.Node:
    plain = all(not isinstance(value, dict | list) for value in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=plain)


# Line breaks of Unicode, which PyYAML writes as they are and reads back as blanks.
_BREAKS = frozenset("\x85\u2028\u2029\ufeff")


def _quoted_if_odd(dumper: _Dumper, data: str) -> yaml.Node:
    style = '"' if _BREAKS.intersection(data) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_implicit_resolver(*_SHORT_FLOAT)  # so that a name like 1e5 is quoted
_Dumper.add_representer(str, _quoted_if_odd)
_Dumper.add_representer(dict, _short_in_line)
_Dumper.add_representer(list, _list_in_line)


def dump_yaml(data: Any) -> str:
    """YAML text: keys in their order, short lists and cycles in a line."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
