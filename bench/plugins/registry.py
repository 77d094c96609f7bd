"""Rooms by kind and name, through entry points: our own are listed in our pyproject.toml like anybody's."""

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Literal, NoReturn, cast

from msgspec import Struct

from bench.config.load_profile import profile_of
from bench.config.scenario import Scenario
from bench.config.validation import convert_settings, error_at
from bench.config.yaml_document import Document
from bench.errors import UsageError
from bench.plugins.client_lint import ConfigWarning
from bench.plugins.client_lint import in_code as hazards_in
from bench.plugins.protocols import BaselineProducer, Consumer, Discard, Framework, LoadGenerator, Sender, Source
from bench.search.problem import SearchProblem, Strategy

Kind = Literal["producers", "consumers", "frameworks", "load", "search", "reports", "plots", "views"]
KINDS: tuple[Kind, ...] = ("producers", "consumers", "frameworks", "load", "search", "reports", "plots", "views")
Settings = Mapping[str, Mapping[str, Any]]
_SINGULAR = {"producers": "source", "consumers": "consumer", "frameworks": "framework", "load": "load", "search": "search strategy",
             "reports": "report format", "plots": "plot", "views": "view"}  # fmt: skip


def source(name: str, settings: Settings) -> Source:
    """The source of that name, with its settings."""
    module = _module("producers", name)
    return cast("Source", module.Source(_settings(module, name, settings)))


def sender(name: str) -> Sender:
    """A client of the source of that name."""
    return cast("Sender", _module("producers", name).Sender())


def config_warnings(scenario: Scenario) -> list[ConfigWarning]:
    """What a scenario's sources say of their settings, and what their senders' code shows; once each."""
    found: dict[ConfigWarning, None] = {}
    for cell in scenario.cells():
        module = _module("producers", cell.source)
        told = getattr(module, "config_warnings", None)
        if told is not None:
            settings = _settings(module, cell.source, scenario.settings)
            found |= dict.fromkeys(told(settings, cell.largest_bytes, float(scenario.load.entropy)))
        found |= dict.fromkeys(hazard for part in _sender_modules(module) for hazard in hazards_in(*part))
    return list(found)


def _sender_modules(module: ModuleType) -> list[tuple[str, str]]:
    """(text, name) of a source's module and of those beside it that it takes anything from."""
    package = module.__name__.rpartition(".")[0]
    names = {module.__name__} | {str(getattr(value, "__module__", "")) for value in vars(module).values()}
    near = sorted(name for name in names if package and name.startswith(f"{package}.") and name in sys.modules)
    texts = [(sys.modules[name], name) for name in near or [module.__name__]]
    return [(inspect.getsource(one), name) for one, name in texts]


def baselines(name: str) -> Mapping[str, BaselineProducer]:
    """The loops that a load for the source of that name is measured against, by name; empty where its room offers none."""
    found: Mapping[str, BaselineProducer] = getattr(_module("producers", name), "BASELINES", {})
    return found


def discarding(name: str) -> Discard:
    """What reads the source of that name for nothing; only where `discards` says that there is such a thing."""
    return cast("Discard", _module("producers", name).discard)


def calibrates(name: str) -> bool:
    """Whether a load can be measured against the source of that name alone: it keeps what nobody reads, or has a null reader."""
    return bool(getattr(_module("producers", name), "STORES", False)) or discards(name)


def discards(name: str) -> bool:
    """Whether the source of that name needs a reader in order to go on taking messages."""
    return hasattr(_module("producers", name), "discard")


def one_sender(name: str) -> bool:
    """Whether only one sender at a time can serve the source of that name."""
    return bool(getattr(_module("producers", name), "ALONE", False))


def has_keys(name: str) -> bool:
    """Whether messages of the source of that name can have keys."""
    return bool(getattr(_module("producers", name), "KEYS", False))


def only_load(name: str) -> str | None:
    """The one load that can send to the source of that name; None when any can."""
    found: str | None = getattr(_module("producers", name), "LOAD", None)
    return found


def consumer(name: str) -> Consumer:
    """A reader of the source of that name."""
    return cast("Consumer", _module("consumers", name).Consumer())


def without_consumer(name: str) -> str | None:
    """Why no code of ours can read that source; None when it can."""
    return (
        None
        if name in names("consumers")
        else f"there is no consumer for the source {name}; there are: {_listed('consumers')}"
    )


def framework(name: str, settings: Settings) -> Framework:
    """The framework of that name, with its settings."""
    module = _module("frameworks", name)
    return cast("Framework", module.Framework(_settings(module, name, settings)))


def keeps_order(name: str) -> bool:
    """Whether the framework of that name hands messages of one part of a source on in the order in which it read them."""
    return not getattr(_module("frameworks", name), "UNORDERED", False)


def load(name: str) -> LoadGenerator:
    """The load of that name."""
    return cast("LoadGenerator", _module("load", name).LoadGenerator())


