"""Scenario and site files are validated strictly: every mistake is one line."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from scenario_files import read_scenario

from bench.config import validation
from bench.config.validation import convert_settings, error_at, parse_scenario
from bench.config.yaml_document import Document, read_document
from bench.errors import UsageError
from bench.plugins.site_file import read_site_file
from bench.units import Seconds, Size

HERE = Path(__file__).parent
SCENARIOS = sorted((HERE.parents[2] / "scenarios").glob("*.yaml"))
WRONG = sorted((HERE / "wrong").glob("*/*.yaml"))
GOOD = "name: good\nsystems: [spark/kafka]\ngrid:\n  message_size: [100 B]\n"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a plugin that does not exist."""

    batch_interval: Seconds = Seconds(1)
    acks: Literal[0, 1, "all"] = 1
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    buffer: Size | None = None
    names: tuple[str, ...] = ()
    spare: bool = False
    port: int | str = 0


class Picky(Struct, frozen=True):
    """Settings with a rule that their types cannot express."""

    least: int = 0
    most: int = 1

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError("least is above most")


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def reader(path: Path) -> Any:
    return read_site_file if path.parent.name == "sites" else read_scenario


def written(folder: Path, text: str) -> Path:
    path = folder / "good.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def mistake(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(UsageError) as caught:
        call(*args, **kwargs)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("path", WRONG, ids=named)
def test_a_wrong_file_gets_a_line_for_each_mistake(path: Path) -> None:
    """The lines have file, line, path, what was found and what is allowed, as the head of the file expects."""
    heads = path.read_text(encoding="utf-8").splitlines()
    expected = [line.removeprefix("# expect: ") for line in heads if line.startswith("# expect: ")]
    lines = mistake(reader(path), path).splitlines()
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert line.startswith(f"{path}{part}")
        assert "; allowed: " in line


def test_there_are_wrong_files() -> None:
    """There are wrong files of both kinds, so that the test above tests something."""
    assert len(WRONG) >= 30
    assert {path.parent.name for path in WRONG} == {"scenarios", "sites"}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_our_own_scenarios_are_valid(path: Path) -> None:
    """Every file in scenarios/ is valid, and its name is that of the file."""
    assert read_scenario(path).name == path.stem


def test_a_scenario_is_typed(tmp_path: Path) -> None:
    """Quantities are numbers in bytes, seconds and messages/s."""
    scenario = read_scenario(
        written(tmp_path, f"{GOOD}  cpu_cost: [10 ms]\nsearch: {{precision: 10 %, highest: 2 k/s}}\n")
    )
    assert scenario.grid.message_size == (Size(100),)
    assert scenario.grid.cpu_cost == (0.01,)
    assert [float(scenario.search.precision), float(scenario.search.highest)] == [0.1, 2000]


def test_a_site_is_typed(tmp_path: Path) -> None:
    """Endpoints are texts, figures are numbers in base units."""
    text = (
        "kafka: {bootstrap: 'a:9092,[::1]:9093'}\nspark: {master: 'spark://head:7077'}\ncores: 8\nbandwidth: 1 Gbit/s\n"
    )
    site = read_site_file(written(tmp_path, text))
    assert (site.sections["kafka"].bootstrap, site.cores, site.bandwidth) == ("a:9092,[::1]:9093", 8, 125e6)


def test_words_stay_texts(tmp_path: Path) -> None:
    """Booleans, dates and base-60 numbers of YAML 1.1 are texts; a byte order mark is allowed."""
    scenario = read_scenario(
        written(tmp_path, "\ufeff" + GOOD.replace("good", "no") + "settings: {a: {b: 12:30, c: 2020-01-01}}\n")
    )
    assert scenario.name == "no"
    assert scenario.settings == {"a": {"b": "12:30", "c": "2020-01-01"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("null", None),
        ("", None),
        ("'7'", "7"),
        ("010", 10),
    ],
)
def test_plain_values_follow_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    """Whole numbers, numbers, true, false and null have their types; quotes make a text."""
    document = read_document(written(tmp_path, f"a: {text}\n"))
    assert document.values == {"a": value}
    assert type(document.values["a"]) is type(value)


