/**
 * Pictures of every view, for a human to look at: light, dark and phone; empty, few and many. Not a test.
 * Usage: node --import tsx test/console/look.ts URL OPERATOR_TOKEN [NAME ...]
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { CHROMIUM } from "../support/chromium.ts";
import { setCrowd, setLongTalk, setQuestions, setScene } from "./scene.ts";

const OUT = fileURLToPath(new URL("../../.look/", import.meta.url));
const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
const LOOKS = [
  { name: "light", viewport: WIDE, colorScheme: "light" },
  { name: "dark", viewport: WIDE, colorScheme: "dark" },
  { name: "phone", viewport: PHONE, colorScheme: "light" },
] as const;

const [url = "", token = "", ...only] = process.argv.slice(2);
mkdirSync(OUT, { recursive: true });
const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", chromiumSandbox: false });

async function shoot(scene: string, views: Record<string, string>): Promise<void> {
  for (const look of LOOKS) {
    const context = await browser.newContext({ viewport: look.viewport, colorScheme: look.colorScheme });
    const page = await context.newPage();
    page.on("console", (message) => console.log(`${scene} ${look.name}: ${message.text()}`));
    page.on("pageerror", (error) => console.log(`${scene} ${look.name}: ${error.stack}`));
    if (scene === "empty") {
      await page.goto(`${url}/`);
      await page.getByRole("button", { name: "Sign in" }).waitFor();
      await page.screenshot({ path: join(OUT, `sign-in-${look.name}.png`) });
    }
    await page.addInitScript(
      (secret) => localStorage.setItem("errand-session", JSON.stringify({ id: "ses_look", token: secret })),
      token,
    );
    for (const [name, hash] of Object.entries(views)) {
      if (only.length > 0 && !only.includes(name)) continue;
      await page.goto(`${url}/${hash}`);
      await page.reload();
      await page.locator("h1:visible").first().waitFor();
      await page.waitForFunction(
        () =>
          document.querySelector(".loading") === null &&
          !document.querySelector("#live-title small")?.textContent?.includes("so far"),
      );
      await page.waitForTimeout(1200);
      await page.screenshot({ path: join(OUT, `${scene}-${name}-${look.name}.png`) });
    }
    await context.close();
  }
}

const VIEWS = {
  live: "#/live",
  needs: "#/needs",
  answered: "#/answered",
  find: "#/find",
  agents: "#/agents",
  charts: "#/charts",
  delegate: "#/delegate",
};
await shoot("empty", VIEWS);
const { api, ids } = await setScene(url, token);
await shoot("few", {
  ...VIEWS,
  agent: "#/agents?name=coder",
  tokens: "#/agents?part=tokens",
  log: "#/agents?part=log",
  working: `#/live?open=${ids.working}`,
  asking: `#/live?open=${ids.asking}`,
  completed: `#/live?open=${ids.completed}`,
  failed: `#/live?open=${ids.failed}`,
  artifacts: `#/live?tab=artifacts&open=${ids.completed}`,
  timeline: `#/live?tab=timeline&open=${ids.working}`,
  raw: `#/live?tab=raw&open=${ids.working}`,
});
await setCrowd(url, 2000, token);
await setQuestions(url, 120, token);
for (let n = 0; n < 1_000; n += 1) await api.agent(`agent-${String(n).padStart(4, "0")}`);
for (let n = 0; n < 300; n += 1) await api.call("POST", "/v1/tokens", { principal: `caller:person-${n}` });
for (const agent of ["coder", "scout"]) {
  const { body } = await api.lease(agent, { max: 8, lease_seconds: 900, worker_id: `${agent}-worker-2` });
  for (const [index, { lease_id }] of body.leases.entries())
    await api.heartbeat(lease_id, { progress: { done: index, total: 8, current_step: "reading" } });
}
const talk = await setLongTalk(url, token);
await shoot("many", {
  live: "#/live",
  needs: "#/needs",
  answered: "#/answered",
  find: "#/find?state=live",
  agents: "#/agents",
  agent: "#/agents?name=coder",
  tokens: "#/agents?part=tokens",
  log: "#/agents?part=log",
  charts: "#/charts",
  conversation: `#/live?open=${talk}`,
  artifacts: `#/live?tab=artifacts&open=${talk}`,
  timeline: `#/live?tab=timeline&open=${talk}`,
});
await browser.close();
