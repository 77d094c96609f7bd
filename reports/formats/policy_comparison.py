"""A page that compares runs of kind elasticity: what each policy did in each of them, one below the other."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from bench.elasticity.live_comparison import (
    FIGURES,
    NO_INTERVAL,
    PolicyResult,
    describe_difference,
    figure_texts,
    list_changed_settings,
    match_policies,
    why_not_compared,
    why_rates_differ,
)
from bench.errors import UsageError
from bench.plugins.plugin import ReportPlugin
from reports.data.policy_runs import ABOUT_COLUMNS, ElasticSystem, describe_load, read_elastic_systems
from reports.figures.svg_embed import SvgEmbedder
from reports.formats.comparison import write_comparison
from reports.formats.html_page import load_templates
from reports.formats.policy_plot import draw_system


class ComparedPolicy(Struct, frozen=True):
    """One policy: a row of texts for each run, and a sentence for each run but the first."""

    policy: str
    rows: tuple[tuple[str, ...], ...]
    differences: tuple[str, ...]


class ComparedSystem(Struct, frozen=True):
    """The part of the page about one system; a figure for each run that processed anything."""

    system: str
    policies: tuple[ComparedPolicy, ...]
    figures: tuple[tuple[str, Markup], ...]


def write(runs: Sequence[Path], out: Path) -> Path:
    """Write a page that compares runs with the first one; return its path.

    Raises:
        UsageError: a run is of another kind or had another load, or the page cannot be written.
    """
    every = [read_elastic_systems(run) for run in runs]
    first, names = every[0][0], [run.resolve().name for run in runs]
    results = [[each for elastic in systems for each in elastic.policies] for _, systems in every]
    for run, (scenario, _), own in zip(runs, every, results, strict=True):
        if reason := why_not_compared(first, scenario) or why_rates_differ(results[0], own):
            raise UsageError(f"{run}: {reason}")
    embedders = [SvgEmbedder({}, name=f"r{number}-") for number in range(len(runs))]
    systems = [systems for _, systems in every]
    text = (
        load_templates()
        .get_template("policy_comparison.html")
        .render(
            names=names,
            load=describe_load(first),
            parts=make_parts(names, systems, embedders),
            changed=[(name, list_changed_settings(first, one)) for name, (one, _) in zip(names, every, strict=True)],
            columns=FIGURES,
            about_columns=ABOUT_COLUMNS,
            no_interval=NO_INTERVAL,
            styles=Markup("\n".join(embedder.css() for embedder in embedders)),  # noqa: S704  matplotlib's styles
        )
    )
    return write_comparison(names, text, out)


def make_parts(
    names: Sequence[str], runs: Sequence[Sequence[ElasticSystem]], embedders: Sequence[SvgEmbedder]
) -> list[ComparedSystem]:
    """Return the part of each system that any run has."""
    results = [[each for elastic in systems for each in elastic.policies] for systems in runs]
    by_policy = match_policies(results)
    parts = []
    for system in dict.fromkeys(system for system, _ in by_policy):
        rows = [_make_rows(policy, own) for (of, policy), own in by_policy.items() if of == system]
        figures = [
            (name, figure)
            for name, systems, embedder in zip(names, runs, embedders, strict=True)
            for elastic in systems
            if elastic.system == system and (figure := _make_figure(elastic, name, embedder)) is not None
        ]
        parts.append(ComparedSystem(system, tuple(rows), tuple(figures)))
    return parts


def _make_rows(policy: str, results: Sequence[PolicyResult | None]) -> ComparedPolicy:
    return ComparedPolicy(
        policy,
        tuple(("",) * len(FIGURES) if one is None else figure_texts(one) for one in results),
        tuple(describe_difference(results[0], one) for one in results[1:]),
    )


def _make_figure(elastic: ElasticSystem, name: str, embedder: SvgEmbedder) -> Markup | None:
    picture = draw_system(elastic, f"{elastic.system} in {name}")
    return None if picture is None else Markup(embedder.embed(picture))  # noqa: S704  escaped by matplotlib


plugin = ReportPlugin(compare=write, kind="elasticity")
