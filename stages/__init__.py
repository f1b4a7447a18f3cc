"""The stages of the pipeline, one screen each.

Python imports this package before the module of a stage, so the environment is set before a stage
imports a numeric library.
"""

from pipeline.run.environment import set_environment

set_environment()
