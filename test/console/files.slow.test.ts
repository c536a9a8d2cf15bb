/** The files of a delegation in the console, and texts in Markdown. Needs a build. */
import { readFile } from "node:fs/promises";
import type { Download, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView, tick } from "../support/browser.ts";
import { fileCalls, startFileBroker } from "../support/files.ts";
import { until } from "../support/until.ts";
import { PIXEL, setLongTalk } from "./scene.ts";

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
}

const LINES = 9_000;
const line = (n: number) => `2026-01-01 INFO request ${n}\n`;
const log = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => line(from + n)).join("");
const DIFF = "--- a\n+++ b\n@@ -1 +1 @@\n-wait(1)\n+until(done)\n";
const CSV = `name,"city, country"\n"said ""hi""\nand left",Bonn\n${"x,y\n".repeat(80)}`;

describe.skipIf(SKIP)("in Chromium", () => {
  test("a file that the broker stores beside the message is downloaded with the session", async () => {
    const { url } = await startFileBroker();
    const api = client(url);
    await api.agent("scout");
    const content = "0123456789".repeat(50_000);
    const { url: part } = (await fileCalls(url).upload(content)).body;
    const { id } = (await api.delegate("scout")).body;
    const [{ lease_id: lease }] = (await api.lease("scout")).body.leases;
    const artifact = { artifactId: "log", parts: [{ url: part, filename: "run.log" }] };
    await api.call("POST", `/v1/leases/${lease}/artifacts`, { artifact });
    const { page } = await openTab(url);
    await signIn(page);
    await showView(page, `#/live?tab=artifacts&open=${id}`);
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download run.log" }).click(),
    ]);
    expect(saved.suggestedFilename()).toBe("run.log");
    expect(await readFile(await saved.path(), "utf8")).toBe(content);
    await page.locator(".stored-file small", { hasText: "500.0 kB" }).waitFor();
    if (process.env.LOOK) await page.screenshot({ path: process.env.LOOK });
  });

  test("files are a list: each can be copied and downloaded, and a long one is folded", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const input = { raw: Buffer.from(CSV).toString("base64"), mediaType: "text/csv", filename: "../in.csv" };
    const message = { parts: [{ text: "Compare" }, input] };
    const { id } = (await api.delegate("scout", { message })).body;
    const [{ lease_id: lease }] = (await api.lease("scout", { lease_seconds: 900 })).body.leases;
    const send = async (name: string, part: Record<string, unknown>, append = false) => {
      const artifact = { artifactId: name, name, parts: [part] };
      const { status } = await api.call("POST", `/v1/leases/${lease}/artifacts`, { artifact, append });
      expect(status).toBe(200);
    };
    // Two of the parts end within a line.
    const whole = log(0, LINES);
    await send("run.log", { text: whole.slice(0, 100_010), mediaType: "text/plain" });
    await send("run.log", { text: whole.slice(100_010, 200_005), mediaType: "text/plain" }, true);
    await send("run.log", { text: whole.slice(200_005), mediaType: "text/plain" }, true);
    await send("table.csv", { text: CSV, mediaType: "text/csv" });
    await send("fix.diff", { text: DIFF });
    await send("pixel.png", { raw: PIXEL, mediaType: "image/png" });
    await send("broken.png", { raw: "AAAA", mediaType: "image/png" });
    await send("words.json", { data: { words: [1, { two: 2 }] } });
    const { page, context } = await openTab(url);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await signIn(page);
    // As older links have it.
    await showView(page, `#/live?tab=artifacts&open=${id}`);
    await page.locator(".tabs [aria-current]", { hasText: /^Files 7$/ }).waitFor();
    const file = (name: string) =>
      page.locator(".file-row", { has: page.getByRole("button", { name, exact: true }) });
    const open = (name: string) => page.getByRole("button", { name, exact: true }).click();
    const downloaded = async (name: string): Promise<readonly [Download, Buffer]> => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Download ${name}` }).click(),
      ]);
      return [download, await readFile(await download.path())];
    };
    await file("run.log")
      .locator(".file-facts", { hasText: /^text · \d+\.\d kB · 3 parts · .*ago$/ })
      .waitFor();
    expect(await page.locator(".preview").count()).toBe(0);

    await open("run.log");
    const text = file("run.log").locator("pre");
    expect((await text.textContent())?.split("\n").length).toBe(30);
    expect(await text.evaluate((one) => getComputedStyle(one).fontFamily)).toContain("mono");
    const height = async () => (await file("run.log").boundingBox())?.height ?? 0;
    expect(await height()).toBeLessThan(800);
    await page.getByRole("button", { name: `Show all ${LINES.toLocaleString("en")} lines` }).click();
    await until(async () => `${await text.textContent()}\n` === whole);
    // In a place of its own: the other files stay near.
    expect(await height()).toBeLessThan(800);
    await page.getByRole("button", { name: "Copy run.log" }).click();
    await page.getByRole("button", { name: "Copied run.log" }).waitFor();
    expect((await page.evaluate<string>("navigator.clipboard.readText()")).length).toBe(whole.length);
    expect(String((await downloaded("run.log"))[1])).toBe(whole);
    await open("run.log");

    await open("fix.diff");
    const added = file("fix.diff").locator(".added");
    expect(await added.textContent()).toBe("+until(done)\n");
    const colour = (one: Element) => getComputedStyle(one).backgroundColor;
    expect(await added.evaluate(colour)).not.toBe(
      await file("fix.diff").locator(".removed").evaluate(colour),
    );
    await open("table.csv");
    const cells = file("table.csv").locator("tr").nth(1).locator("td");
    expect(await cells.allTextContents()).toEqual(['said "hi"\nand left', "Bonn"]);
    expect(await file("table.csv").locator("tr").count()).toBe(51);
    await file("table.csv").getByText("31 more rows in the download.").waitFor();
    await open("pixel.png");
    const picture = file("pixel.png").getByRole("img");
    await until(() => picture.evaluate((one) => one instanceof HTMLImageElement && one.naturalWidth === 1));
    expect((await downloaded("pixel.png"))[1].toString("base64")).toBe(PIXEL);
    await open("broken.png");
    await file("broken.png").getByText("The browser cannot draw this picture.").waitFor();
    await open("words.json");
    await file("words.json").locator("pre", { hasText: '"two": 2' }).waitFor();
    expect(JSON.parse(String((await downloaded("words.json"))[1]))).toEqual({ words: [1, { two: 2 }] });

    // What came with the task is there, too.
    const given = page.getByRole("region", { name: "With the task, from operator" });
    const [csv, bytes] = await downloaded("../in.csv");
    expect([csv.suggestedFilename(), String(bytes)]).toEqual(["in.csv", CSV]);
    // A further file changes nothing of what is open.
    await send("last.txt", { text: "The end." });
    await file("last.txt").waitFor();
    expect(await page.locator(".preview").count()).toBe(5);
    expect(await given.locator(".file-row").count()).toBe(1);
  });

  test("Markdown is formatted, until the reader wants it as written; the next page knows", async () => {
    const { url } = await startBroker();
    const id = await setLongTalk(url);
    await client(url).message(id, "It is **bold**: https://wiki.example/a");
    const { page } = await openTab(url);
    await signIn(page);
    await showView(page, `#/live?open=${id}`);
    const bold = page.locator(".conversation strong", { hasText: "bold" });
    await bold.waitFor();
    const link = page.locator(".conversation").getByRole("link", { name: "https://wiki.example/a" });
    expect(await link.getAttribute("rel")).toBe("noreferrer noopener");
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("button", { name: "notes.md", exact: true }).click();
    await page.locator(".preview strong", { hasText: "two" }).waitFor();
    await page.locator(".tools-menu summary").click();
    await tick(page.getByLabel("Format Markdown"), false);
    await page.locator(".preview pre", { hasText: "- **two** causes" }).waitFor();
    await page.reload();
    await showView(page, `#/live?open=${id}`);
    await link.waitFor();
    await page.getByText("It is **bold**").waitFor();
    expect(await bold.count()).toBe(0);
    await page.locator(".tools-menu summary").click();
    await tick(page.getByLabel("Format Markdown"));
    await bold.waitFor();
  });
});
