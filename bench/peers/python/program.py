"""The line protocol of bench/peers/program.ts, the clock, and the loops that every Python peer
measures with.

A peer makes a Work (what it launches, how it waits) and calls serve(work, versions). Where its
library is missing it says so and ends.
"""

import json
import os
import sys
import threading
import time


def now():
    """Microseconds."""
    return time.perf_counter_ns() / 1e3


def say(**reply):
    print(json.dumps(reply), flush=True)


def absent(reason):
    say(absent=str(reason))
    sys.exit(0)


class Work:
    """What a peer does. `launch(n)` queues the kernel, which counts where n is negative and does
    nothing otherwise."""

    def launch(self, n):
        raise NotImplementedError

    def launches(self, count, n):
        for _ in range(count):
            self.launch(n)

    def sync(self):
        raise NotImplementedError

    def reset(self):
        raise NotImplementedError

    def counted(self):
        raise NotImplementedError

    def load(self, path, name):
        """Loads the PTX file `path` until its kernel `name` can be launched; runs on a thread of
        its own."""
        raise NotImplementedError

    def allocate_and_free(self, size):
        """Makes and releases a buffer of `size` bytes; runs on a thread of its own."""
        raise NotImplementedError


def warm(work, count):
    """Launches `count` kernels that count, and checks the count. Also the warm-up."""
    work.reset()
    work.launches(count, -1)
    work.sync()
    value = work.counted()
    if value != count:
        raise RuntimeError(f"the counter is {value}, not {count}")


def enqueue(work, samples, burst):
    """µs of this thread per launch"""
    warm(work, 2000)
    result = []
    for _ in range(int(samples)):
        start = now()
        work.launches(int(burst), 5)
        end = now()
        work.sync()
        result.append((end - start) / int(burst))
    return {"samples": result}


def throughput(work, samples, count):
    """µs per launch until all are done"""
    warm(work, 2000)
    result = []
    for _ in range(int(samples)):
        start = now()
        work.launches(int(count), 5)
        work.sync()
        result.append((now() - start) / int(count))
    return {"samples": result}


def launch_and_wait(work, samples):
    """µs from a launch to its end"""
    warm(work, 1000)
    result = []
    for _ in range(200 + int(samples)):
        start = now()
        work.launch(5)
        work.sync()
        result.append(now() - start)
    return {"samples": result[200:]}


def meanwhile(work, task, least_ms):
    """Launches and waits, back to back, while `task(stop)` runs on a thread, and for at least
    `least_ms`.

    Returns µs from each launch to its end, and µs between the ends.
    """
    warm(work, 1000)
    for _ in range(500):
        work.launch(5)
        work.sync()
    stop = threading.Event()
    failure = []

    def run():
        try:
            task(stop)
        except Exception as error:
            failure.append(error)

    times = []
    gaps = []
    thread = threading.Thread(target=run)
    first = last = now()
    thread.start()
    while thread.is_alive():
        start = now()
        work.launch(5)
        work.sync()
        end = now()
        times.append(end - start)
        gaps.append(end - last)
        last = end
        if end - first > least_ms * 1e3:
            stop.set()
    thread.join()
    if failure:
        raise failure[0]
    return times, gaps


def loading(work, folder, name):
    """ms between the ends of back-to-back launches while a module of `folder`, used once, is loaded
    on another thread"""
    path = os.path.join(folder, sorted(os.listdir(folder))[0])
    took = []

    def task(_stop):
        start = now()
        work.load(path, name)
        took.append((now() - start) / 1e3)

    _, gaps = meanwhile(work, task, 0)
    os.remove(path)
    return {
        "samples": [g / 1e3 for g in gaps],
        "notes": {"load ms": took[0], "gaps above 1 ms": sum(g > 1e3 for g in gaps)},
    }


def allocating(work, ms, *sizes):
    """µs from a launch to its end while buffers are made and released on another thread"""
    made = [0]

    def task(stop):
        while not stop.is_set():
            for size in sizes:
                work.allocate_and_free(int(size))
                made[0] += 1

    times, _ = meanwhile(work, task, int(ms))
    return {"samples": times, "notes": {"buffers": made[0]}}


MEASUREMENTS = {
    "enqueue": enqueue,
    "throughput": throughput,
    "await": launch_and_wait,
    "loading": loading,
    "allocating": allocating,
}


def serve(work, versions, measurements=MEASUREMENTS):
    say(ready=True, versions={**versions, "python": sys.version.split()[0]})
    for line in sys.stdin:
        name, *args = line.split()
        try:
            reply = measurements[name](work, *args)
            reply["samples"] = [round(value, 5) for value in reply["samples"]]
            say(**reply)
        except Exception as error:
            say(error=f"{type(error).__name__}: {error}")
