"""A Dask cluster. Its scheduler decides which worker does what, and has another one do what a worker leaves undone that dies."""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import distributed
import msgspec
from distributed.comm.core import CommClosedError
from msgspec import Struct

from harness import process
from harness.arch import Arch
from harness.cluster import errand
from harness.cluster.errand import SAME, Done, Errand, Heard
from harness.errors import InfrastructureError, UserError
from harness.guest import Accelerator

Needs = Mapping[str, float]
"""What a worker has to have left: arch:NAME, kvm, memory in bytes."""

_TOPIC = "fgraph-harness"
"""One for all: the scheduler keeps the newest events of each for ever."""
_MEMORY = 4e9
"""Bytes: a kernel's link, or a guest of the largest kind and the QEMU around it."""
_CONNECT_SECONDS = 20.0
_LOOK_SECONDS = 5.0
_GONE_SECONDS = 60.0
"""Who keeps the workers running has that long to bring one back."""
_ATTEMPTS = 4
"""At one errand."""


class Worker(Struct, frozen=True):
    address: str
    threads: int
    resources: Needs

    def has(self, needs: Needs) -> bool:
        return all(self.resources.get(name, 0) >= amount for name, amount in needs.items())


@contextlib.contextmanager
def connected(address: str, archs: Sequence[Arch], accelerator: str) -> Iterator[Cluster]:
    """Raises InfrastructureError if no scheduler answers, UserError if there is an architecture that no worker takes, or a worker
    with another harness."""
    with Cluster(address) as found:
        found.check(archs, accelerator)
        yield found


