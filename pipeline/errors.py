"""The errors that a person is meant to read: each names the key or file, the rule and the value."""


class PipelineError(Exception):
    """Root of every error that the pipeline raises on purpose; its text is one sentence."""


class ConfigError(PipelineError):
    """A setting is unknown, missing, of the wrong type, or out of its range."""


class DataError(PipelineError):
    """An input file does not hold what it should."""


class StoreError(PipelineError):
    """A decode store breaks a rule of its schema."""


class MachineError(PipelineError):
    """The machine lacks a program, a package or a network that a step needs."""
