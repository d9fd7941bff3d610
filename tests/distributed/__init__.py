"""Tests of several processes that run one program, all on this machine."""
