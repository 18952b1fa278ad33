"""Batches in flight on Ray: a few for each processor, with recovery if a worker, a node or the head dies."""

import random
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from privcore.errors import PrivsweepError
from storage.place.folder import Folder
from storage.place.located import shared_store_token
from storage.schema import provenance
from tasks import cluster
from tasks.batch import Batch
from tasks.cluster import Address
from tasks.errors import StoppedError, first_line
from tasks.guard import oom_kills
from tasks.health import LOOK_EVERY, HeadGoneError, Health, answering, probe_cluster
from tasks.sources import code
from tasks.waiting import WHOLE, Attempt, Flight, Waiting, request
from tasks.work import Done, Job, delivered
from tasks.worker import Requirements, run_on_worker

AHEAD = 3  # batches in flight for each processor: enough to keep it busy, and few enough to save memory
BYTES_AHEAD = 256e6  # estimated bytes of parts on their way back to this process
ROW_BYTES = 400.0  # most bytes of a row in a part; most rows take a tenth
RESTARTS = 2  # new starts of Ray on this machine after it stopped working
PATIENCE = 10.0  # seconds for workers to publish finished points when a run is interrupted
GRACE = 60.0  # seconds after which a batch can be late: nodes load packages and compile functions
SLOW = 4.0  # times its estimate, and that of the batches before it, for which a batch is not late
HELD = 0.5  # seconds between looks while batches are held back


def run_here(batches: Sequence[Batch], job: Job, place: Folder, workers: int) -> Generator[Done | str | None]:
    """Yield the outcome of each batch, computed by Ray on this machine; restart Ray if it stops working.

    None means that no batch has finished for a while.
    """
    dispatch = Dispatch(batches, job, place)
    for remaining in reversed(range(1 + RESTARTS)):
        with cluster.started_here(workers):
            from ray.exceptions import RayError

            try:
                yield from dispatch.work()
            except (RayError, HeadGoneError) as error:
                if not remaining:
                    raise StoppedError(f"Ray stopped working ({first_line(error)})") from error
                dispatch.reclaim()
            else:
                return
            finally:
                dispatch.interrupt()


def run_on_cluster(
    batches: Sequence[Batch], job: Job, place: Folder, address: Address, workers: int | None
) -> Generator[Done | str | None]:
    """Yield the outcome of each batch, computed on an existing cluster, and None as `run_here` does.

    Args:
        batches: The batches.
        job: Settings for every worker.
        place: The store.
        address: Address of a cluster that accepts connections.
        workers: Most batches in flight, or None for a multiple of the cluster's processors.

    Raises:
        EngineError: The cluster cannot be used.
        StoppedError: The cluster stopped working.
        StoreError: A part cannot be written.
    """
    with shared_store_token(place) as token, cluster.joined(address):
        from ray.exceptions import RayError

        try:
            info = probe_cluster(address, place.address, token)
            yield str(info)
            sent = replace(job, code=provenance()) if info.sent else job
            dispatch = Dispatch(batches, sent, place, Requirements(code=code(), token=token), limit=workers)
            dispatch.carries = info.seeing < info.nodes
            try:
                yield from dispatch.work()
            finally:
                dispatch.interrupt()
        except RayError as error:
            sentence = f"The Ray cluster at {address} stopped working ({first_line(error)})"
            raise StoppedError(sentence) from error