def load_worker(name: str) -> Callable[[str, Callable[[str], None]], NoReturn]:
    """What makes this process a worker of the load of that name; called with its master's address and what says how it goes."""
    return cast("Callable[[str, Callable[[str], None]], NoReturn]", _module("load", name).joined)


def strategy(name: str, question: SearchProblem) -> Strategy:
    """A search of that name that has not tried anything yet."""
    return maker(name)(question)


def maker(name: str) -> Callable[[SearchProblem], Strategy]:
    """What makes searches: of the strategy of that name, or of one's own that is given as module:Class."""
    module, colon, attribute = name.partition(":")
    if not colon:
        return cast("Callable[[SearchProblem], Strategy]", _loaded("search", name))
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{module}.".startswith(f"{problem.name}."):
            raise
        raise UsageError(
            f"{name}: found no module {problem.name!r}; it must be installed or lie in this folder"
        ) from None
    if not callable(found):
        raise UsageError(f"{name}: {module} has no class {attribute!r}")
    return cast("Callable[[SearchProblem], Strategy]", found)


def plot(name: str) -> ModuleType:
    """The plotter of that name; it offers write(what it plots, file)."""
    return _module("plots", name)


def report(name: str) -> ModuleType:
    """The report writer of that name; it offers write(run folder) -> files."""
    return _module("reports", name)


def view(name: str) -> ModuleType:
    """What shows a run in another way than as files of its own: the live page, several runs side by side."""
    return _module("views", name)


def names(kind: Kind) -> list[str]:
    """The names of the installed rooms of a kind."""
    return sorted(_found(kind))


def settings_type(name: str) -> type[Any] | None:
    """The type of the settings of the framework or source of that name; None when there is none of that name."""
    both: tuple[Kind, ...] = ("frameworks", "producers")
    return next((cast("type[Any]", _module(kind, name).Settings) for kind in both if name in names(kind)), None)


def missing(kind: Kind, name: str) -> UsageError:
    """The error for a name that is not installed: it lists those that are."""
    near = difflib.get_close_matches(name, names(kind), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UsageError(f"unknown {_SINGULAR[kind]} {name!r}; installed: {_listed(kind)}{hint}")


def _module(kind: Kind, name: str) -> ModuleType:
    return cast("ModuleType", _loaded(kind, name))


def _loaded(kind: Kind, name: str) -> Any:
    entry = _found(kind).get(name)
    if entry is None:
        raise missing(kind, name)
    try:
        return entry.load()
    except ModuleNotFoundError as problem:
        ours = entry.module.partition(".")[0]
        if problem.name is None or problem.name.partition(".")[0] in (ours, "bench"):
            raise
        extras = ", ".join(entry.dist.metadata.get_all("Provides-Extra") or []) if entry.dist is not None else ""
        raise UsageError(
            f"the {_SINGULAR[kind]} {name!r} needs the package {problem.name!r}, which is not installed;"
            f" install the extra that brings it: pip install 'stream-bench[all]' (extras: {extras})"
        ) from None


@cache
def _found(kind: Kind) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"bench.{kind}")}


def _listed(kind: Kind) -> str:
    return ", ".join(names(kind)) or "none"


def _settings(module: ModuleType, name: str, settings: Settings) -> Any:
    return convert_settings(module.Settings, settings.get(name, {}), f"settings.{name}")


def check(document: Document, scenario: Scenario) -> None:
    """Raise a UsageError, with the line of the file, when a scenario names a room or a setting that there is not."""
    for index, system in enumerate(scenario.systems):
        framework_name, _, source_name = system.partition("/")
        parts: tuple[tuple[Kind, str], ...] = (("frameworks", framework_name), ("producers", source_name))
        for kind, name in parts:
            known = names(kind)
            if name not in known:
                allowed = f"one of the installed {_SINGULAR[kind]}s: {', '.join(known)}"
                raise error_at(
                    document, f"systems[{index}]", system, allowed=allowed, names=_systems(framework_name, source_name)
                )
    if scenario.search.strategy not in names("search"):
        raise error_at(
            document, "search.strategy", scenario.search.strategy, allowed=_listed("search"), names=names("search")
        )
    profile_of(scenario.load)
    for room, settings in scenario.settings.items():
        type_of_room = settings_type(room)
        if type_of_room is None:
            rooms = sorted({*names("frameworks"), *names("producers")})
            raise error_at(document, f"settings.{room}", room, allowed=", ".join(rooms), names=rooms)
        convert_settings(cast("type[Struct]", type_of_room), settings, f"settings.{room}", document)


def _systems(framework_name: str, source_name: str) -> list[str]:
    """The systems that may be meant: with the framework as written, or with the source as written."""
    with_source = (
        [f"{known}/{source_name}" for known in names("frameworks")] if source_name in names("producers") else []
    )
    with_framework = (
        [f"{framework_name}/{known}" for known in names("producers")] if framework_name in names("frameworks") else []
    )
    return with_source + with_framework
