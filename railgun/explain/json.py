"""An explanation as JSON, for programs."""

import dataclasses
import json

from railgun.explain.explanation import Explanation


def render_json(explanation: Explanation) -> str:
    """The model's fields by name, durations in ms, and the totals that people are shown."""
    body = dataclasses.asdict(explanation)
    for stream, stream_body in zip(explanation.streams, body["streams"]):
        for plan, plan_body in zip(stream.partitioners, stream_body["partitioners"]):
            plan_body |= {"metrics": plan.metrics, "cells": plan.cells, "cursors": plan.cursors}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
