"""What a run would cost before it starts: work, time, disk and memory of every stage."""
