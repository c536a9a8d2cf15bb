"""Checks a broker with the client of the official Python A2A SDK 0.3. scripts/python-sdks.mjs starts it."""
import asyncio
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
    TransportProtocol,
)
from checks import BASE, HEADERS, PUSH_URL, REST_STATUSES_0_3, UNNAMED, Checks, Seen, expect

RPC_CODES = {-32001: "TaskNotFound", -32002: "TaskNotCancelable"}


def text_of(artifacts):
    return "".join(part.root.text for artifact in artifacts or [] for part in artifact.parts)


def seen(task):
    return Seen(task.id, task.status.state.value, text_of(task.artifacts))


def seen_event(event):
    task, update = event
    if update is None:
        return seen(task)
    if isinstance(update, TaskArtifactUpdateEvent):
        return Seen(update.task_id, None, text_of([update.artifact]))
    return Seen(update.task_id, update.status.state.value, is_end=update.final)


def message(text):
    return Message(role=Role.user, message_id=str(uuid.uuid4()), parts=[Part(root=TextPart(text=text))])


class Client:
    def __init__(self, http, card, transport):
        def create(**more):
            config = ClientConfig(
                httpx_client=http, supported_transports=[transport], use_client_preference=True, **more
            )
            return ClientFactory(config).create(card)

        self.is_rpc = transport == TransportProtocol.jsonrpc
        # Over HTTP+JSON this SDK expects `security` in another form than the JavaScript SDK, and the broker sends that
        # one's; see docs/a2a.md.
        self.reads_extended_card = self.is_rpc
        self.plain, self.streaming = create(streaming=False), create(streaming=True)
        self.polling = create(streaming=False, polling=True)

    async def send(self, text, at_once=False):
        client = self.polling if at_once else self.plain
        [event] = [one async for one in client.send_message(message(text))]
        return seen_event(event)

    async def stream(self, text):
        async for event in self.streaming.send_message(message(text)):
            yield seen_event(event)

    async def resubscribe(self, task_id):
        async for event in self.streaming.resubscribe(TaskIdParams(id=task_id)):
            yield seen_event(event)

    async def get(self, task_id):
        return seen(await self.plain.get_task(TaskQueryParams(id=task_id)))

    async def cancel(self, task_id):
        return seen(await self.plain.cancel_task(TaskIdParams(id=task_id)))

    async def set_push(self, task_id):
        config = PushNotificationConfig(id="mine", url=PUSH_URL, token="secret")
        request = TaskPushNotificationConfig(task_id=task_id, push_notification_config=config)
        expect("the task", (await self.plain.set_task_callback(request)).task_id, task_id)

    async def get_push(self, task_id):
        request = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id="mine")
        config = (await self.plain.get_task_callback(request)).push_notification_config
        return config.id, config.url, config.token

    async def extended_card_name(self):
        return (await self.plain.get_card()).name

    def name_of(self, error, is_stream):
        if isinstance(error, A2AClientJSONRPCError):
            return RPC_CODES.get(error.error.code)
        if self.is_rpc or not isinstance(error, A2AClientHTTPError):
            return None
        # Over HTTP+JSON this SDK has only the status, and for a stream not even that.
        return UNNAMED if is_stream else REST_STATUSES_0_3.get(error.status_code)


async def main():
    checks = Checks()
    async with httpx.AsyncClient(headers=HEADERS, timeout=90) as http:
        card = await checks.run("card", A2ACardResolver(http, BASE).get_agent_card())
        if card is not None:
            for transport in (TransportProtocol.jsonrpc, TransportProtocol.http_json):
                await checks.binding(transport.value, Client(http, card, transport))
    checks.end()


asyncio.run(main())
