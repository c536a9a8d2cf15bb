/**
 * Takes the picture of the console that README shows, from a broker of its own. Not a test.
 * Usage: npm run build && node --import tsx test/console/picture.ts
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { CHROMIUM } from "../support/chromium.ts";
import { LONG, setScene } from "./scene.ts";

const PROGRAM = fileURLToPath(new URL("../../dist/errand.js", import.meta.url));
const PICTURE = fileURLToPath(new URL("../../docs/console.png", import.meta.url));
const MAX_BYTES = 200_000;

const folder = await mkdtemp(join(tmpdir(), "errand-picture-"));
const broker = spawn(process.execPath, [PROGRAM, "serve"], {
  cwd: folder,
  env: { ...process.env, ERRAND_PORT: "0" },
  stdio: ["ignore", "ignore", "pipe"],
});
try {
  const url = await new Promise<string>((resolve, reject) => {
    let log = "";
    broker.stderr.on("data", (chunk) => {
      log += chunk;
      const ready = /errand is ready at (\S+)/.exec(log)?.[1];
      if (ready !== undefined) resolve(ready);
    });
    broker.once("exit", () => reject(new Error(`the broker did not start: ${log}`)));
  });
  const token = (await readFile(join(folder, ".errand", "operator-token"), "utf8")).trim();
  const { api, ids } = await setScene(url, token);
  // It shows what happens to long texts, which are not what README is about.
  await api.cancel(ids.long ?? "");
  await api.call("DELETE", `/v1/agents/${LONG}`);
  await takePicture(`${url}/#/live?open=${ids.asking}`, token);
  const { size } = await stat(PICTURE);
  if (size > MAX_BYTES) throw new Error(`docs/console.png has ${size} bytes; the limit is ${MAX_BYTES}`);
  console.log(`docs/console.png: ${size} bytes`);
} finally {
  broker.kill("SIGTERM");
  await once(broker, "exit");
  await rm(folder, { recursive: true, force: true });
}

async function takePicture(address: string, token: string): Promise<void> {
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", chromiumSandbox: false });
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme: "light" });
  await page.addInitScript(
    (secret) => localStorage.setItem("errand-session", JSON.stringify({ id: "ses_picture", token: secret })),
    token,
  );
  await page.goto(address);
  await page.getByRole("button", { name: "Approve" }).first().waitFor();
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: PICTURE });
  await browser.close();
}
