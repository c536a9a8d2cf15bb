import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { until } from "../support/until.ts";

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  await api.agent("scout");
  const open = () => {
    const socket = connect(broker.gateway.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    const send = (method: string, path: string, body?: unknown) => {
      const json = body === undefined ? "" : JSON.stringify(body);
      const head = [`${method} ${path} HTTP/1.1`, "host: localhost", `authorization: Bearer ${OPERATOR}`];
      if (body !== undefined) head.push("content-type: application/json", `content-length: ${json.length}`);
      socket.write(`${head.join("\r\n")}\r\n\r\n${json}`);
    };
    return { socket, send, text: () => text };
  };
  return { ...broker, api, open };
}

test("HEAD is answered by the head alone, and the connection goes on", async () => {
  const { open } = await setup();
  const { send, text } = open();
  send("HEAD", "/v1/agents");
  await until(() => text().includes("\r\n\r\n"));
  expect(text()).toMatch(/^HTTP\/1\.1 200 /);
  expect(text()).not.toContain("scout");
  send("GET", "/v1/agents/scout");
  await until(() => text().includes('"name":"scout"'));
});

test("a poll that waits behind another request on its connection keeps what it was given", async () => {
  const { api, open, gateway } = await setup();
  const first = (await api.delegate("scout")).body.id;
  const [held] = (await api.lease("scout")).body.leases;
  const { send, text } = open();
  send("GET", `/v1/delegations/${first}?wait_seconds=20`);
  send("POST", "/v1/agents/scout/leases", { wait_seconds: 20 });
  await until(() => gateway.broker.claimers.parked() === 1);
  const second = (await api.delegate("scout")).body.id;
  await until(async () => (await api.get(second)).body.state === "working");
  await api.reply(held.lease_id);
  await until(() => text().includes('"lease_id"'));
  const lease = /"lease_id":"(\w+)"/.exec(text())?.[1] ?? "";
  expect((await api.heartbeat(lease)).status).toBe(200);
});

test("a poll behind another request whose client leaves takes nothing with it", async () => {
  const { api, open, gateway } = await setup();
  const first = (await api.delegate("scout")).body.id;
  await api.lease("scout");
  const { socket, send } = open();
  send("GET", `/v1/delegations/${first}?wait_seconds=20`);
  send("POST", "/v1/agents/scout/leases", { wait_seconds: 20 });
  await until(() => gateway.broker.claimers.parked() === 1);
  socket.destroy();
  await until(() => gateway.broker.claimers.parked() === 0);
  const second = (await api.delegate("scout")).body.id;
  const [lease] = (await api.lease("scout")).body.leases;
  expect([lease.delegation.id, lease.attempt]).toEqual([second, 1]);
});
