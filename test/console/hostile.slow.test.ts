/** Text of strangers in the console: it is shown as text, nothing of it runs, and no view breaks. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, widerThanWindow } from "../support/browser.ts";

const RUN = "globalThis.ran=1";
const CORPUS = [
  `<script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<svg/onload=${RUN}>`,
  `"><iframe srcdoc="<script>parent.ran=1</script>">`,
  `javascript:${RUN}`,
  `[click](javascript:${RUN}) ![x](x" onerror="${RUN})`,
  `</textarea></pre></style><style>*{display:none}</style>`,
  `{{constructor.constructor('${RUN}')()}} \${${RUN}} &#60;script&#62;`,
  "\u001b[31mred\u001b[0m \u202egnp.exe\u202c \u2066isolate \u0000",
  `<javascript:${RUN}> <https://example.com/"onmouseover="${RUN}> [click][1] ![x](//example.com/x.png)`,
  `[click](java&#115;cript:${RUN}) [click](data:text/html,<script>${RUN}</script>) [mail](mailto:a@example.com)`,
  `<math><mtext><table><mglyph><style><img src=x onerror="${RUN}">`,
  `| a | <img src=x onerror=${RUN}> |\n| - | - |\n| \`<script>${RUN}</script>\` | [x](vbscript:${RUN}) |\n`,
  `# <svg><animate onbegin=${RUN} attributeName=x>\n- [ ] <form><input name=innerHTML>\n\n[1]: javascript:${RUN}`,
  "x".repeat(3000),
];
const ALL = CORPUS.join("\n").replaceAll("\u0000", "");

/** Takes the parser of Markdown some minutes. */
const ENDLESS = '__x="'.repeat(20_000);

