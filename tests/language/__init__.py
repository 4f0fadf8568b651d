"""Tests of the metric language."""
