"""Runs over HTTP: parse, call one service or query, answer."""
