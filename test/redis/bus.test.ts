/** The gateways' bus. What happens when its connection is lost is tested in faults/. */
import { expect, test } from "vitest";
import { startBroker } from "../support/broker.ts";
import { until } from "../support/until.ts";

test("gateways on different databases of one Redis do not hear each other", async () => {
  const mine = await startBroker();
  const foreign = await startBroker();
  const heard: string[] = [];
  await mine.gateway.broker.bus.subscribe("test", (message) => heard.push(message));
  await foreign.gateway.broker.bus.publish("test", "foreign");
  await mine.gateway.broker.bus.publish("test", "own");
  await until(() => heard.length > 0, { what: "the own message" });
  expect(heard).toEqual(["own"]);
});

test("gateways on one database hear each other", async () => {
  const { gateway, another } = await startBroker();
  const second = await another();
  const heard: string[] = [];
  await gateway.broker.bus.subscribe("test", (message) => heard.push(message));
  await second.gateway.broker.bus.publish("test", "from the other");
  await until(() => heard.length > 0, { what: "the message" });
  expect(heard).toEqual(["from the other"]);
});
