"""Errors for people. Their text is `KEY or FILE: what is wrong (value). What to do.`"""


class PipelineError(Exception):
    """Base class of every error that the pipeline raises on purpose; its text is one line."""


class ConfigError(PipelineError):
    """A setting is unknown, missing, of the wrong type or out of range."""


class DataError(PipelineError):
    """An input file is missing, damaged, or does not fit the settings or the other inputs."""


class StoreError(PipelineError):
    """A decode store breaks a rule of its schema."""


class MachineError(PipelineError):
    """The machine lacks a program, a package or a network that a step needs."""
