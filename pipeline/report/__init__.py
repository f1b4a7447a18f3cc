"""Tables of the evidence: cells of all tasks in, files for people and programs out."""
