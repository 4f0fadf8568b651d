"""A network between clients and a broker that can be cut or closed, is slow, and loses packets: a proxy on loopback.

TCP hides losses: what a connection carries comes late, in order. So does the proxy with them.
"""

import asyncio
import random
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from railgun.broker.commands import HOST, Ports
from railgun.broker.held_ports import held_port, number_of
from railgun.broker.installation import Say
from railgun.broker.local import LocalBroker, Status
from tests.broker.quick_broker import prepare_quick

_CHUNK_BYTES = 64 << 10
# Of one packet, and how long TCP waits at least before it sends one again; it waits twice as long each time.
_PACKET_BYTES, _RETRANSMISSION_S = 1448, 0.2
# A sender waits when so many chunks of it are on their way.
_ON_WAY_MOST = 64
# A task that ignores its cancellation for so long fails the test.
_END_S = 10.0


class FaultyNetwork:
    """Forwards connections to a port of this machine.

    loss: the probability that a packet is lost. delay_s: how long one is on its way, in each direction.
    target: the port; clients connect to `port`.
    """

    def __init__(self, target: int, seed: int) -> None:
        self.target, self.loss, self.delay_s = target, 0.0, 0.0
        self._chance = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        # Connections of clients, those to the target, and what forwards between them.
        self._near: set[asyncio.StreamWriter] = set()
        self._far: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="network", daemon=True)
        self._thread.start()
        started.wait()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def cut(self) -> None:
        """Hold everything back, in both directions, without closing a connection."""
        self._loop.call_soon_threadsafe(self._is_whole.clear)

    def mend(self) -> None:
        """Let everything through again, what was held back first."""
        self._loop.call_soon_threadsafe(self._is_whole.set)

    def refuse(self) -> None:
        """Close all connections and take none, as where the broker does not run."""
        asyncio.run_coroutine_threadsafe(self._refuse(), self._loop).result()

    def accept(self) -> None:
        """Take connections again, at the same port."""
        asyncio.run_coroutine_threadsafe(self._accept(self.port), self._loop).result()

    def close(self) -> None:
        """Close all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._accept(0))
        self.port = int(self._server.sockets[0].getsockname()[1])
        started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        """Close every connection, also one that is only just being accepted and has no task yet."""
        await self._listen_no_more()
        own = asyncio.current_task()
        async with asyncio.timeout(_END_S):
            while others := {task for task in asyncio.all_tasks() if task is not own}:
                for task in self._serving:
                    task.cancel()
                await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        writers = self._near | self._far
        for writer in writers:
            # What is not sent yet would keep a connection that is only closed.
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)

    async def _accept(self, port: int) -> None:
        self._server = await asyncio.start_server(self._begin, HOST, port)

    async def _listen_no_more(self) -> None:
        """Close the server, once each connection that it has accepted has begun: others asyncio leaves unclosed."""
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        # One turn of the loop each: the connection is made, it is told so, and a task serves it.
        for _ in range(3):
            await asyncio.sleep(0)
        self._server.close()

    async def _refuse(self) -> None:
        await self._listen_no_more()
        for writer in self._near:
            writer.transport.abort()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection. A task that is cancelled before its first step closes nothing: `_end` does."""
        self._near.add(writer)
        task = self._loop.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await self._is_whole.wait()
            behind, ahead = await asyncio.open_connection(HOST, self.target)
            self._far.add(ahead)
            await asyncio.gather(self._forward(reader, ahead), self._forward(behind, writer))
            await self._gone(self._far, ahead)
        await self._gone(self._near, writer)

    async def _gone(self, among: set[asyncio.StreamWriter], writer: asyncio.StreamWriter) -> None:
        """Close a connection and forget it once it is closed."""
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        among.discard(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one side closes; the other is closed then."""
        on_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_ON_WAY_MOST)
        sending = self._loop.create_task(self._send(reader, on_way))
        try:
            while (arriving := await on_way.get())[1]:
                due_s, data = arriving
                await asyncio.sleep(max(0.0, due_s - self._loop.time()))
                await self._is_whole.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            sending.cancel()
            writer.close()

    async def _send(self, reader: asyncio.StreamReader, on_way: asyncio.Queue[tuple[float, bytes]]) -> None:
        """Put what is read on its way, with the time when it arrives, which is not before what was sent earlier does.

        At last an empty chunk.
        """
        due_s, data = 0.0, b"."
        while data:
            try:
                data = await reader.read(_CHUNK_BYTES)
            except OSError:
                data = b""
            if data:
                await self._is_whole.wait()
                due_s = max(due_s, self._loop.time() + self.delay_s + self._late_s(len(data)))
            await on_way.put((due_s, data))

    def _late_s(self, size_bytes: int) -> float:
        """How much later data comes since packets of it were lost."""
        packets = -(-size_bytes // _PACKET_BYTES)
        late_s, wait_s = 0.0, _RETRANSMISSION_S
        while packets and self.loss:
            packets = sum(self._chance.random() < self.loss for _ in range(packets))
            if packets:
                late_s, wait_s = late_s + wait_s, wait_s * 2
        return late_s


class NetworkedBroker(LocalBroker):
    """A broker that some clients reach through networks, each by a port of its own, and others directly."""

    def __init__(self, folder: Path, networks: Sequence[FaultyNetwork]) -> None:
        super().__init__(folder, prepare_quick(folder))
        self._networks = networks

    def start(self, port: int, say: Say) -> Status:
        with ExitStack() as stack:
            for network in self._networks:
                network.target = number_of(stack.enter_context(held_port()))
            return super().start(port, say)

    def _prepare(self, java: Path, jars: Path, ports: Ports) -> None:
        super()._prepare(java, jars, ports)
        lines = self._properties.read_text(encoding="ascii").splitlines()
        settings = dict(line.split("=", 1) for line in lines)
        for number, network in enumerate(self._networks):
            name = f"NETWORK{number}"
            settings["listeners"] += f",{name}://{HOST}:{network.target}"
            settings["advertised.listeners"] += f",{name}://{network.address}"
            settings["listener.security.protocol.map"] += f",{name}:PLAINTEXT"
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self._properties.write_text(text, encoding="ascii")
