"""The directive ``damvi-commands``: each command with its options, asked of click."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

EVERYWHERE = ("--json", "--quiet", "--debug")
"""Options of all commands, told once on the page."""


class DamviCommands(SphinxDirective):
    """A section for each command, and for each command below it."""

    def run(self) -> list[nodes.Node]:
        from damvi.cli import main

        return list(_sections(main, "damvi"))


def _sections(group: click.Group, path: str) -> Iterator[nodes.Node]:
    for name, command in sorted(group.commands.items()):
        whole = f"{path} {name}"
        yield _section(command, whole)
        if isinstance(command, click.Group):
            yield from _sections(command, whole)


def _section(command: click.Command, path: str) -> nodes.section:
    context = click.Context(command, info_name=path)
    section = nodes.section(ids=[nodes.make_id(path)], names=[path])
    section += nodes.title(path, path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    section += _literal(usage)
    for text in (command.help or "").split("\n\n"):
        example = "\b" in text  # by which click keeps the lines of a paragraph as they are
        words = text.replace("\b", "").strip()
        section += (
            _literal(words) if example else nodes.paragraph("", " ".join(words.split()))
        )
    records = [option.get_help_record(context) for option in _own(command)]
    told = [record for record in records if record is not None]
    if told:
        section += _table(told)
    return section


def _literal(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text")


def _own(command: click.Command) -> list[click.Parameter]:
    options = [p for p in command.params if isinstance(p, click.Option)]
    return [option for option in options if option.opts[0] not in EVERYWHERE]


def _table(records: list[tuple[str, str]]) -> nodes.table:
    table = nodes.table()
    group = nodes.tgroup(cols=2)
    table += group
    group += [nodes.colspec(colwidth=35), nodes.colspec(colwidth=65)]
    body = nodes.tbody()
    group += body
    for names, words in records:
        row = nodes.row()
        row += [nodes.entry("", nodes.paragraph("", "", nodes.literal(names, names)))]
        row += [nodes.entry("", nodes.paragraph("", words))]
        body += row
    return table


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("damvi-commands", DamviCommands)
    return {"parallel_read_safe": True}