async function fill(url: string) {
  const api = client(url);
  await api.agent("scout", { description: ALL.slice(0, 4000) });
  const parts = [
    { text: ALL },
    { text: ALL, mediaType: "text/html" },
    // Each a block of its own.
    { text: ALL.replaceAll("\n", "\n\n"), mediaType: "text/markdown" },
    { text: `-${ALL}\n+${ALL}`, mediaType: "text/x-diff" },
    { data: { [CORPUS[0] ?? ""]: ALL, nested: { [CORPUS[1] ?? ""]: [ALL] } } },
    { url: `javascript:${RUN}`, filename: CORPUS[1] },
    { url: `https://example.com/${encodeURIComponent(CORPUS[2] ?? "")}` },
    {
      raw: Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="${RUN}"/>`).toString("base64"),
      mediaType: "image/svg+xml",
      filename: CORPUS[1],
    },
    {
      raw: Buffer.from(CORPUS[0] ?? "").toString("base64"),
      mediaType: "text/html",
      filename: "../../x.html",
    },
    { raw: "not base64!", mediaType: "image/png" },
  ];
  const asking = (await api.delegate("scout", { message: { parts } })).body.id;
  const [{ lease_id: first }] = (await api.lease("scout", { worker_id: "<b>worker</b>" })).body.leases;
  await api.heartbeat(first, {
    progress: {
      message: ALL.slice(0, 4000),
      current_step: CORPUS[1],
      tools_used: CORPUS.slice(0, 5),
      done: 1,
      total: 2,
    },
  });
  await api.heartbeat(first, { progress: { message: CORPUS[2], done: 1 } });
  await api.message(asking, ALL);
  await api.call("POST", `/v1/leases/${first}/artifacts`, {
    artifact: { artifactId: CORPUS[0], name: CORPUS[1], description: ALL, parts },
  });
  const asked = await api.interrupt(first, {
    requests: [
      {
        request_id: CORPUS[1],
        message: { parts },
        options: [...CORPUS.slice(0, 8).map((one) => one.slice(0, 200)), { label: CORPUS[1] }],
      },
      {
        request_id: "act",
        text: ALL,
        action: { name: CORPUS[1]?.slice(0, 60), arguments: { [ALL.slice(0, 99)]: ALL } },
        edit: true,
      },
      {
        request_id: "form",
        text: ALL,
        schema: {
          type: "object",
          properties: {
            [CORPUS[1] ?? ""]: {
              type: "string",
              title: CORPUS[0],
              description: ALL,
              enum: CORPUS.slice(0, 3),
            },
          },
        },
      },
    ],
  });
  const failed = (await api.delegate("scout", { task: CORPUS[1], max_attempts: 1 })).body.id;
  const [{ lease_id: second }] = (await api.lease("scout")).body.leases;
  const error = { code: "hostile", message: ALL.slice(0, 4000) };
  const { status } = await api.reply(second, { state: "failed", text: undefined, message: { parts }, error });
  expect(status).toBe(200);
  const canceled = (await api.delegate("scout", { task: CORPUS[3] })).body.id;
  const [{ lease_id: third }] = (await api.lease("scout", { worker_id: CORPUS[0]?.slice(0, 60) })).body
    .leases;
  const { body } = await api.interrupt(third, { text: "What?" });
  const answered = await api.answer(canceled, body.interrupt_id, { text: ALL });
  const over = await api.cancel(canceled, { reason: ALL.slice(0, 1000) });
  expect([asked.status, answered.status, over.status]).toEqual([200, 200, 200]);
  const waiting = (await api.delegate("scout", { task: CORPUS[2] })).body.id;
  const [{ lease_id: fourth }] = (await api.lease("scout")).body.leases;
  await api.reply(fourth, { state: "failed", text: "", error: { ...error, retryable: true } });
  return { asking, failed, canceled, waiting };
}

const DANGEROUS = "iframe, object, embed, body script, [onerror], [onload], a[href^=javascript]";
/** No address of a text is loaded, and no link but to the web and to mail. */
const NOT_FORMATTED = "img, svg, style, form, input, [id], [name], [style], a[href]:not([rel~=noopener])";

/** Opens the reports of the agent in the conversation of a delegation that has some, and shows their texts. */
async function openReports(page: Page): Promise<void> {
  await page.locator(".reports summary").click();
  await page.locator(".reports ol .report", { hasText: CORPUS[1] ?? "" }).waitFor();
}

/** Shows the note of the last question or bar of the timeline. */
async function showNote(page: Page): Promise<void> {
  await page.locator(".fall-row :is(.fall-mark, .fall-bar)").last().hover();
  await page.locator(".fall-note .said", { hasText: /·/ }).waitFor();
}

/** Opens all files that are listed. */
async function openFiles(page: Page): Promise<void> {
  await page.locator(".file-toggle[aria-expanded=false]").evaluateAll((all) => {
    for (const one of all) if (one instanceof HTMLElement) one.click();
  });
}

/** Waits until every text that can be formatted is. */
const formatted = (page: Page) => page.waitForFunction(() => document.querySelector(".loading") === null);

describe.skipIf(SKIP)("in Chromium", () => {
  test("hostile text in every field is text, in every view", async () => {
    const { url } = await startBroker();
    const { asking, failed, canceled, waiting } = await fill(url);
    const { page, context } = await openTab("about:blank");
    await context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) =>
        console.error(`policy: ${event.violatedDirective}`),
      );
    });
    await page.goto(url);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".row").first().waitFor();
    const talk = `#/live?open=${asking}&tab=conversation`;
    const views = [
      "#/live",
      "#/needs",
      "#/find?q=onerror",
      "#/agents",
      "#/agents?name=scout",
      "#/delegate",
      `#/find?q=${encodeURIComponent(CORPUS[0] ?? "")}&target=${encodeURIComponent(CORPUS[1] ?? "")}`,
      ...["conversation", "timeline", "artifacts", "raw"].flatMap((tab) =>
        [asking, failed, canceled].map((id) => `#/live?open=${id}&tab=${tab}`),
      ),
      `#/live?open=${waiting}`,
      `#/live?open=${encodeURIComponent(CORPUS[1] ?? "")}`,
    ];
    for (const viewport of [
      { width: 1280, height: 800 },
      { width: 360, height: 800 },
    ]) {
      await page.setViewportSize(viewport);
      for (const view of viewport.width > 1000 ? views : views.slice(0, 9)) {
        await showView(page, view);
        if (view === talk) await openReports(page);
        if (view.endsWith("&tab=timeline")) await showNote(page);
        if (view.endsWith("&tab=artifacts")) await openFiles(page);
        await formatted(page);
        expect(await page.locator(`:is(${DANGEROUS}), .formatted :is(${NOT_FORMATTED})`).count()).toBe(0);
        expect.soft(await widerThanWindow(page), `${view} at ${viewport.width}`).toEqual([]);
      }
    }
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    // What ran would have needed one of these.
    expect(await page.locator(DANGEROUS).count()).toBe(0);
    await page.goto(`${url}/#/live?open=${asking}`);
    await page.locator(".conversation", { hasText: CORPUS[0] ?? "" }).waitFor();
    await formatted(page);
    // Markup of the text is shown, and only addresses of the web and of mail are links.
    await page
      .locator(".conversation .formatted", { hasText: CORPUS[1] ?? "" })
      .first()
      .waitFor();
    const links = await page
      .locator(".formatted a[href]")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href") ?? ""));
    expect(links.length).toBeGreaterThan(0);
    for (const link of links) expect(link).toMatch(/^(?:https:\/\/example\.com\/|mailto:a@example\.com$)/);
  });

  test("text that would hold up the page is shown as text, with the reason, and the page stays usable", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const message = { parts: [{ text: ENDLESS, mediaType: "text/markdown" }] };
    const { id } = (await api.delegate("scout", { message })).body;
    const [{ lease_id: lease }] = (await api.lease("scout")).body.leases;
    const table = `|${"a|".repeat(200)}\n|${"-|".repeat(200)}\n${"b\n".repeat(22_000)}`;
    const parts = [table, ">".repeat(5_000), "[a]: http://b", "**It** works"].map((text) => ({
      text,
      mediaType: "text/markdown",
    }));
    const { status } = await api.reply(lease, { text: undefined, message: { parts } });
    expect(status).toBe(200);
    const { page } = await openTab(url, { movesClock: true });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();
    await page.evaluate((to) => {
      location.hash = to;
    }, `#/live?open=${id}`);
    const [task, reply] = [page.locator(".said-block").first(), page.locator(".reply")];
    await reply.locator(".formatted strong", { hasText: "It" }).waitFor();
    await reply.locator("text=too many lines, cells or links").waitFor();
    await reply.locator("text=nested more than 50 levels deep").waitFor();
    await reply.locator("text=nothing of it would be visible").waitFor();
    await pass(page, 3);
    await task.locator("text=formatting it takes too long").waitFor();
    await task.locator(".text", { hasText: ENDLESS.slice(-20) }).waitFor();
    expect(await page.locator("*").count()).toBeLessThan(1_000);
  });
});
