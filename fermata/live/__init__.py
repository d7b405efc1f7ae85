"""Waiting without a thread: long polls and server-sent events, woken by PostgreSQL's NOTIFY."""
