"""The paper's experiments: its ten methods on its datasets, its tables, figure and claims.

``python -m benchmarks.paper`` runs them; see ``docs/benchmark.md``.
"""
