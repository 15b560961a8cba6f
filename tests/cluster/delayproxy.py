"""A TCP proxy that is a bad line: `delayproxy.py LISTEN_HOST:PORT TARGET_HOST:PORT [SECONDS]`.

Each byte takes SECONDS longer, both ways. Port 0 takes a free one. It prints `listening PORT`, reads commands
from its standard input, one a line, answers each with `ok`, and ends with the input:

    delay SECONDS   from now on
    silent          nothing passes, in no direction; nobody is told
    pass            what was held back goes on, and all that comes
    drop            connections end (TCP reset); new ones are welcome
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import AsyncIterator

# SO_LINGER on, with no time to linger: close() sends RST.
RESET = struct.pack("ii", 1, 0)


class Line:
    """The state that all connections share."""

    def __init__(self, target: tuple[str, int], delay: float) -> None:
        self.target = target
        self.delay = delay
        self.open = asyncio.Event()
        self.open.set()
        self.connections: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        self.connections.add(writer)
        try:
            there, back = await asyncio.open_connection(*self.target)
            self.connections.add(back)
            if writer.transport.is_closing():  # cut meanwhile
                _reset(back)
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            self.connections.discard(back)
        except OSError:
            pass  # an end is gone, so is the other
        finally:
            writer.close()
            self.connections.discard(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes from one end to the other, `delay` later; the end of file too."""
        loop = asyncio.get_running_loop()
        parcels: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, data = await parcels.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self.open.wait()
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        delivery = asyncio.create_task(deliver())
        async for data in _chunks(reader):
            parcels.put_nowait((loop.time() + self.delay, data))
        await delivery

    def command(self, words: list[str]) -> str:
        """Do what a line of the input says; return the answer."""
        match words:
            case ["delay", seconds]:
                self.delay = float(seconds)
            case ["silent"]:
                self.open.clear()
            case ["pass"]:
                self.open.set()
            case ["drop"]:
                for writer in list(self.connections):
                    _reset(writer)
            case _:
                return f"no such command: {' '.join(words)}"
        return "ok"


def _reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """What is read, and b"" at the end, however it comes."""
    data = b"more"
    while data:
        try:
            data = await reader.read(65536)
        except ConnectionError:
            data = b""
        yield data


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def main(listen: str, target: str, seconds: str = "0") -> None:
    """Serve until the input ends."""
    line = Line(_address(target), float(seconds))
    server = await asyncio.start_server(line.serve, *_address(listen))
    print("listening", server.sockets[0].getsockname()[1], flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    while text := await commands.readline():
        print(line.command(text.decode().split()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
