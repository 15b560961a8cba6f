"""`python gpuci_node.pyz ROLE FILE`: the three roles of the node's code in one zip application.

Runs on the compute node (Python >= 3.8, standard library only). Imports are per role, so that a
test process loads only what it needs.
"""

import sys
from typing import List


def main(argv: List[str]) -> int:
    """Run the role named by the first argument: keeper, slurm, starter, worker or health."""
    role, path = argv[0], argv[1] if len(argv) > 1 else ""
    if role == "worker":
        from gpuci_node.worker import main as worker

        return worker.main(path)
    if role == "starter":
        from gpuci_node.supervisor import starter

        return starter.main(path)
    if role == "keeper":
        from gpuci_node.supervisor import keeper

        return keeper.main(path)
    if role == "slurm":
        from gpuci_node.supervisor import on_slurm

        return on_slurm.main(path)
    if role == "health":
        from gpuci_node import probe

        return probe.main()
    sys.stderr.write("gpuci_node: unknown role %r (keeper, slurm, starter, worker, health)\n" % role)
    return 2
