"""The comparison with other process supervisors on one machine in one run; its own parts are tested like all else."""
