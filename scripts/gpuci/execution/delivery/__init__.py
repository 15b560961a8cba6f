"""The tree under test and the node's code, from here to the cluster's shared folder."""
