"""The built-in trees: features are binned once for all voters, and kernels do the rest."""
