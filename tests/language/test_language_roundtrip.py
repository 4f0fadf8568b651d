"""Printing loses nothing: what is printed reads as an equal tree, and prints the same again."""

from hypothesis import given, settings

from railgun.language import ast
from railgun.language.parser import parse_query, parse_statement
from railgun.language.printer import print_expression, print_name, print_query
from tests.counts import examples
from tests.language.syntax_trees import derivations, queries


@settings(max_examples=examples(50, 200))
@given(queries())
def test_what_is_printed_reads_as_an_equal_tree(query: ast.Query) -> None:
    text = print_query(query)
    read = parse_query(text)
    assert read == query
    assert hash(read) == hash(query)
    assert print_query(read) == text


@settings(max_examples=examples(50, 200))
@given(derivations())
def test_a_derivation_that_is_printed_reads_as_an_equal_tree(derivation: ast.Derivation) -> None:
    """Of its items the expressions are printed, each with its name, as in the text that a metric keeps."""
    items = ", ".join(
        f"{print_expression(each.expression)} AS {print_name(each.name)}" for each in derivation.items
    )
    text = f"DERIVE {items} FROM {print_name(derivation.stream.name)}"
    read = parse_statement(text)
    assert isinstance(read, ast.Derivation)
    assert read == derivation
    assert hash(read) == hash(derivation)
    assert [print_expression(each.expression) for each in read.items] == [
        print_expression(each.expression) for each in derivation.items
    ]