class Dispatch:
    """Batches in flight, and those that wait.

    Attributes:
        carries: Whether parts come back to this process, which limits the batches in flight.
    """

    def __init__(
        self,
        batches: Iterable[Batch],
        job: Job,
        place: Folder,
        requirements: Requirements | None = None,
        limit: int | None = None,
    ) -> None:
        self.carries = False
        self._waiting = Waiting(batches, job, place)
        self._running: dict[Any, Flight] = {}
        self._late: dict[Any, Flight] = {}  # past their deadlines, and waiting or in flight again
        self._pace = 1.0  # largest ratio of measured to estimated seconds of a batch
        self._answering: list[str] = []  # nodes that answered when a batch was late
        self._points = 0  # in flight
        self._seconds = 0.0  # estimated, in flight
        self._lost: list[Attempt] = []  # batches in flight when Ray stopped working
        self._job = job
        self._place = place
        self._requirements = requirements
        self._limit = limit
        self._oom_kills = oom_kills()

    def work(self) -> Generator[Done | None]:
        """Yield the outcomes of all batches, and None if no batch has finished for a while.

        Raises:
            RayError: Ray stopped working; batches in flight may be finished or not.
            HeadGoneError: The head of the cluster stopped working; batches in flight may be finished or not.
        """
        import ray

        where: Literal["SPREAD", "DEFAULT"] = "SPREAD" if self._requirements else "DEFAULT"
        remote = ray.remote(max_retries=0, num_cpus=1, scheduling_strategy=where)(run_on_worker)
        health = Health()
        largest = health.largest
        yield from self._found()
        looked = time.monotonic()
        while self._waiting or self._running:
            processors = health.processors(len(self._running))  # in any case, since it also checks the head
            usual = self._limit or AHEAD * max(1, processors)
            window = self._waiting.restraint.window(usual, time.monotonic())
            while len(self._running) < window and not self._is_full() and self._waiting:
                self._submit(remote, self._waiting.next(), health)
            if self._requirements and time.monotonic() - looked > LOOK_EVERY:
                yield from self._repeat_late()
                looked = time.monotonic()
            if not self._running:
                time.sleep(HELD)  # batches are held back, for lack of memory
                yield None
                continue
            if health.largest < largest:
                self._recall(health.largest)
            largest = health.largest
            flying = [*self._running, *self._late]
            finished, _ = ray.wait(flying, num_returns=1, timeout=LOOK_EVERY)
            if not finished:
                yield None
            else:  # collect all finished ones: with 20,000 in flight, one wait takes ten milliseconds
                finished, _ = ray.wait(flying, num_returns=len(flying), timeout=0)
            for reference in finished:
                if done := self._landed(reference, health):
                    yield done

    def _submit(self, remote: Any, attempt: Attempt, health: Health) -> None:
        """Give a batch to Ray, with the name of its method, by which Ray's tools list it."""
        if attempt.finished:
            return
        batch = attempt.batch
        memory = request(batch, attempt.kills, health.largest)
        expected = batch.seconds + self._seconds / max(1, health.processors(len(self._running)))
        patience = (GRACE + SLOW * self._pace * expected) * 2.0**attempt.late
        task = remote.options(name=batch.method.name, memory=memory, **self._elsewhere(attempt))
        last = attempt.kills >= WHOLE
        reference = task.remote(batch, self._job, self._place.address, self._requirements, last=last)
        self._running[reference] = Flight(attempt, health.dead, memory, time.monotonic() + patience)
        self._points += len(batch)
        self._seconds += batch.seconds

    def _landed(self, reference: Any, health: Health) -> Done | None:
        """Return the outcome of a batch that has ended, or None if there is none yet, or was one before."""
        if flight := self._running.get(reference):
            done = self._outcome(reference, flight, health)
        elif flight := self._late.get(reference):
            done = self._outcome_of_late(reference)
        else:
            return None  # another node was faster
        is_late = reference in self._late
        self._drop(reference)
        if done is not None:
            self._pace = max(self._pace, done.seconds / max(done.estimate, 1e-9))
            self._finish(flight.attempt)
        elif not is_late:
            self._cancel(flight.attempt)  # it is divided, or waits again
        return done

    def _repeat_late(self) -> Generator[Done]:
        """Queue batches again that are past their deadlines, as on a frozen node; the first outcome wins."""
        now = time.monotonic()
        late = {each: flight for each, flight in self._running.items() if now > flight.deadline}
        if late:
            self._answering = answering()
        for reference, flight in late.items():
            flight.attempt.late += 1
            self._late[reference] = self._running.pop(reference)
            self._seconds -= flight.attempt.batch.seconds
            if done := self._waiting.after_a_loss(flight.attempt):  # it was published before
                self._finish(flight.attempt)
                yield done

    def _elsewhere(self, attempt: Attempt) -> dict[str, Any]:
        """Return options that give a late batch to a node that answers."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        if not (attempt.late and self._answering):
            return {}
        node = random.choice(self._answering)
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True)}

    def _outcome_of_late(self, reference: Any) -> Done | None:
        """Return the outcome of a late batch, or None if it failed, since another node computes it."""
        import ray
        from ray.exceptions import RayError

        with suppress(RayError):
            done: Done = ray.get(reference)
            return None if done.left else delivered(done, self._place)
        return None

    def _finish(self, attempt: Attempt) -> None:
        """Record the end of a batch, and cancel it on other nodes."""
        self._waiting.finished()
        attempt.finished = True
        self._cancel(attempt)

    def _cancel(self, attempt: Attempt) -> None:
        """Cancel a batch on the nodes on which it was late, or is computed again."""
        import ray

        flying = self._running | self._late if attempt.late else {}
        for reference, flight in flying.items():
            if flight.attempt is attempt:
                ray.cancel(reference, force=True)
                self._drop(reference)

    def _drop(self, reference: Any) -> None:
        """Forget a batch in flight."""
        flight = self._running.pop(reference, None)
        self._seconds -= flight.attempt.batch.seconds if flight else 0.0
        self._points -= len((flight or self._late.pop(reference)).attempt.batch)

    def _recall(self, largest: float) -> None:
        """Cancel batches for which no node is large enough any more; they ask for less the next time."""
        import ray

        for reference, flight in self._running.items():
            if flight.memory > largest > 0:
                ray.cancel(reference)

    def reclaim(self) -> None:
        """Take back the batches in flight, which no worker computes any more."""
        self._lost += (flight.attempt for flight in self._running.values())
        self._land()

    def interrupt(self) -> None:
        """Interrupt the batches in flight; finished points are published by workers or by this process."""
        import ray
        from ray.exceptions import RayError

        running = [*self._running, *self._late]
        self._land()
        try:
            running = self._kept(running, timeout=0)
            for reference in running:
                ray.cancel(reference)
            self._kept(running, timeout=PATIENCE)
        except RayError:
            pass  # Ray stopped working, and its workers with it

    def _kept(self, running: list[Any], timeout: float) -> list[Any]:
        """Publish the parts that come back within the timeout; return the batches that have not ended."""
        import ray
        from ray.exceptions import RayError

        if not running:
            return []
        finished, others = ray.wait(running, num_returns=len(running), timeout=timeout)
        for reference in finished:
            with suppress(RayError, PrivsweepError):  # interrupted, or failed with the error of the run
                delivered(ray.get(reference), self._place)
        return list(others)

    def _land(self) -> None:
        """Forget all batches in flight."""
        self._running.clear()
        self._late.clear()
        self._points = 0
        self._seconds = 0.0

    def _found(self) -> Generator[Done]:
        """Yield the outcomes of lost batches that were published before; queue the others again."""
        while self._lost:
            if done := self._waiting.after_a_loss(self._lost.pop()):
                yield done

    def _is_full(self) -> bool:
        """Return whether the parts on their way back reach the limit of bytes."""
        return self.carries and self._points * ROW_BYTES > BYTES_AHEAD

    def _outcome(self, reference: Any, flight: Flight, health: Health) -> Done | None:
        """Return the outcome of a batch, or None if it, or its halves, are queued again."""
        import ray
        from ray import exceptions as fates

        attempt = flight.attempt
        try:
            done: Done = ray.get(reference)
        except fates.TaskCancelledError:  # recalled
            self._waiting.again(attempt)
            return None
        except fates.RayTaskError as error:
            if self._requirements is None or isinstance(error.cause, PrivsweepError):
                raise error.cause from error
            raise StoppedError(f"A worker of the Ray cluster failed ({first_line(error.cause)})") from error
        except fates.OutOfMemoryError:
            return self._waiting.after_a_kill(attempt, flight.memory, health.largest, len(self._running) - 1)
        except (fates.NodeDiedError, fates.ObjectLostError) as error:
            return self._waiting.after_a_death(attempt, error)
        except fates.WorkerCrashedError as error:
            return self._after_a_crash(flight, health, error)
        if done.left:
            rest = Attempt(attempt.batch.part(len(attempt.batch) - done.left), kills=attempt.kills)
            self._waiting.after_a_kernel_kill(rest, len(self._running) - 1)
            if not done.points:
                return None
        self.carries |= done.packed is not None
        return delivered(done, self._place)

    def _after_a_crash(self, flight: Flight, health: Health, error: Exception) -> Done | None:
        """Return the outcome of a batch whose worker died with its node, by the kernel, or by itself."""
        before, self._oom_kills = self._oom_kills, oom_kills()
        if health.has_lost_a_node(flight.dead):
            return self._waiting.after_a_death(flight.attempt, error)
        if self._oom_kills > before:  # on this machine; Ray does not report the counters of others
            return self._waiting.after_a_kernel_kill(flight.attempt, len(self._running) - 1)
        return self._waiting.after_a_crash(flight.attempt)
