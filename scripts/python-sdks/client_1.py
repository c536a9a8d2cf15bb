"""Checks a broker with the client of the official Python A2A SDK 1.x, which also speaks 0.3. scripts/python-sdks.mjs
starts it.
"""
import asyncio
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import MethodNotFoundError, TaskNotCancelableError, TaskNotFoundError
from checks import BASE, HEADERS, PUSH_URL, REST_STATUSES_0_3, Checks, Seen, expect

ENDED = ("completed", "failed", "canceled", "rejected")
ERRORS = {TaskNotFoundError: "TaskNotFound", TaskNotCancelableError: "TaskNotCancelable"}
# The merged card, and that of 0.3 alone, with which this SDK speaks 0.3.
CARDS = {"1.0": None, "0.3": "cards/0.3.json"}


def text_of(artifacts):
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


def state_of(status):
    return pb.TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()


def seen(task):
    return Seen(task.id, state_of(task.status), text_of(task.artifacts))


def seen_event(event):
    kind = event.WhichOneof("payload")
    if kind == "task":
        return seen(event.task)
    if kind == "artifact_update":
        return Seen(event.artifact_update.task_id, None, text_of([event.artifact_update.artifact]))
    if kind == "status_update":
        state = state_of(event.status_update.status)
        return Seen(event.status_update.task_id, state, is_end=state in ENDED)
    raise ValueError(f"an event with {kind}")


def request(text, **configuration):
    message = pb.Message(role=pb.ROLE_USER, message_id=str(uuid.uuid4()), parts=[pb.Part(text=text)])
    return pb.SendMessageRequest(message=message, configuration=pb.SendMessageConfiguration(**configuration))


class Client:
    reads_extended_card = True

    def __init__(self, http, card, version, binding):
        self.has_only_status = version == "0.3" and binding == "HTTP+JSON"

        def create(streaming):
            config = ClientConfig(
                httpx_client=http,
                supported_protocol_bindings=[binding],
                use_client_preference=True,
                streaming=streaming,
            )
            return ClientFactory(config).create(card)

        self.plain, self.streaming = create(False), create(True)

    async def send(self, text, at_once=False):
        events = self.plain.send_message(request(text, return_immediately=at_once))
        [event] = [one async for one in events]
        return seen_event(event)

    async def stream(self, text):
        async for event in self.streaming.send_message(request(text)):
            yield seen_event(event)

    async def resubscribe(self, task_id):
        async for event in self.streaming.subscribe(pb.SubscribeToTaskRequest(id=task_id)):
            yield seen_event(event)

    async def get(self, task_id):
        return seen(await self.plain.get_task(pb.GetTaskRequest(id=task_id)))

    async def cancel(self, task_id):
        return seen(await self.plain.cancel_task(pb.CancelTaskRequest(id=task_id)))

    async def set_push(self, task_id):
        config = pb.TaskPushNotificationConfig(task_id=task_id, id="mine", url=PUSH_URL, token="secret")
        made = await self.plain.create_task_push_notification_config(config)
        expect("the task", made.task_id, task_id)

    async def get_push(self, task_id):
        wanted = pb.GetTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
        config = await self.plain.get_task_push_notification_config(wanted)
        return config.id, config.url, config.token

    async def extended_card_name(self):
        return (await self.plain.get_extended_agent_card(pb.GetExtendedAgentCardRequest())).name

    def name_of(self, error, is_stream):
        """Over HTTP+JSON 0.3 this SDK calls each 404 MethodNotFound, and keeps the response as the cause."""
        if self.has_only_status and type(error) in (MethodNotFoundError, A2AClientError):
            return REST_STATUSES_0_3.get(error.__cause__.response.status_code)
        return ERRORS.get(type(error))


async def main():
    checks = Checks()
    for version, path in CARDS.items():
        # One for each version: the factory keeps the version's header in it.
        async with httpx.AsyncClient(headers=HEADERS, timeout=90) as http:
            resolver = A2ACardResolver(http, BASE)
            card = await checks.run(f"{version}: card", resolver.get_agent_card(relative_card_path=path))
            if card is not None:
                for binding in ("JSONRPC", "HTTP+JSON"):
                    await checks.binding(f"{version}, {binding}", Client(http, card, version, binding))
    checks.end()


asyncio.run(main())