class Cluster:
    def __init__(self, address: str) -> None:
        # What it says of lost connections, we say of the jobs that were lost with them.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            self._client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except Exception as error:  # each transport raises what it likes
            raise InfrastructureError(f"no Dask scheduler at {address}: {error}", hint="`dask scheduler` starts one") from error
        self._address = address
        self._looking = threading.Lock()
        self._lock = threading.Lock()
        """Dask's own thread waits for this one: nobody asks the scheduler anything while he has it."""
        self._listeners: dict[str, queue.SimpleQueue[Heard | None]] = {}
        self._looked = 0.0
        self._seen: list[Worker] = []
        self._client.subscribe_topic(_TOPIC, self._hear)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close(timeout=_CONNECT_SECONDS)

    def check(self, archs: Sequence[Arch], accelerator: str) -> None:
        workers = self._workers()
        for arch in archs:
            needs = self.needs(arch, accelerator)
            if not any(worker.has(needs) for worker in workers):
                hint = f"dask worker {self._address} --nthreads 1 --resources '{_as_words(needs)}'"
                raise UserError(f"no worker of {self._address} has {_as_words(needs)}; there are {len(workers)}", hint=hint)
        used = [worker.address for worker in workers if any(worker.has(self.needs(arch, accelerator)) for arch in archs)]
        told = self._client.run(errand.fingerprint, workers=used, on_error="return")
        try:
            # It reads what is sent to workers.
            told[f"{self._address}, the scheduler,"] = self._client.run_on_scheduler(errand.fingerprint)
        except Exception as error:
            told[f"{self._address}, the scheduler,"] = error
        for address, theirs in told.items():
            if theirs != errand.fingerprint():
                said = f" ({theirs})" if isinstance(theirs, Exception) else ""
                raise UserError(f"{address} has another harness, or none{said}", hint=SAME)

    def needs(self, arch: Arch, accelerator: str) -> Needs:
        """What a job asks for. KVM, if it is wanted or a worker for `arch` has it, lest half of the jobs run without; memory, if
        all workers for `arch` tell what they have."""
        wanted = {f"arch:{arch.name}": 1.0}
        fitting = [worker.resources for worker in self._workers() if worker.has(wanted)]
        if accelerator == Accelerator.KVM or (accelerator != Accelerator.TCG and any("kvm" in offered for offered in fitting)):
            wanted["kvm"] = 1.0
        if fitting and all("memory" in offered for offered in fitting):
            wanted["memory"] = _MEMORY
        return wanted

    def slots(self, needs: Needs) -> int:
        """How many such jobs it does at a time."""
        return sum(
            min(worker.threads, *(int(worker.resources[name] // amount) for name, amount in needs.items()))
            for worker in self._workers()
            if worker.has(needs)
        )

    def run(self, wanted: Errand, needs: Needs, seconds: float, hear: Callable[[Heard], None]) -> Done:
        """Have it done, and wait. Those that last long, in `seconds`, are begun first. `hear` gets its journal as it grows, from
        the start for each attempt; what it raises ends the errand.

        Raises InfrastructureError if it cannot be done: no worker is left, several died of it, the scheduler is gone."""
        attempts: set[str] = set()

        def count(heard: Heard) -> None:
            attempts.add(heard.attempt)
            hear(heard)

        for _ in range(_ATTEMPTS):
            try:
                return self._submit(wanted, needs, seconds, count)
            except distributed.KilledWorker as error:
                # It counts those as well that died with the errand in their queue.
                last = error.last_worker.address
                if len(attempts) >= _ATTEMPTS:
                    break
        raise InfrastructureError(f"several workers died of it, the last one at {last}")

    def _submit(self, wanted: Errand, needs: Needs, seconds: float, hear: Callable[[Heard], None]) -> Done:
        key = f"{wanted.name}-{secrets.token_hex(8)}"
        heard: queue.SimpleQueue[Heard | None] = queue.SimpleQueue()
        with self._lock:
            self._listeners[key] = heard
        future = self._client.submit(_perform, wanted, key, key=key, resources=dict(needs), priority=int(seconds), pure=False)
        fetched: futures.Future[Done] = futures.Future()

        def fetch() -> None:
            try:
                fetched.set_result(future.result())
            except BaseException as error:
                fetched.set_exception(error)
            heard.put(None)

        # A worker may die after it is done and before we have it: then it is done again, and that is to be listened to.
        threading.Thread(target=fetch, daemon=True).start()
        try:
            with process.ended_by(future.cancel):
                self._listen(heard, needs, hear)
            process.check_stopped()
            return _result(fetched)
        finally:
            with self._lock:
                del self._listeners[key]
            future.cancel()

    def _listen(self, heard: queue.SimpleQueue[Heard | None], needs: Needs, hear: Callable[[Heard], None]) -> None:
        seen = time.monotonic()
        while True:
            try:
                told = heard.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if any(worker.has(needs) for worker in self._workers()):
                    seen = time.monotonic()
                elif time.monotonic() - seen > _GONE_SECONDS:
                    raise InfrastructureError(f"no worker of {self._address} is left that has {_as_words(needs)}") from None
                continue
            if told is None:
                return
            hear(told)

    def _hear(self, event: tuple[float, Any]) -> None:
        key, told = event[1]
        with self._lock:
            listener = self._listeners.get(key)
        if listener:
            listener.put(msgspec.convert(told, Heard))

    def _workers(self) -> list[Worker]:
        """As they were a moment ago: there may be many who ask."""
        with self._looking:
            if not self._seen or time.monotonic() - self._looked > _LOOK_SECONDS / 2:
                try:
                    known = self._client.scheduler_info(n_workers=-1)["workers"]  # some versions tell of five otherwise
                except (OSError, KeyError) as error:
                    raise InfrastructureError(f"the Dask scheduler at {self._address} is gone") from error
                self._seen = [Worker(address, told["nthreads"], told["resources"]) for address, told in known.items()]
                self._looked = time.monotonic()
            return self._seen


def _perform(wanted: Errand, key: str) -> Done:
    """On the worker, in a thread."""
    worker = distributed.get_worker()

    def is_wanted() -> bool:
        # Whether its client cancels it, goes away or is killed: the scheduler tells the worker.
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status in _AT_WORK

    def tell(heard: Heard) -> None:
        worker.log_event(_TOPIC, (key, msgspec.to_builtins(heard, builtin_types=(bytes,))))

    try:
        return errand.run(wanted, tell, is_wanted)
    except errand.Unwanted as error:
        # If it is the worker that ends, another one is to do it.
        raise distributed.Reschedule from error


_AT_WORK = (distributed.Status.running, distributed.Status.paused, distributed.Status.closing_gracefully)


def _result(fetched: futures.Future[Done]) -> Done:
    try:
        return fetched.result()
    except (InfrastructureError, distributed.KilledWorker):
        raise
    except (distributed.CancelledError, CommClosedError) as error:
        raise InfrastructureError("the Dask scheduler is gone") from error
    except Exception as error:
        # It is one errand's: the others go on.
        raise InfrastructureError(f"on its worker: {type(error).__name__}: {error}") from error


def _as_words(needs: Needs) -> str:
    return " ".join(f"{name}={amount:g}" for name, amount in needs.items())
