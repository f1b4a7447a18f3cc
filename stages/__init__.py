"""The steps of the pipeline, one screen each."""
