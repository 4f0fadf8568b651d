"""Printing loses nothing: what is printed reads as an equal tree, and prints the same again."""

from hypothesis import given, settings

from railgun.language import ast
from railgun.language.parser import parse_query
from railgun.language.printer import print_query
from tests.counts import examples
from tests.language.syntax_trees import queries


@settings(max_examples=examples(50, 200))
@given(queries())
def test_what_is_printed_reads_as_an_equal_tree(query: ast.Query) -> None:
    text = print_query(query)
    read = parse_query(text)
    assert read == query
    assert hash(read) == hash(query)
    assert print_query(read) == text
