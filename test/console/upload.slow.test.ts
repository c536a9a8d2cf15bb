/** Files that Delegate uploads before it sends the task. Needs a build. */
import type { Page, Request } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { holdBack, openTab, SKIP, showView } from "../support/browser.ts";
import { fileCalls, sha256, startFileBroker } from "../support/files.ts";
import { until } from "../support/until.ts";

const LOST = /Failed to load resource|net::ERR_/;
/** Beyond one piece of an upload. */
const LOG = "0123456789".repeat(500_000);
const file = (name: string, content: string) => ({
  name,
  mimeType: "text/plain",
  buffer: Buffer.from(content),
});

async function openForm(url: string): Promise<Page> {
  await client(url).agent("scout");
  const { page } = await openTab(url, { expected: LOST });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
  await showView(page, "#/delegate?target=scout");
  await page.getByLabel("Task").fill("Read the log");
  return page;
}

async function delegated(url: string) {
  const { delegations } = (await client(url).call("GET", "/v1/delegations")).body;
  const ids: string[] = delegations.map(({ id }: { id: string }) => id);
  return Promise.all(ids.map(async (id) => (await client(url).get(id)).body));
}

const send = (page: Page) => page.getByRole("button", { name: "Delegate", exact: true }).click();

describe.skipIf(SKIP)("in Chromium", () => {
  test("a large file is uploaded, a small one goes in the message, and an upload can be stopped", async () => {
    const { url, stored, gateway } = await startFileBroker();
    const page = await openForm(url);
    await page.getByLabel("Files").setInputFiles([file("notes.txt", "Short"), file("run.log", LOG)]);
    // Stopped, nothing is delegated and the form is as it was.
    let pieces = 0;
    await page.route(/\/v1\/uploads\/[^/]+$/, async (route) => {
      if (route.request().method() !== "PATCH") return route.continue();
      pieces += 1;
      return pieces === 1 ? route.continue() : undefined;
    });
    await send(page);
    await page.getByRole("progressbar", { name: "Upload of run.log" }).waitFor();
    await page.locator(".chosen-files li", { hasText: "run.log" }).getByText("41 %").waitFor();
    await page.getByRole("button", { name: "Stop the upload" }).click();
    await page.locator("progress").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Delegate", exact: true, disabled: false }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await page.getByLabel("Task").inputValue()).toBe("Read the log");
    expect(await delegated(url)).toEqual([]);
    await until(async () => {
      await gateway.fileUpkeep.tick();
      return (await stored()).length === 0;
    });

    // A connection that breaks in between is no reason to begin again.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    let begun = 0;
    await page.route(/\/v1\/uploads/, (route) => {
      const method = route.request().method();
      if (method === "POST") begun += 1;
      if (method === "PATCH" && pieces++ === 3) return route.abort();
      return route.continue();
    });
    await send(page);
    await page.locator(".summary", { hasText: "Read the log" }).waitFor();
    expect(begun).toBe(1);
    const [{ message }] = await delegated(url);
    const [text, small, large] = message.parts;
    expect(text.text).toBe("Read the log");
    expect(small).toMatchObject({ filename: "notes.txt", raw: Buffer.from("Short").toString("base64") });
    expect(large).toMatchObject({ filename: "run.log", mediaType: "text/plain" });
    const { bytes } = await fileCalls(url).call("GET", large.url);
    expect(sha256(bytes)).toBe(sha256(LOG));
  });

  test("a lost answer is sent again without a second upload, also after a reload, and delegates once", async () => {
    const { url } = await startFileBroker();
    const page = await openForm(url);
    await page.getByLabel("Files").setInputFiles(file("run.log", LOG));
    let begun = 0;
    await page.route(/\/v1\/uploads$/, (route) => {
      begun += 1;
      return route.continue();
    });
    let isLost = false;
    await page.route(/\/v1\/delegations$/, async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      await route.fetch();
      isLost = true;
      return route.abort();
    });
    await send(page);
    await until(() => isLost);
    await page.getByRole("alert").waitFor();
    const again = async () => {
      isLost = false;
      await send(page);
      await until(() => isLost);
    };
    await again();
    expect(begun).toBe(1);
    await page.reload();
    await page.getByText("A reload of the page lost these files").waitFor();
    await page.getByLabel("Files").setInputFiles(file("run.log", LOG));
    await page.unroute(/\/v1\/delegations$/);
    await send(page);
    await page.locator(".summary", { hasText: "Read the log" }).waitFor();
    expect(await delegated(url)).toHaveLength(1);
  });

  test("what the broker does not take is said at the files, and one that was removed is not sent", async () => {
    const { url } = await startFileBroker({ maxBytes: 1_000_000 });
    const page = await openForm(url);
    const place = page.locator("form.delegate > div", { has: page.getByLabel("Files") });
    await page.getByLabel("Files").setInputFiles(file("run.log", LOG));
    await send(page);
    await place.getByRole("alert").waitFor();
    expect(await delegated(url)).toEqual([]);
    // A file that is removed while it is on its way ends the sending.
    await page.getByRole("button", { name: "Remove run.log" }).click();
    await page.getByLabel("Files").setInputFiles(file("small.log", LOG.slice(0, 900_000)));
    const held = await holdBack(page, /\/v1\/uploads$/);
    await send(page);
    await page.getByRole("button", { name: "Stop the upload" }).waitFor();
    await page.getByRole("button", { name: "Remove small.log" }).click();
    held.release();
    await page.getByRole("button", { name: "Delegate", exact: true, disabled: false }).waitFor();
    expect(await delegated(url)).toEqual([]);
    await send(page);
    await page.locator(".summary", { hasText: "Read the log" }).waitFor();
    expect((await delegated(url))[0].message.parts).toHaveLength(1);
  });

  test("a file that is removed before its turn is not sent, and who stops keeps what is uploaded", async () => {
    const { url } = await startFileBroker();
    const page = await openForm(url);
    await page.getByLabel("Files").setInputFiles([file("run.log", LOG), file("own.log", `${LOG}.`)]);
    let begun = 0;
    await page.route(/\/v1\/uploads$/, (route) => {
      begun += 1;
      return route.continue();
    });
    const held = await holdBack(page, /\/v1\/uploads\/[^/]+$/);
    await send(page);
    await page.getByRole("progressbar", { name: "Upload of run.log" }).waitFor();
    await page.getByRole("button", { name: "Remove own.log" }).click();
    held.release();
    await page.getByRole("button", { name: "Delegate", exact: true, disabled: false }).waitFor();
    expect([begun, await delegated(url)]).toEqual([1, []]);
    // The first one is at the broker now.
    await page.getByLabel("Files").setInputFiles(file("own.log", `${LOG}.`));
    const heldAgain = await holdBack(page, /\/v1\/uploads\/[^/]+$/);
    await send(page);
    await page.getByRole("progressbar", { name: "Upload of own.log" }).waitFor();
    await page.getByRole("button", { name: "Stop the upload" }).click();
    heldAgain.release();
    await page.getByRole("button", { name: "Delegate", exact: true, disabled: false }).waitFor();
    await send(page);
    await page.locator(".summary", { hasText: "Read the log" }).waitFor();
    expect([begun, (await delegated(url))[0].message.parts.length]).toEqual([3, 3]);
  });

  test("what one person sends is not sent as another who signs in meanwhile", async () => {
    const { url } = await startFileBroker();
    const { token } = await as(url, "caller:ann");
    const page = await openForm(url);
    // One piece, so that only its answer is missing.
    await page.getByLabel("Files").setInputFiles(file("run.log", LOG.slice(0, 900_000)));
    let submits = 0;
    page.on("request", (one) => {
      if (one.method() === "POST" && one.url().endsWith("/v1/delegations")) submits += 1;
    });
    const over = new Promise<void>((resolve) => {
      const settle = (one: Request) => one.method() === "PATCH" && resolve();
      page.on("requestfinished", settle);
      page.on("requestfailed", settle);
    });
    const held = await holdBack(page, /\/v1\/uploads\/[^/]+$/);
    await send(page);
    await page.getByRole("button", { name: "Stop the upload" }).waitFor();
    await showView(page, "#/live");
    await page.locator(".account summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".account summary").waitFor();
    held.release();
    await over;
    await showView(page, "#/agents");
    expect([submits, await delegated(url)]).toEqual([0, []]);
  });

  test("where the broker stores no files, they go in the message as far as it takes them", async () => {
    const { url } = await startBroker();
    const page = await openForm(url);
    await page.getByLabel("Files").setInputFiles(file("run.log", LOG.slice(0, 500_000)));
    await send(page);
    await page.locator(".summary", { hasText: "Read the log" }).waitFor();
    const [{ message }] = await delegated(url);
    expect(Buffer.from(message.parts[1].raw, "base64")).toHaveLength(500_000);
  });
});
