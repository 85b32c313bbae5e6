"""Every transcript, as one run and cut between every two steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.testing.transcript import Transcript, TranscriptError, check, load, play
from tests.refusals import Refusal, refused
from tests.transcripts.topologies import merged

pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")

CASES = [case for path in sorted(Path(__file__).parent.glob("*.yaml")) for case in load(path)]


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_transcript(case: Transcript, mode: str) -> None:
    check(case, cut=mode == "cut")


def test_a_topology_of_ones_own_may_be_given() -> None:
    steps = ({"input": ["t2", "k", "v", 1]}, {"expect": [["k", "v", 1]]})
    play(Transcript("given", steps), merged)
    with pytest.raises(TranscriptError, match=r"step 1 .* sent different records"):
        play(Transcript("wrong", (*steps[:1], {"expect": [["k", "w", 1]]})), merged())


def test_a_case_that_shall_fail_and_passes_fails() -> None:
    with pytest.raises(TranscriptError, match="but passed"):
        check(Transcript("passes", (), fails="anything"), merged)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("name: x\n", refused("transcript-document-incomplete")),
        ("name: x\ntranscript: []\nwindow: 3\n", refused("transcript-key-unknown", keys="window")),
        ("name: x\ntranscript: [{send: 1}]\n", refused("transcript-step-unknown")),
        ("name: x\ntranscript: [{input: [a, b, 1], expect: []}]\n", refused("transcript-step-unknown")),
        ("name: x\ntranscript: [{input: 5}]\n", refused("transcript-step-type-wrong", verb="input", type="list")),
        ("name: x\ntranscript: [{expect: {}}]\n", refused("transcript-step-type-wrong", verb="expect", type="list")),
        (
            "name: x\nsemantics: {stream_tim: min}\ntranscript: []\n",
            refused("transcript-semantics-unknown", known="stream_time, stream_time_from, wall_clock"),
        ),
        ("name: [x", refused("transcript-not-yaml")),
    ],
)
def test_a_file_that_is_no_transcript_says_so(tmp_path: Path, text: str, refusal: Refusal) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(text, encoding="utf-8")
    with refusal:
        load(path)
