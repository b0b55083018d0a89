"""./quickstart: muster's main job on a local control plane."""
