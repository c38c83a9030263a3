"""``python -m damvi`` is ``damvi``."""

from .cli import main

if __name__ == "__main__":  # workers of a local cluster import it too
    main(prog_name="damvi")
