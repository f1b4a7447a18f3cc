"""Token statistics: their columns, and the kernel that computes them from distributions."""
