/**
 * Takes the picture of the console that docs/console.md shows, from a broker of its own. Not a test.
 * Usage: npm run build && node --import tsx test/console/picture.ts
 */
import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { CHROMIUM } from "../support/chromium.ts";
import { signIn, withBroker } from "./own-broker.ts";
import { LONG, setScene } from "./scene.ts";

const PICTURE = fileURLToPath(new URL("../../docs/console.png", import.meta.url));
const MAX_BYTES = 200_000;

await withBroker(async (url, token) => {
  const { api, ids } = await setScene(url, token);
  // This delegation and its agent show how long texts are drawn, which a picture need not show.
  await api.cancel(ids.long ?? "");
  await api.call("DELETE", `/v1/agents/${LONG}`);

  const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", chromiumSandbox: false });
  const context = await browser.newContext({
    viewport: { width: 1280, height: 720 },
    colorScheme: "light",
  });
  await signIn(context, token);
  const page = await context.newPage();
  await page.goto(`${url}/#/live?open=${ids.asking}`);
  await page.getByRole("button", { name: "Approve" }).first().waitFor();
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: PICTURE });
  await browser.close();
});
const { size } = await stat(PICTURE);
if (size > MAX_BYTES) throw new Error(`docs/console.png has ${size} bytes; the limit is ${MAX_BYTES}`);
console.log(`docs/console.png: ${size} bytes`);
