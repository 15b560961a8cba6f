"""Plan -> raw results: what a backend needs to run shards and to bring back what the node wrote."""
