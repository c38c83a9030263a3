"""``python -m damvi`` is ``damvi``."""

from .cli import main

main(prog_name="damvi")
