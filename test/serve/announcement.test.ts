/** Who is taken for the running gateway of a data directory. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { announce, findRunningGateway } from "../../src/serve/announcement.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { freshDir } from "../support/program.ts";

async function listening(): Promise<{ url: string; port: number; close: () => Promise<void> }> {
  const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const close = async () => {
    server.close();
    await once(server, "close");
  };
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${port}`, port, close };
}

test("a process that only has the id of a gateway that crashed is none, and the new gateway is announced", async () => {
  const dataDir = freshDir();
  const other = spawn("sleep", ["600"], { stdio: "ignore" });
  onTestFinished(() => void other.kill("SIGKILL"));
  const { url, port, close } = await listening();
  const left = { url, port, pid: other.pid };
  await writeFile(join(dataDir, "gateway.json"), JSON.stringify(left));
  expect(await findRunningGateway(dataDir)).toEqual(left);
  await close();
  expect(await findRunningGateway(dataDir)).toBeNull();

  const own = await listening();
  const announced = await announce(
    dataDir,
    own,
    createLog("silent", () => undefined),
  );
  onTestFinished(() => announced.withdraw());
  expect(announced).toMatchObject({ isFound: true, other: null });
  const { url: found } = JSON.parse(await readFile(join(dataDir, "gateway.json"), "utf8"));
  expect(found).toBe(own.url);
});
