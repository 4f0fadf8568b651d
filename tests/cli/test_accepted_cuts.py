"""What `railgun cluster accept-cut` says for each outcome."""

import pytest

from frontend.kafka.accepted_losses import Outcome
from railgun.cli.cluster import _accepted

TEXTS = {
    Outcome.CUT: "s/card/0 goes on from offset 1,200 of its log, without 7 records that had been answered",
    Outcome.BEGUN_ANEW: "s/card/0 begins anew at offset 1,200 of the topic that has the name of its log now, with the "
    "present definitions; the 7 records of the one before are lost",
    Outcome.ACCEPTED_BEFORE: "s/card/0 has nothing more to accept: an earlier order stands",
}


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_has_words_of_its_own(outcome: Outcome) -> None:
    task = {"stream": "s", "partitioner": "card", "partition": 0}
    assert TEXTS[outcome] in _accepted({**task, "outcome": str(outcome), "offset": 1_200, "records": 7})
