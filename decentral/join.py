"""One owner's place in a run across machines, the host's or an agent's: checks what can be checked, then plays.

Every owner has a run folder of its own: the host's holds episodes and results, an agent's its checkpoints and figures.
"""

from __future__ import annotations

__all__ = ["Place"]

from pathlib import Path

import msgspec

from decentral.config import Config
from decentral.engines import Emit
from decentral.errors import RunError
from decentral.folder import RunFolder
from decentral.keys import public_key, secret_key
from decentral.network import Network
from decentral.threads import cap, share
from decentral.train import check, explore, play


class Place:
    """Made by `open`; then to be played once."""

    def __init__(self, name: str, folder: RunFolder, network: Network, secret: bytes) -> None:
        self.folder = folder
        self._name = name
        self._network = network
        self._secret = secret

    @property
    def host(self) -> str:
        """The host's address."""
        return self._network.host.address

    @classmethod
    def open(cls, name: str, config: Config, *, network: Path, secret: Path, out: Path, resume: bool = False) -> Place:
        """Opens the place of ``host``, or of the agent ``name``, and its run folder.

        Args:
            name: ``host``, or an agent's name.
            config: what all owners have agreed on, and what is this one's own.
            network: the file that says who takes part; see `Network`.
            secret: the file of this place's secret key; see `decentral.keys`.
            out: this owner's run folder; it must not exist, unless ``resume``.
            resume: go on with the run in ``out``, of which ``config`` must be.

        Raises ConfigError, EnvError, or RunError.
        """
        parties, key = Network.load(network), secret_key(secret)
        parties.check_key(name, public_key(key))
        config = msgspec.structs.replace(config, engine="network")
        own = () if name == "host" else (name,)
        if not resume:
            config, agents, systems = explore(config, own=own)
            parties.check_agents(config.env.name, agents)
            return cls(name, RunFolder.create(out, config, agents, systems, places=(name,)), parties, key)
        folder = RunFolder.resume(out, config)
        try:
            if not folder.place(name).is_dir():
                raise RunError(
                    f"the run {str(out)!r} is not {name}'s: give the folder with which {name} was started, or start "
                    "another with --out"
                )
            check(folder.config, None, folder.agents, own)
            parties.check_agents(config.env.name, folder.agents)
        except BaseException:
            folder.release()
            raise
        return cls(name, folder, parties, key)

    def play(self, on_event: Emit | None = None) -> None:
        """Plays until the run is over; ``on_event`` is called with what happens, in this thread.

        Raises EnvError, ModelError, RunError, LinkError, ConfigError or DeadlineError, each with one sentence, and
        KeyboardInterrupt once what is committed is safe on disk.
        """
        cap(self.folder.config.threads or share(1))
        try:
            play(self.folder, self._job, on_event)
        finally:
            self.folder.release()

    async def _job(self, emit: Emit) -> None:
        from decentral.engines.network import agent, host  # what is heavy loads once the threads are capped

        if self._name == "host":
            await host(self.folder, self._network, self._secret, emit)
        else:
            await agent(self._name, self.folder, self._network, self._secret, emit)
