"""The built-in trees: features binned once for all voters, grown and asked by kernels."""
