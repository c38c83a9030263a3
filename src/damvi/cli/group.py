"""What all commands share: options for machines, and errors on one screen."""

from __future__ import annotations

from typing import Any

import click

from .talking import KEY, Talk

FAULT = "this looks like a fault of damvi; --debug shows where"


class Commands(click.Group):
    """A group whose commands all take ``--json``, ``--quiet`` and ``--debug``.

    What is wrong with the user's input ends with one line and exit code 1.
    """

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        _dress(cmd)
        super().add_command(cmd, name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit) as error:
            _tell_machines(ctx, error)
            raise
        except BrokenPipeError:
            raise
        except Exception as error:
            if _talk(ctx).debug:
                raise
            told = click.ClickException(one_line(error))
            _tell_machines(ctx, told)
            raise told from error


def one_line(error: Exception) -> str:
    """What is wrong, without line breaks; what nobody foresaw says so."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"out of memory. {text}".strip()
    if isinstance(error, ModuleNotFoundError) and text.startswith("No module named"):
        package = (error.name or text).partition(".")[0]
        return (
            f"this needs the package {package}, which is not installed; "
            f"pip install 'damvi[all]' brings it"
        )
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"there is no file {error.filename}"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    if isinstance(error, ValueError | OSError | ImportError):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text} ({FAULT})"


def _tell_machines(ctx: click.Context, error: Exception) -> None:
    talk = _talk(ctx)
    if talk.as_json and isinstance(error, click.ClickException):
        talk.result({"error": error.format_message()})


def _talk(ctx: click.Context) -> Talk:
    found: Talk = ctx.meta.setdefault(KEY, Talk())
    return found


def _dress(command: click.Command) -> None:
    """Give a command, and those below it, the options that all have."""
    there = {name for option in command.params for name in option.opts}
    for name, field, words in (
        ("--json", "as_json", "Print the result as JSON, for machines."),
        ("--quiet", "quiet", "Print nothing but errors."),
        ("--debug", "debug", "Show where an error comes from."),
    ):
        if name not in there:
            option = click.Option(
                [name],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_setter(field),
                help=words,
            )
            command.params.append(option)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _dress(below)


def _setter(field: str) -> Any:
    def set_field(ctx: click.Context, option: click.Parameter, value: bool) -> None:
        if value:
            setattr(_talk(ctx), field, True)

    return set_field
