"""``python -m damvi`` is ``damvi``."""

from .cli import run

if __name__ == "__main__":  # workers of a local cluster import it too
    run()