class TestChanges:
    """`--set` changes."""

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ("grid.message_size=1kB,1MB", lambda s: s.grid.message_size == (1000, 10**6)),
            ("grid.message_size=[1 kB, 1 MB]", lambda s: s.grid.message_size == (1000, 10**6)),
            ("grid.cpu_cost=10 ms", lambda s: s.grid.cpu_cost == (0.01,)),
            ("search.precision=10 %", lambda s: s.search.precision == 0.1),
            ("search.start=", lambda s: s.search.start is None),
            ("systems=python/kafka", lambda s: s.systems == ("python/kafka",)),
            ("load.workers = 2", lambda s: s.load.workers == 2),
            ("title=a, b and c", lambda s: s.title == "a, b and c"),
            ("settings.spark.batch_interval=5 s", lambda s: s.settings["spark"] == {"batch_interval": "5 s"}),
            ("settings.kafka.partitions=4", lambda s: s.settings["kafka"] == {"partitions": 4}),
        ],
        ids=lambda value: value if isinstance(value, str) else "holds",
    )
    def test_a_change_replaces_a_value(self, tmp_path: Path, change: str, expected: Any) -> None:
        """The scenario has the value of the option, and a list where there is one."""
        assert expected(read_scenario(written(tmp_path, GOOD), [change]))

    def test_a_later_change_wins(self, tmp_path: Path) -> None:
        """Of two changes of one value the second counts; the rest of the file stays as it was."""
        path = written(tmp_path, f"{GOOD}settings: {{spark: {{cores: 2, batch_interval: 1 s}}}}\n")
        scenario = read_scenario(path, ["settings.spark.cores=3", "settings.spark.cores=4"])
        assert scenario.settings["spark"] == {"cores": 4, "batch_interval": "1 s"}

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                "grid.mesage_size=1kB",
                "found an unknown key; allowed: message_size, cpu_cost; did you mean 'message_size'?",
            ),
            ("gird.cpu_cost=1 s", "gird: found an unknown key; allowed: name, systems, grid"),
            ("grid.message_size=1kB,1 kb", "grid.message_size[1]: found '1 kb'; allowed: a size such as"),
            ("search.precision=60 %", "found '60 %'; allowed: a share such as"),
            ("systems=spark", "systems[0]: found 'spark'; allowed: framework/source, such as \"spark/kafka\""),
            ("grid=5", "found 5; allowed: a mapping with the keys message_size, cpu_cost"),
            ("grid.message_size.x=5", "grid.message_size[0].x: found an unknown key; allowed: lognormal, choice"),
            ("search.highest=0.1 /s", "found '0.1 /s'; allowed: a rate above search.lowest (0.1 /s)"),
            ("precision", "found no PATH=VALUE; allowed: PATH=VALUE, such as search.precision=10%"),
            ("=5", "found no PATH=VALUE"),
            ("grid..x=5", "found no PATH=VALUE"),
            ("my name=5", "found no PATH=VALUE"),
            ("settings" + ".a" * 30 + "=5", "found no PATH=VALUE"),
            ("name=[a", "found broken YAML (expected ',' or ']', but got '<stream end>'); allowed: plain YAML"),
        ],
        ids=str,
    )
    def test_a_wrong_change_names_its_option(self, tmp_path: Path, change: str, message: str) -> None:
        """The line begins with the option, in place of file and line."""
        line = mistake(read_scenario, written(tmp_path, GOOD), [change])
        assert line.startswith(f"--set {change}: {message}")
        assert "\n" not in line

    def test_a_mistake_beside_a_change_names_the_file(self, tmp_path: Path) -> None:
        """A mistake of the file has file and line, although an option was given."""
        path = written(tmp_path, f"{GOOD}load:\n  workers: 0\n")
        assert mistake(read_scenario, path, ["load.seed=7"]).startswith(f"{path}:6: load.workers: found 0")

    def test_a_document_is_not_changed_by_its_changes(self, tmp_path: Path) -> None:
        """Changes return a new document."""
        document = read_document(written(tmp_path, GOOD))
        validation.apply_changes(document, ["grid.cpu_cost=1 s"])
        assert "cpu_cost" not in document.values["grid"]  # type: ignore[operator]


