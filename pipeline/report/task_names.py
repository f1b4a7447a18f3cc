"""How tables call the tasks."""

TASKS = {"nmt_ende": "EN-DE", "nmt_enfr": "EN-FR", "asr": "ASR"}


def task_name(task: str) -> str:
    """The paper's name of a task; a task of the user's own goes by its own name."""
    return TASKS.get(task, task)
