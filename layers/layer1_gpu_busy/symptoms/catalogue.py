"""The symptom catalogue: what slow inference looks like in a trace, checked entry by entry.

Each entry is a rule with one threshold and its source; each family has a file. Present means
that the phenomenon is there, not that its usual cause is: every entry names what would disprove it.
"""

from __future__ import annotations

from layers.evidence.symptom import Symptom, SymptomRule, as_symptom
from layers.layer1_gpu_busy.symptoms.communication import S5, S6
from layers.layer1_gpu_busy.symptoms.device import S4, S8, S12
from layers.layer1_gpu_busy.symptoms.facts import SymptomFacts
from layers.layer1_gpu_busy.symptoms.launch import S1, S1B, S9, S10
from layers.layer1_gpu_busy.symptoms.service import S7, S11
from layers.layer1_gpu_busy.symptoms.wait import S2, S3, S3B

CATALOGUE: tuple[SymptomRule[SymptomFacts], ...] = (
    *(S1, S1B, S2, S3, S3B, S4, S5, S6),
    *(S7, S8, S9, S10, S11, S12),
)


def check_symptoms(facts: SymptomFacts) -> tuple[Symptom, ...]:
    """Every entry of the catalogue against one device of one trace, in catalogue order."""
    return tuple(as_symptom(rule, facts) for rule in CATALOGUE)
