"""CURVE keys in files: a public one to be shared, a secret one to be kept. Knows no socket.

The files are those of pyzmq's `zmq.auth`.
"""

from __future__ import annotations

__all__ = ["new_keys", "public_key", "secret_key"]

import os
import stat
from pathlib import Path

import zmq
import zmq.auth

from decentral.disk import disk_error
from decentral.envs.agent_names import check_names
from decentral.errors import ConfigError, EnvError, RunError


def new_keys(name: str, folder: Path) -> tuple[Path, Path]:
    """Makes a pair of keys and returns the files ``NAME.key`` and ``NAME.key_secret``, which only its user can read.

    Raises ConfigError if ``name`` is neither ``host`` nor a name that an agent can have, and RunError if it has keys
    already, or they cannot be written.
    """
    try:
        check_names([name] if name != "host" else ["an agent"])
    except EnvError as error:
        raise ConfigError(f"no keys can be called {name[:200]!r}: give `host`, or the name of an agent") from error
    public, secret = folder / f"{name}.key", folder / f"{name}.key_secret"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, mode in ((secret, 0o600), (public, 0o644)):
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        zmq.auth.create_certificates(folder, name)
    except FileExistsError as error:
        raise RunError(
            f"{error.filename!r} exists already, and keys are never replaced: give another --folder, or move them away"
        ) from error
    except OSError as error:
        raise disk_error(secret, error, "make room or give access, and try again") from error
    return public, secret


def secret_key(file: Path) -> bytes:
    """Reads a secret key, 40 characters of Z85. Raises ConfigError, also if others can read the file too."""
    try:
        mode = file.stat().st_mode
        secret = zmq.auth.load_certificate(file)[1]
        if secret is None:
            raise ValueError("no secret key in it")
        public_key(secret)
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"others can read the secret key {str(file)!r}: take that away with `chmod 600 {file}`")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read a secret key from {str(file)!r}: {getattr(error, 'strerror', None) or error}; give the "
            "NAME.key_secret that `decentral keys new` made"
        ) from error
    return secret


def public_key(secret: bytes) -> str:
    """Returns the public key of a secret one. Raises ValueError if it is none."""
    try:
        return zmq.curve_public(secret).decode()
    except (zmq.ZMQError, TypeError) as error:
        raise ValueError("it is no key") from error
