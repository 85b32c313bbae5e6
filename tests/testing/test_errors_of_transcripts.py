"""What a transcript says of code that fails: the case, the line, and advice that fits a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rewindow import StreamsBuilder, TimeWindows, Topology, until_window_closes
from rewindow.app.transcripts import play_all
from rewindow.errors import TopologyError
from rewindow.testing.transcript import TranscriptError, check, load
from tests.refusals import Refusal, containing, refused

CASE = """\
name: a case
topology: {topology}
transcript:
  - input: [orders, ann, {{amount: 1}}, 1h]
"""
HERE = "tests.testing.test_errors_of_transcripts"


def topology_with_windows() -> Topology:
    builder = StreamsBuilder()
    counts = builder.stream("orders").group_by_key().windowed_by(TimeWindows.of("1h", grace="0s")).count(store="counts")
    counts.suppress(until_window_closes()).to_stream().to("counts")
    return builder.build()


def topology_that_fails() -> Topology:
    builder = StreamsBuilder()
    builder.stream("orders").map_values(lambda value: value.amont).to("amounts")
    return builder.build()


def topology_that_works() -> Topology:
    builder = StreamsBuilder()
    builder.stream("orders").map_values(lambda value: value.amount).to("amounts")
    return builder.build()


def topology_that_fails_late() -> Topology:
    def refuse(amount: int) -> int:
        raise ValueError("too much")

    builder = StreamsBuilder()
    amounts = builder.stream("orders").map_values(lambda value: value.amount)
    amounts.to("amounts")
    amounts.map_values(refuse).to("refused")
    return builder.build()


def topology_with_a_wrong_verb() -> Topology:
    return StreamsBuilder().stream("orders").groupByKey()  # type: ignore[attr-defined]


def topology_that_is_refused() -> Topology:
    builder = StreamsBuilder()
    builder.stream("orders").to("amounts")
    builder.stream("others").to("amounts")
    return builder.build()


def played(folder: Path, topology: str) -> None:
    file = folder / "case.yaml"
    file.write_text(CASE.format(topology=topology))
    (case,) = load(file)
    check(case)


def test_a_failing_record_gets_no_advice_about_runs(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="Fix the code, or the record that the test gives it") as failed:
        played(tmp_path, f"{HERE}:topology_that_fails")
    said = str(failed.value)
    assert f"{__file__}:" in said
    for advice in ("committed", "run again", "on_error", "the job's file"):
        assert advice not in said


@pytest.mark.parametrize(
    ("topology", "refusal"),
    [
        ("jobs.nowhere:build", refused("transcript-module-missing", module="jobs.nowhere")),
        (f"{HERE}:nothing", refused("topology-function-missing", module=HERE, function="nothing")),
        (f"{HERE}:topology_with_a_wrong_verb", refused("topology-build-failed", error=containing("AttributeError"))),
    ],
)
def test_a_topology_that_cannot_be_built_is_no_bug_of_rewindow(tmp_path: Path, topology: str, refusal: Refusal) -> None:
    with refusal as caught:
        played(tmp_path, topology)
    assert str(caught.value).startswith("a case: ")
    assert refusal.code != "topology-build-failed" or re.search(r"transcripts\.py:\d+\)", str(caught.value))


def test_a_refused_topology_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"a case: topic 'amounts' is written twice.*transcripts\.py:\d+\)"):
        played(tmp_path, f"{HERE}:topology_that_is_refused")


def test_a_module_with_a_syntax_error_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_written.py").write_text("def build(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with refused("topology-syntax-wrong", case="a case", file=containing("half_written.py"), line=1):
        played(tmp_path, "half_written:build")


def test_a_metric_that_does_not_exist_is_no_check(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    steps = "  - expect: [[amounts, ann, 1, 1h]]\n  - metrics: {late-recrd-drop: 0}\n"
    file.write_text(CASE.format(topology=f"{HERE}:topology_that_works") + steps)
    (case,) = load(file)
    with pytest.raises(TranscriptError, match="no metric late-recrd-drop: did you mean late-record-drop"):
        check(case)


def test_what_a_failing_step_sent_before_its_error_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    case = CASE.format(topology=f"{HERE}:topology_that_fails_late").rstrip()
    for expected in ("", "  - expect: [[amounts, ann, 1, 1h]]\n"):
        file.write_text(f"{case}\n    error: too much\n{expected}")
        (read,) = load(file)
        check(read)
        check(read, cut=True)


@pytest.mark.parametrize("semantics", ["", "semantics: {stream_time_from: watermark}\n"])
def test_a_watermark_that_moves_no_time_says_what_lets_it(tmp_path: Path, semantics: str) -> None:
    steps = "  - watermark: 5h\n  - expect: [[{key: ann, start: 1h, end: 2h}, 1, 1h]]\n"
    path = tmp_path / "case.yaml"
    path.write_text(semantics + CASE.format(topology=f"{HERE}:topology_with_windows") + steps)
    (case,) = load(path)
    if semantics:
        check(case)
        return
    with pytest.raises(TranscriptError, match=r"A watermark moves no time in this case.*stream_time_from: watermark"):
        check(case)


def test_a_step_that_fails_with_other_words_says_both(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(f"{CASE.format(topology=f'{HERE}:topology_that_fails').rstrip()}\n    error: too much\n")
    (case,) = load(file)
    with pytest.raises(TranscriptError, match=r"expected to fail with 'too much', but failed with: .*amont"):
        check(case)


def test_an_invalid_case_hides_no_other_of_its_file(tmp_path: Path) -> None:
    passes = CASE.format(topology=f"{HERE}:topology_that_works") + "  - expect: [[amounts, ann, 1, 1h]]\n"
    misspelt = passes.replace("a case", "misspelt").replace("- input:", "- inputs:")
    nameless, not_yaml = passes.replace("name:", "nam:"), "name: [x\n"
    file = tmp_path / "cases.yaml"
    file.write_text("---\n".join([misspelt, passes, nameless, passes.replace("a case", "second"), not_yaml]))
    found = [(one.case, one.cut, one.failure) for one in play_all(tmp_path, [file])]
    assert [one[:2] for one in found] == [
        *[("misspelt", False), ("a case", False), ("a case", True), ("document 3", False)],
        *[("second", False), ("second", True), ("document 5", False)],
    ]
    assert [one[2] is None for one in found] == [False, True, True, False, True, True, False]
    assert "misspelt: {'inputs'" in (found[0][2] or "")
    with refused("transcript-step-unknown", case=containing("misspelt"), step=containing("{'inputs'")):
        load(file)
