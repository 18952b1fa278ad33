"""HTTP connections that bound the silence of a client and its early requests; the server library does not."""

import asyncio

import h11
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

SILENCE = 10.0
"""Seconds in which a client must send a whole request, or read a part of its answer."""
READING = 120.0
"""Seconds in which a client must read a whole answer, also if it reads a little all the time."""
LOOKS = 2
"""Number of times that a connection is looked at before it is closed."""


class _OneAtATime(FlowControl):
    """A flow that stays paused while a whole request waits for its answer.

    The library resumes reading whenever the application looks for more of a request, also if only later
    requests can come. These would collect in memory, up to 512 kB for every answer.
    """

    def __init__(self, transport: asyncio.Transport, parser: h11.Connection) -> None:
        super().__init__(transport)
        self._parser = parser

    def resume_reading(self) -> None:
        """Read on, if the current request has more to come, or its answer is complete."""
        if self._parser.their_state in (h11.IDLE, h11.SEND_BODY) or self._parser.our_state is h11.DONE:
            super().resume_reading()


class Impatient(H11Protocol):
    """A connection that is closed if nothing happens on the side of the client.

    This is the case if no request is whole, or if the rest of an answer, which the client must read, does not
    get shorter, or is still not read after some minutes. A connection whose answer is being computed stays.
    Requests that a client sends before it has an answer are read when their turn comes.
    """

    _same = 0
    _reading = 0
    _state: tuple[object, int] = (None, 0)
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look at the connection; close it if there are twice as many as can be served."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > 2 * self.limit_concurrency:
            transport.abort()
        self.flow = _OneAtATime(transport, self.conn)
        self._later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _later(self) -> None:
        self._look = self.loop.call_later(SILENCE / LOOKS, self._looked)

    def _looked(self) -> None:
        """Close the connection if it has the same state as before, and its client is to act."""
        cycle: RequestResponseCycle | None = self.cycle
        state = (cycle, self.transport.get_write_buffer_size())
        is_computing = cycle is not None and not cycle.response_complete and not state[1]
        self._same = self._same + 1 if state == self._state and not is_computing else 0
        self._reading = self._reading + 1 if state[1] and cycle is self._state[0] else 0
        self._state = state
        if self._same >= LOOKS or self._reading >= LOOKS * READING / SILENCE:
            self.transport.abort()
        else:
            self._later()
