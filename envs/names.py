"""Names: from ``meet``, ``suite/id``, ``package.module:callable`` or ``file.py:callable`` to a callable and a game.

Knows how things are found and called; nothing about what they do.
"""

from __future__ import annotations

__all__ = ["games", "levels", "load", "make", "resolve", "suites"]

import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from decentral.envs.config import EnvConfig
from decentral.envs.game import Game
from decentral.envs.images import colour_grid
from decentral.envs.text import TextView
from decentral.errors import ConfigError, EnvError, MissingExtra, said, suggest

_GAMES = {
    "guide": "decentral.envs.games.guide:env",
    "meet": "decentral.envs.games.meet:env",
    "vault": "decentral.envs.games.vault:env",
}
_ADAPTERS = {
    "classic": "decentral.envs.adapters.classic:env",
    "gymnasium": "decentral.envs.adapters.gymnasium:env",
    "lbforaging": "decentral.envs.adapters.lbforaging:env",
    "mpe2": "decentral.envs.adapters.mpe2:env",
    "openspiel": "decentral.envs.adapters.openspiel:env",
    "rware": "decentral.envs.adapters.rware:env",
    "textarena": "decentral.envs.adapters.textarena:env",
}
_FORMS = "package.module:callable or file.py:callable"
_SUITES = {
    "chess",
    "lbforaging",
    "mpe2",
    "nltk",
    "pettingzoo",
    "pygame",
    "pyspiel",
    "rlcard",
    "rware",
    "shimmy",
    "textarena",
}
"""Packages that the extra ``suites`` installs."""


def games() -> dict[str, str]:
    """Returns the built-in games: name -> ``package.module:callable``."""
    return dict(_GAMES)


def suites() -> list[str]:
    """Returns the suites whose environments are named ``suite/id``, e.g. ``openspiel/leduc_poker``."""
    return list(_ADAPTERS)


def levels(game: str) -> list[EnvConfig]:
    """Returns every level of a built-in game, the easiest first."""
    module = importlib.import_module(_GAMES[game].partition(":")[0])
    return [EnvConfig(name=game, level=level) for level in range(module.LEVELS)]


def resolve(name: str) -> Callable[..., Any]:
    """Returns the callable that makes the environment ``name``. Raises ConfigError, with what may have been meant."""
    if name in _GAMES:
        return load(_GAMES[name], "environment")
    suite, slash, id_ = name.partition("/")
    if slash and suite in _ADAPTERS and ".py" not in id_:
        return partial(load(_ADAPTERS[suite], f"environment {name!r}"), id_)
    if ":" in name:
        return load(name, "environment")
    if name.endswith(".py"):
        raise ConfigError(f"environment {name!r} names no callable; write {name}:env, or as your function is called")
    if "." in name:
        raise ConfigError(f"environment {name!r} names no callable; write {name}:env or {name}:parallel_env")
    if slash:
        raise ConfigError(
            f"environment {name!r} is of no suite that is known{suggest(suite, _ADAPTERS)}; there are "
            f"{', '.join(_ADAPTERS)}, and others are named {_FORMS}"
        )
    raise ConfigError(
        f"environment {name!r} is not built in (there are {', '.join(_GAMES)}){suggest(name, _GAMES)}; others are "
        f"named suite/id ({', '.join(_ADAPTERS)}), {_FORMS}"
    )


