"""Every guard and every symptom, for `perfkit explain`, the pages in docs/ and the methodology document.

A layer joins with one import and one word in CATALOGUE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Protocol, TypeVar

from layers.evidence.guard import Guard
from layers.evidence.symptom import SymptomRule
from layers.layer1_gpu_busy.guards import TRACE_GUARDS
from layers.layer1_gpu_busy.guards_card import CARD_GUARDS
from layers.layer1_gpu_busy.guards_comparison import COMPARISON_GUARDS
from layers.layer1_gpu_busy.guards_cross import CROSS_GUARDS
from layers.layer1_gpu_busy.guards_doubts import DOUBT_GUARDS
from layers.layer1_gpu_busy.guards_live import LIVE_GUARDS
from layers.layer1_gpu_busy.guards_nsys import NSYS_GUARDS
from layers.layer1_gpu_busy.guards_profile import PROFILE_GUARDS
from layers.layer1_gpu_busy.guards_recording import RECORDING_GUARDS
from layers.layer1_gpu_busy.guards_run import RUN_GUARDS
from layers.layer1_gpu_busy.guards_sampled import SAMPLED_GUARDS
from layers.layer1_gpu_busy.guards_width import WIDTH_GUARDS
from layers.layer1_gpu_busy.judge_tags import TAG_GUARDS
from layers.layer1_gpu_busy.symptoms.catalogue import CATALOGUE as LAYER1_SYMPTOMS
from layers.layer2_stacks.guards_capture import CAPTURE_GUARDS
from layers.layer2_stacks.guards_compare import COMPARE_GUARDS
from layers.layer2_stacks.guards_recording import LIVE_STACK_GUARDS
from layers.layer2_stacks.guards_thread import THREAD_GUARDS
from layers.layer3_sweep.guards_client import CLIENT_GUARDS
from layers.layer3_sweep.guards_content import CONTENT_GUARDS
from layers.layer3_sweep.guards_curve import CURVE_GUARDS, SWEEP_GUARDS
from layers.layer3_sweep.guards_grid import ARMS_GUARDS, SETUP_GUARDS
from layers.layer3_sweep.guards_import import IMPORT_GUARDS, IMPORT_PASS_GUARDS
from layers.layer3_sweep.guards_pass import BELONG_GUARDS, PASS_GUARDS
from layers.layer3_sweep.guards_requests import REPEAT_GUARDS, REQUEST_GUARDS
from layers.layer4_ab.guards_arms import ARM_GUARDS
from layers.layer4_ab.guards_evidence import EVIDENCE_GUARDS
from layers.layer4_ab.guards_pairs import PAIR_GUARDS
from layers.layer5_regression.guards import OUTPUT_GUARDS
from layers.layer5_regression.guards_collected import COLLECTED_GUARDS
from layers.layer5_regression.key_judge import KEY_GUARDS
from layers.preflight.guards import PREFLIGHT_GUARDS
from layers.preflight.judge_difference import DIFFERENCE_GUARDS
from layers.preflight.watch_guards import WATCH_GUARDS
from layers.stages.guards import FILE_GUARDS
from layers.stages.guards import RUN_GUARDS as STAGE_GUARDS
from layers.stages.guards_live import LIVE_GUARDS as STAGE_LIVE_GUARDS
from layers.stages.guards_scrapes import SCRAPE_GUARDS
from layers.stages.serving_symptoms import SERVING_SYMPTOMS

AnyGuard = Guard[Any]
AnySymptom = SymptomRule[Any]


class Named(Protocol):
    """What can be looked up: a guard or a symptom."""

    @property
    def code(self) -> str: ...

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)

CODE = re.compile(r"PK\d{3}")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

NEAR = 3
"""How many near matches are worth showing."""


def gather(*layers: Iterable[AnyGuard]) -> tuple[AnyGuard, ...]:
    """All guards in the order of the layers; a malformed or repeated code or name is a ValueError."""
    guards = tuple(guard for layer in layers for guard in layer)
    seen: set[str] = set()
    for guard in guards:
        if not CODE.fullmatch(guard.code) or not NAME.fullmatch(guard.name):
            raise ValueError(f"{guard.code} {guard.name}: codes look like PK101, names like few-samples")
        if taken := seen & {guard.code, guard.name}:
            raise ValueError(f"{guard.code} {guard.name}: {taken.pop()} is another guard's")
        seen |= {guard.code, guard.name}
    return guards


def by_code(*lists: Iterable[AnyGuard]) -> tuple[AnyGuard, ...]:
    """Guards of several lists in the order of their codes: those of one file may look at different facts."""
    return tuple(sorted((guard for one in lists for guard in one), key=lambda guard: guard.code))


CATALOGUE = gather(
    PREFLIGHT_GUARDS,
    DIFFERENCE_GUARDS,
    WATCH_GUARDS,
    TRACE_GUARDS,
    DOUBT_GUARDS,
    NSYS_GUARDS,
    RUN_GUARDS,
    SAMPLED_GUARDS,
    CROSS_GUARDS,
    LIVE_GUARDS,
    PROFILE_GUARDS,
    WIDTH_GUARDS,
    CARD_GUARDS,
    COMPARISON_GUARDS,
    RECORDING_GUARDS,
    TAG_GUARDS,
    by_code(CAPTURE_GUARDS, THREAD_GUARDS, COMPARE_GUARDS),
    LIVE_STACK_GUARDS,
    CLIENT_GUARDS,
    by_code(
        *(REQUEST_GUARDS, REPEAT_GUARDS, PASS_GUARDS, BELONG_GUARDS),
        *(CONTENT_GUARDS, CURVE_GUARDS, SWEEP_GUARDS, SETUP_GUARDS, ARMS_GUARDS),
    ),
    by_code(IMPORT_PASS_GUARDS, IMPORT_GUARDS),
    by_code(FILE_GUARDS, STAGE_GUARDS, STAGE_LIVE_GUARDS, SCRAPE_GUARDS),
    PAIR_GUARDS,
    ARM_GUARDS,
    EVIDENCE_GUARDS,
    by_code(OUTPUT_GUARDS, COLLECTED_GUARDS, KEY_GUARDS),
)


SYMPTOMS: tuple[AnySymptom, ...] = (*LAYER1_SYMPTOMS, *SERVING_SYMPTOMS)


def find(code_or_name: str, entries: Iterable[Entry]) -> Entry | None:
    """The entry with this code or name, in any case; None where there is none."""
    wanted = code_or_name.casefold()
    return next((e for e in entries if wanted in (e.code.casefold(), e.name)), None)


def near(text: str, entries: Iterable[Entry]) -> list[Entry]:
    """Entries whose code or name looks like the text, or has it as a part; the likeliest first."""
    wanted = text.casefold()
    by_word = {word: entry for entry in entries for word in (entry.code.casefold(), entry.name)}
    parts = [word for word in by_word if wanted and wanted in word]
    words = get_close_matches(wanted, by_word, NEAR) + parts
    return list({by_word[word].code: by_word[word] for word in words}.values())[:NEAR]


def entry(guard: AnyGuard) -> dict[str, str]:
    """What a guard says of itself, JSON-ready."""
    return {
        "code": guard.code,
        "name": guard.name,
        "layer": guard.layer,
        "effect": str(guard.effect),
        "sees": guard.sees,
        "cause": guard.cause,
        "detection": guard.detection,
        "remedy": guard.remedy,
        "source": guard.source,
    }


def symptom_entry(rule: AnySymptom) -> dict[str, str]:
    """What a symptom says of itself, JSON-ready."""
    return {
        "code": rule.code,
        "name": rule.name,
        "title": rule.title,
        "threshold": rule.threshold,
        "threshold_source": rule.threshold_source,
        "usual_cause": rule.usual_cause,
        "look_next": rule.look_next,
        "disproof": rule.disproof,
    }
