"""The forms of an explanation: a tree, a Graphviz graph, JSON, and a drawing in which nothing overlaps."""

import json
import re
from itertools import combinations
from xml.etree import ElementTree as ET

from hypothesis import given, settings

from railgun.explain.dot import render_dot
from railgun.explain.explanation import render_json
from railgun.explain.svg import render_svg
from railgun.explain.tree import render_tree
from tests.counts import examples
from tests.explain.explained import CONSTRUCTS, DEFINITIONS, explained
from tests.strategies.case import Case
from tests.strategies.drawn import cases

TREE = """\
stream payments
├─ by card (4 tasks): 9 metrics, 3 windows, 2 cursors, 12 cells instead of 17
│  ├─ SLIDING 7 DAYS   (T − 7d, T]
│  │  └─ WHERE amount > 0
│  │     └─ GROUP BY card
│  │        ├─ n_7d = count(*)               long
│  │        ├─ sum_7d = sum(amount)          double
│  │        ├─ avg_7d = avg(amount)          double
│  │        ├─ dev_7d = stddev_samp(amount)  double
│  │        ├─ shared: count of amount, 1 word, by sum_7d, avg_7d, dev_7d
│  │        └─ shared: sum of amount, 5 words, by sum_7d, avg_7d, dev_7d
"""
TREE_OF_CONSTRUCTS = """\
├─ by card (4 tasks): 5 metrics, 1 window, 1 cursor, 5 cells instead of 8
│  ├─ SLIDING 1 HOUR   (T − 1h, T]
│  │  ├─ WHERE amount > 0
│  │  │  └─ GROUP BY card
│  │  │     ├─ sum_1h = sum(amount)                      double
│  │  │     ├─ avg_before = avg(amount) EXCLUDE CURRENT  double
│  │  │     ├─ shared: count of amount, 1 word, by all of them
│  │  │     └─ shared: sum of amount, 5 words, by all of them
│  │  └─ WHERE amount > 0 AND online
│  │     └─ GROUP BY card
│  │        ├─ online_1h = count(*)                      long
│  │        ├─ online_before = count(*) EXCLUDE CURRENT  long
│  │        ├─ most_online = max(amount)                 double
│  │        └─ shared: count, 1 word, by online_1h, online_before
"""
SVG = "{http://www.w3.org/2000/svg}"


def test_the_tree_shows_the_shared_prefixes() -> None:
    text = render_tree(explained())
    spaces = re.compile(" {2,}(?=long|double)")
    assert spaces.sub(" ", text).startswith(spaces.sub(" ", TREE))
    assert "├─ by merchant (4 tasks): no metric lives here\n" in text
    assert "T − 7d    tail of SLIDING 7 DAYS; head of SLIDING 7 DAYS DELAYED BY 7 DAYS\n" in text
    assert "└─ all events together (1 task): 1 metric, 1 window, 0 cursors, 2 cells\n" in text


def test_exclusion_and_filter_in_the_tree() -> None:
    """EXCLUDE CURRENT is said of each metric, not of the window; a FILTER is part of WHERE."""
    spaces = re.compile(" {2,}(?=long|double)")
    assert spaces.sub(" ", TREE_OF_CONSTRUCTS) in spaces.sub(" ", render_tree(explained(CONSTRUCTS)))


def test_exclusion_and_filter_in_json() -> None:
    [stream] = json.loads(render_json(explained(CONSTRUCTS)))["streams"]
    [window] = stream["partitioners"][0]["windows"]
    found = [
        (each["predicate"], [metric["aggregate"] for metric in group["metrics"]])
        for each in window["filters"]
        for group in each["groups"]
    ]
    assert found == [
        ("amount > 0", ["sum(amount)", "avg(amount) EXCLUDE CURRENT"]),
        ("amount > 0 AND online", ["count(*)", "count(*) EXCLUDE CURRENT", "max(amount)"]),
    ]


def test_exclusion_and_filter_in_dot() -> None:
    text = render_dot(explained(CONSTRUCTS))
    assert re.findall(r'label="(WHERE .*)"', text) == ["WHERE amount > 0", "WHERE amount > 0 AND online"]
    assert re.findall(r'label="(\w+)\\n.* EXCLUDE CURRENT (\w+)"', text) == [
        ("avg_before", "double"),
        ("online_before", "long"),
    ]


