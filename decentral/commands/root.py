"""The root of the command line: how commands fail, and what they have in common."""

from __future__ import annotations

__all__ = ["INTERRUPTED", "app", "fail", "new_group"]

import errno
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from decentral.errors import DecentralError, short

INTERRUPTED = 130
"""Exit code."""
_Misuse: Any = typer.BadParameter.mro()[1]
"""What typer raises for words that it cannot parse; of all its kinds only this one has a public name."""


class Commands(TyperGroup):
    """Turns what typer refuses, and what a command raises on purpose, into one sentence and exit code 2."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().make_context(*args, **kwargs)
        except _Misuse as error:
            _refuse(error)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _Misuse as error:
            _refuse(error)
        except DecentralError as error:
            fail(str(error))
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            fail(f"the disk is full while writing {error.filename or 'a file'}: make room and start the command again")


def fail(sentence: str) -> NoReturn:
    """Ends the command with one sentence and exit code 2."""
    typer.echo(f"error: {sentence}", err=True)
    raise typer.Exit(2)


def _refuse(error: Any) -> NoReturn:
    """Ends the command with what typer's parser says. Help for a call without words is raised again, for typer."""
    what = error.format_message().rstrip(".").replace(". Did you", "; did you").replace(": Input", ": input")
    if not what or "\n" in what:  # nothing where rich has printed the help already
        raise error
    if hasattr(error.__cause__, "errors"):  # pydantic's, whose message leaves out the value
        what = what.replace("value", f"value {short(error.__cause__.errors()[0]['input'])}", 1)
    command = error.ctx.command_path if error.ctx else "decentral"
    fail(f"{what[0].lower()}{what[1:]}; see {command} --help")


_PLAIN: dict[str, Any] = {"no_args_is_help": True, "add_completion": False, "pretty_exceptions_enable": False}
app = typer.Typer(
    cls=Commands,
    help="Language agents that learn together without a centre, in any PettingZoo environment.",
    **_PLAIN,
)


def new_group(about: str | None = None) -> typer.Typer:
    """Returns an empty group of commands."""
    return typer.Typer(help=about, **_PLAIN)


def _version(asked: bool) -> None:
    if asked:
        from decentral import __version__

        typer.echo(f"decentral {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass
