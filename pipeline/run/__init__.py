"""The harness of a stage: settings, application, artifacts, locks, logs, progress."""