def load(name: str, field: str) -> Callable[..., Any]:
    """Returns the callable at ``package.module:callable`` or ``file.py:callable``.

    ``field`` is what the name was given for, and opens the message. Raises ConfigError.
    """
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise ConfigError(f"{field} {name!r} is not of the form {_FORMS}; write it so")
    if "<" in attribute:
        raise ConfigError(
            f"{field} {name!r} is an object that no name leads to: pass the callable itself as `factory`, or put it at "
            "the top of a file and name that"
        )
    module = _file(where, field) if where.endswith(".py") else _module(where, field)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = [key for key in dir(found) if not key.startswith("_") and callable(getattr(found, key, None))]
            raise ConfigError(
                f"{field} {name!r}: {where} has no {part!r}{suggest(part, known)}; it has {', '.join(known) or 'none'}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(f"{field} {name!r} is a {type(found).__name__}, not a function or class; name one")
    return found  # type: ignore[no-any-return]


def make(config: EnvConfig, factory: Callable[..., Any] | None = None) -> Game:
    """Returns a new game of ``config``; ``factory`` stands in for its name (an environment defined in a notebook).

    Raises ConfigError for what the callable does not take, EnvError if it cannot make the environment.
    """
    maker = factory or resolve(config.name)
    keywords = dict(config.options)
    _check_options(config, maker, keywords)
    if config.level is not None:
        keywords["level"] = _level(config, maker)
    try:
        env = maker(**keywords)
    except (ConfigError, EnvError):
        raise
    except ImportError as error:
        raise _missing(error, f"environment {config.name!r}") from error
    except (Exception, SystemExit) as error:  # a factory may raise anything
        raise EnvError(
            f"environment {config.name!r} could not be made with {keywords}: {type(error).__name__}: {said(error)}; "
            "correct the options or the callable"
        ) from error
    return Game(
        env,
        name=config.name,
        view=_view(config, env) if config.view else None,
        success=load(config.success, "success") if config.success else None,
        success_return=config.success_return,
        max_rounds=config.max_rounds,
        bins=config.bins,
        picture=load(config.picture, "picture") if config.picture else colour_grid,
    )


def _check_options(config: EnvConfig, maker: Callable[..., Any], keywords: dict[str, Any]) -> None:
    parameters = _parameters(maker)
    if parameters is None or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return
    known = [one.name for one in parameters]
    for key in keywords:
        if key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ConfigError(f"option {key!r} is unknown to {config.name}{suggest(key, known)}; {takes}")


def _level(config: EnvConfig, maker: Callable[..., Any]) -> int:
    """Returns the level, if the callable has levels; a built-in says how many in LEVELS, beside itself."""
    level = config.level
    assert level is not None
    if "level" in config.options:
        raise ConfigError(f"level {level} of {config.name} is given a second time in options; leave one of the two out")
    if "level" not in [one.name for one in _parameters(maker) or ()]:
        raise ConfigError(f"level {level} cannot be used: {config.name} takes no argument 'level'; leave it out")
    count = getattr(sys.modules.get(getattr(maker, "__module__", "")), "LEVELS", None)
    if isinstance(count, int) and level >= count:
        raise ConfigError(
            f"level {level} of {config.name} does not exist: it has 0 to {count - 1}; choose one of these"
        )
    return level


def _parameters(maker: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Returns what a callable takes, or None where Python cannot tell."""
    try:
        return list(inspect.signature(maker).parameters.values())
    except (TypeError, ValueError):
        return None


def _view(config: EnvConfig, env: Any) -> TextView:
    """Calls the user's view with the environment, or with nothing if it takes nothing."""
    maker = load(config.view, "view")
    takes = _parameters(maker)
    try:
        view = maker() if takes == [] else maker(env)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"view {config.view!r} raised {type(error).__name__}: {said(error)}; correct it") from error
    if not isinstance(view, TextView):
        raise ConfigError(
            f"view {config.view!r} returned a {type(view).__name__} without observe and actions; return a TextView"
        )
    return view


def _module(where: str, field: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        absent = error.name or ""
        if not (where == absent or where.startswith(absent + ".")):
            raise _missing(error, f"{field} {where!r}") from error
        if absent in _SUITES:
            raise MissingExtra(f"{field} {where!r}", "suites") from error
        parent, _, last = absent.rpartition(".")
        near = suggest(last, _children(parent))
        hint = near or f"; install the package, or name a file as {absent}.py:callable"
        raise ConfigError(f"{field}: there is no module {absent!r}{hint}") from error
    except ImportError as error:
        raise _missing(error, f"{field} {where!r}") from error
    except (Exception, SystemExit) as error:
        raise _broken(error, f"{field} {where!r}") from error


def _children(parent: str) -> Iterable[str]:
    if not parent:
        return [one.name for one in pkgutil.iter_modules()]
    return [one.name for one in pkgutil.iter_modules(getattr(importlib.import_module(parent), "__path__", []))]


def _file(where: str, field: str) -> ModuleType:
    """Runs a file as a module under a private name; once per state of the file, so that classes stay the same."""
    path = Path(where).expanduser().resolve()
    if not path.is_file():
        siblings = [one.name for one in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise ConfigError(f"{field}: there is no file {str(path)!r}{suggest(path.name, siblings)}; give its path")
    code = path.read_bytes()
    name = f"_decentral_file_{hashlib.sha256(str(path).encode() + code).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.parent))  # as for a script, its neighbours can be imported, but they hide nothing
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        del sys.modules[name]
        raise _missing(error, f"{field} {where!r}") from error
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _broken(error, f"{field} {where!r}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _missing(error: ImportError, what: str) -> ConfigError:
    package = (error.name or "").split(".")[0]
    if package in _SUITES:
        return MissingExtra(f"{what} (for the package {package!r})", "suites")
    return ConfigError(f"{what} cannot be imported: {error}; install what is missing")


def _broken(error: BaseException, what: str) -> ConfigError:
    return ConfigError(f"{what} cannot be loaded: {type(error).__name__}: {said(error)}; correct it")