class TestUnreadable:
    """Files that cannot be read at all."""

    def test_a_missing_file_is_reported_with_its_nearest_sibling(self, tmp_path: Path) -> None:
        """The line names the file and suggests the one with the most similar name."""
        written(tmp_path, GOOD)
        line = mistake(read_scenario, tmp_path / "god.yaml")
        assert line == f"{tmp_path}/god.yaml: found no such file; allowed: a YAML file; did you mean 'good.yaml'?"

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        """The line names the folder and the system's reason."""
        assert (
            mistake(read_site_file, tmp_path)
            == f"{tmp_path}: cannot be read (Is a directory); give a YAML file that this user may read"
        )

    def test_bytes_that_are_not_utf_8_are_reported_with_their_line(self, tmp_path: Path) -> None:
        """The line names file and line."""
        path = tmp_path / "latin.yaml"
        path.write_bytes(b"name: a\ntitle: caf\xe9\n")
        assert (
            mistake(read_scenario, path) == f"{path}:2: found bytes that are not UTF-8; allowed: a YAML file in UTF-8"
        )

    def test_a_control_character_is_reported_with_its_line(self, tmp_path: Path) -> None:
        """The line names file and line, and shows the character escaped."""
        path = written(tmp_path, "name: a\ntitle: \x1b[31m\n")
        assert mistake(read_scenario, path).startswith(f"{path}:2: found the character '\\x1b'; allowed: plain YAML")

    def test_a_large_file_is_refused(self, tmp_path: Path) -> None:
        """A file of more than a megabyte is an error."""
        path = written(tmp_path, GOOD + "#" * 10**6)
        assert mistake(read_scenario, path) == f"{path}: found more than 1 MB; allowed: a YAML file of at most 1 MB"

    def test_a_too_long_axis_is_refused(self, tmp_path: Path) -> None:
        """An axis of the grid has at most 1000 values."""
        path = written(tmp_path, GOOD.replace("100 B", ", ".join(f"{size} B" for size in range(100, 1101))))
        assert mistake(read_scenario, path).endswith(
            ": grid.message_size: found a list of 1001; allowed: a list of at most 1000"
        )

    def test_many_mistakes_are_cut_short(self, tmp_path: Path) -> None:
        """A file of another kind gives at most MAX_MISTAKES lines."""
        path = written(tmp_path, "".join(f"key{number}: 1\n" for number in range(100)))
        assert len(mistake(read_scenario, path).splitlines()) == validation.MAX_MISTAKES

    @given(st.text(max_size=40))
    def test_any_text_is_a_document_or_a_mistake_of_one_line(self, text: str) -> None:
        """Any text of a user is either valid or a UsageError."""
        try:
            parse_scenario(validation.apply_changes(Document("f", {}), [f"settings.a={text}"]))
        except UsageError as error:
            assert all("; allowed: " in line for line in str(error).split("\n"))  # noqa: PT017  either outcome is right


class TestSettings:
    """Settings of plugins."""

    def test_settings_are_typed(self) -> None:
        """The settings of a plugin are converted to its type."""
        read = convert_settings(Settings, {"batch_interval": "5 s", "acks": "all", "names": ["a"]}, "settings.spark")
        assert read == Settings(batch_interval=Seconds(5), acks="all", names=("a",))

    @pytest.mark.parametrize(
        ("raw", "message"),
        [
            ({"batch_intervall": "5 s"}, "batch_intervall: found an unknown key; allowed: batch_interval, acks, "),
            ({"batch_interval": 5}, "batch_interval: found 5; allowed: a duration such as"),
            ({"acks": "al"}, "acks: found 'al'; allowed: 0, 1, all; did you mean 'all'?"),
            ({"share": 2}, "share: found 2; allowed: a number, more than 0, at most 1"),
            ({"buffer": "1 kb"}, "buffer: found '1 kb'; allowed: a size such as"),
            ({"names": "a"}, "names: found 'a'; allowed: a list, each a text"),
            ({"names": [1]}, "names[0]: found 1; allowed: a text"),
            ({"port": 0.5}, "port: found 0.5; allowed: a whole number or a text"),
            ({"spare": "yes"}, "spare: found 'yes'; allowed: true or false"),
        ],
        ids=str,
    )
    def test_a_wrong_setting_is_one_line(self, raw: dict[str, Any], message: str) -> None:
        """Mistakes in settings have the same form as the scenario's own."""
        line = mistake(convert_settings, Settings, raw, "settings.spark")
        assert line.startswith(f"settings.spark.{message}")
        assert "\n" not in line

    def test_a_wrong_setting_of_a_document_names_file_and_line(self, tmp_path: Path) -> None:
        """With the document, the error has the line of the setting."""
        path = written(tmp_path, f"{GOOD}settings:\n  spark:\n    acks: 3\n")
        document = read_document(path)
        line = mistake(
            convert_settings, Settings, parse_scenario(document).settings["spark"], "settings.spark", document
        )
        assert line == f"{path}:7: settings.spark.acks: found 3; allowed: 0, 1, all"

    def test_a_rule_of_the_type_itself_is_one_line(self) -> None:
        """A rule of __post_init__ is a mistake of the settings as a whole."""
        assert mistake(convert_settings, Picky, {"least": 2}, "settings.a").startswith(
            "settings.a: found that least is above most"
        )


def test_a_later_check_names_file_and_line(tmp_path: Path) -> None:
    """A later check reports an unknown plugin in the same form as this module."""
    path = written(tmp_path, GOOD)
    error = error_at(read_document(path), "systems[0]", "sprak", allowed="plain, spark", names=("python", "spark"))
    assert str(error) == f"{path}:2: systems[0]: found 'sprak'; allowed: plain, spark; did you mean 'spark'?"


def test_a_missing_value_has_the_line_of_its_mapping(tmp_path: Path) -> None:
    """The origin of a missing path is that of its nearest existing parent."""
    document = read_document(written(tmp_path, GOOD))
    assert document.origin("grid.message_size[7]") == f"{document.file}:4"
    assert document.origin("grid.cpu_cost") == f"{document.file}:3"
    assert document.origin("settings.spark.cores") == f"{document.file}:1"
