from __future__ import annotations

import os

from raybo.benchmarks.terminal import THREAD_VARIABLES, single_thread


def test_single_thread_restarts_the_program_only_when_needed(monkeypatch):
    calls = []
    monkeypatch.setattr(os, "execve", lambda *arguments: calls.append(arguments))
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    single_thread()
    [(_, _, environment)] = calls
    for variable in THREAD_VARIABLES:
        assert environment[variable] == "1"
        monkeypatch.setenv(variable, "1")
    single_thread()
    assert len(calls) == 1
