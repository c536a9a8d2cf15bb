"""The checks that the clients of all SDK versions make over each binding, with one printed line for each.

The agent holds the text "wait" until it is canceled, and answers "echo: " and any other text. A client shows everything
that it receives as Seen, and the SDK's errors by the name that the specification gives them.
"""
import asyncio
import os
import sys
from typing import NamedTuple

BASE = os.environ["ERRAND_AGENT_URL"]
HEADERS = {"Authorization": "Bearer " + os.environ["ERRAND_TOKEN"]}
PUSH_URL = os.environ["ERRAND_PUSH_URL"]
LABEL = os.environ["ERRAND_SDK_LABEL"]
# Longer than a check needs on a busy machine, and shorter than the broker holds a blocking send.
WITHIN_SECONDS = 30
UNKNOWN = "dlg_unknown"

# 0.3 gives an error over HTTP+JSON no name. The status of TaskNotCancelable is that of the JavaScript SDK's server; the
# Python SDK's has 409.
REST_STATUSES_0_3 = {404: "TaskNotFound", 400: "TaskNotCancelable"}
# An error whose code the SDK drops.
UNNAMED = "an error without a name"


class Seen(NamedTuple):
    """A task or an update of it. `state` is None for an update that has none."""

    task_id: str
    state: "str | None"
    text: str = ""
    is_end: bool = False


class Wrong(Exception):
    """The SDK understood the answer, but the answer is not the right one."""


def expect(what, got, wanted):
    if got != wanted:
        raise Wrong(f"{what} is {got!r}, expected {wanted!r}")


class Checks:
    def __init__(self):
        self.failed = 0

    async def run(self, name, work):
        """Returns what the check returns, or None after a failure, so that other checks still run."""
        try:
            result = await asyncio.wait_for(work, WITHIN_SECONDS)
        except asyncio.TimeoutError:
            return self.fail(name, f"no end within {WITHIN_SECONDS} s")
        except Exception as error:
            return self.fail(name, f"{type(error).__name__}: {error}")
        print(f"ok    {LABEL}, {name}", flush=True)
        return result

    def fail(self, name, why):
        self.failed += 1
        print(f"FAIL  {LABEL}, {name}: {' '.join(why.split())[:400]}", flush=True)

    async def binding(self, name, client):
        run = lambda what, work: self.run(f"{name}: {what}", work)
        finished = await run("send", send(client))
        await run("send, streaming", send_streaming(client))
        await run("a canceled stream ends", cancel_in(client, client.stream("wait")))
        task_id = await run("send, return at once", start(client))
        if finished is None or task_id is None:
            self.fail(name, "the checks that need these tasks were not run")
        else:
            await run("get", get(client, finished))
            await run("set push config", client.set_push(task_id))
            await run("get push config", get_push(client, task_id))
            await run("cancel a resubscribed task", cancel_in(client, client.resubscribe(task_id)))
            await run("cancel a finished task", refused(client, client.cancel(finished), "TaskNotCancelable"))
        await run("get an unknown task", refused(client, client.get(UNKNOWN), "TaskNotFound"))
        await run("cancel an unknown task", refused(client, client.cancel(UNKNOWN), "TaskNotFound"))
        unknown = last_of(client.resubscribe(UNKNOWN))
        await run("resubscribe to an unknown task", refused(client, unknown, "TaskNotFound", is_stream=True))
        if client.reads_extended_card:
            await run("extended card", extended_card(client))

    def end(self):
        sys.exit(1 if self.failed else 0)


async def send(client):
    task = await client.send("hi")
    expect("the state", task.state, "completed")
    expect("the answer", task.text, "echo: hi")
    return task.task_id


async def send_streaming(client):
    seen = [one async for one in client.stream("hi")]
    expect("the number of tasks", len({one.task_id for one in seen}), 1)
    expect("whether an event has the answer", any(one.text == "echo: hi" for one in seen), True)
    expect_end(seen, "completed")


async def start(client):
    task = await client.send("wait", at_once=True)
    expect("whether the task runs", task.state in ("submitted", "working"), True)
    return task.task_id


async def get(client, task_id):
    task = await client.get(task_id)
    expect("the task", task[:3], (task_id, "completed", "echo: hi"))


async def get_push(client, task_id):
    expect("the config", await client.get_push(task_id), ("mine", PUSH_URL, "secret"))


async def cancel_in(client, stream):
    """Cancels a task after the first event of its stream, and reads the stream to its end."""
    seen = []
    async for one in stream:
        seen.append(one)
        if len(seen) == 1:
            expect("the state after the cancel", (await client.cancel(one.task_id)).state, "canceled")
    expect_end(seen, "canceled")


def expect_end(seen, state):
    """A client that waits for the end must not depend on the connection being closed."""
    expect("the number of events that say the end", sum(one.is_end for one in seen), 1)
    expect("the state of the last event", (seen[-1].state, seen[-1].is_end), (state, True))


async def last_of(stream):
    last = None
    async for one in stream:
        last = one
    return last


async def refused(client, call, wanted, is_stream=False):
    """The SDK must understand the error: one that it fails to read fails the check with its own name."""
    try:
        got = await call
    except Exception as error:
        name = client.name_of(error, is_stream)
        if name is None:
            raise
        if name != UNNAMED:
            expect("the error", name, wanted)
        return
    raise Wrong(f"the call succeeds with {got!r}, expected {wanted}")


async def extended_card(client):
    expect("the name", await client.extended_card_name(), "echo")
