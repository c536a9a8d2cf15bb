/** Connections beyond what all gateways of a supervisor take. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { bundled } from "../support/bundled.ts";

const PROGRAM = new URL("../support/child-dealt.mjs", import.meta.url);

test("when all gateways are full, a further connection is closed, and one is served again when there is room", async () => {
  const supervisor = fork(await bundled(PROGRAM), { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  onTestFinished(() => void supervisor.kill("SIGKILL"));
  const [{ port }] = await once(supervisor, "message");
  const open = () => {
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const end = new Promise<string>((resolve) => socket.once("close", () => resolve("closed")));
    const answer = new Promise<string>((resolve) => {
      socket.once("data", (data) => resolve(String(data).split("\r\n\r\n")[1] ?? ""));
    });
    return { socket, end, outcome: Promise.race([answer, end]) };
  };
  const served = [open(), open()];
  expect(await Promise.all(served.map(({ outcome }) => outcome))).toEqual(["served", "served"]);
  expect(await open().outcome).toBe("closed");
  for (const { socket, end } of served) {
    socket.destroy();
    await end;
  }
  // The gateways learn of the ends in their own time.
  let last = "";
  while (last !== "served") last = await open().outcome;
}, 60_000);
