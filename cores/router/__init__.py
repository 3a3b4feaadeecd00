"""The elastic router: flits, credits, virtual channels; rings and meshes of routers."""