def test_exclusion_and_filter_in_the_drawing() -> None:
    lines = [each.text or "" for each in ET.fromstring(render_svg(explained(CONSTRUCTS))).iter(f"{SVG}text")]
    assert [line for line in lines if "EXCLUDE" in line] == [
        "avg(amount) EXCLUDE CURRENT double",
        "count(*) EXCLUDE CURRENT long",
    ]
    assert lines.count("amount > 0 AND online") == 1


def test_many_users_are_counted_instead_of_named() -> None:
    query = ", ".join(f"sum(amount) AS s{n}" for n in range(5))
    sql = f"SELECT {query}, count(*) AS n FROM payments GROUP BY card OVER SLIDING 1 HOUR"
    text = render_tree(explained(DEFINITIONS + f"[[metrics]]\nsql = '{sql}'\n"))
    assert "shared: sum of amount, 5 words, by 5 metrics\n" in text


def test_json_is_the_model_with_totals() -> None:
    [stream] = json.loads(render_json(explained()))["streams"]
    card = stream["partitioners"][0]
    assert (card["partitioner"], card["metrics"], card["cells"], card["cursors"]) == ("card", 9, 12, 2)
    group = card["windows"][0]["filters"][0]["groups"][0]
    assert group["metrics"][1] == {"name": "sum_7d", "aggregate": "sum(amount)", "type": "double"}
    assert card["edges"][1]["tail_of"] == ["SLIDING 7 DAYS"]


def test_dot_links_only_what_it_declares() -> None:
    text = render_dot(explained())
    declared = set(re.findall(r"^\s+(n\w+) \[label=", text, re.MULTILINE))
    linked = {name for pair in re.findall(r"(n\w+) -> (n\w+)", text) for name in pair}
    assert linked
    assert linked == declared
    assert text.count("{") == text.count("}")


def test_dot_draws_a_derived_metric_behind_the_names_in_its_expression() -> None:
    text = render_dot(
        explained(
            DEFINITIONS
            + """[[metrics]]
sql = "DERIVE n_7d > 2 AND mean > 3e0 AS high, sum_7d / n_7d AS mean FROM payments"
"""
        )
    )
    label_of = dict(re.findall(r'(n\w+) \[label="(\w+)(?: =|\\n)', text))
    drawn = [
        (label_of.get(a), label_of.get(b)) for a, b in re.findall(r"(n\w+) -> (n\w+)$", text, re.MULTILINE)
    ]
    edges = {(a, b) for a, b in drawn if b in ("mean", "high")}
    assert edges == {("sum_7d", "mean"), ("n_7d", "mean"), ("n_7d", "high"), ("mean", "high")}


def test_text_of_queries_is_quoted() -> None:
    sql = """SELECT count(*) AS n FROM payments WHERE card = 'a"<&\\b' GROUP BY card OVER INFINITE"""
    explanation = explained(DEFINITIONS + f'[[metrics]]\nsql = """{sql.replace(chr(92), chr(92) * 2)}"""\n')
    assert r"""WHERE card = 'a\"<&\\b'""" in render_dot(explanation)
    lines = [element.text for element in ET.fromstring(render_svg(explanation)).iter(f"{SVG}text")]
    assert """card = 'a"<&\\b'""" in lines


@settings(max_examples=examples(20, 40))
@given(cases(max_steps=1))
def test_nothing_in_the_drawing_overlaps_or_leaves_it(case: Case) -> None:
    root = ET.fromstring(render_svg(explained(case.definitions)))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    boxes = [
        tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        for box in root.iter(f"{SVG}rect")
        if "x" in box.attrib
    ]
    for x, y, w, h in boxes:
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
    for a, b in combinations(boxes, 2):
        apart = a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
        assert apart, (a, b)
    for line in root.iter(f"{SVG}text"):
        assert 0 <= float(line.attrib["x"]) <= width
        assert 0 <= float(line.attrib["y"]) <= height
