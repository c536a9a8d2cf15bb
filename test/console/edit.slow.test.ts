/** Arguments and answers that are edited in a form, and what it changed. Needs a build. */
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import {
  openTab,
  pass,
  SKIP,
  showView,
  stopClock,
  type TabOptions,
  tick,
  widerThanWindow,
} from "../support/browser.ts";
import { until } from "../support/until.ts";

type Api = ReturnType<typeof client>;

async function ask(api: Api, question: Record<string, unknown>): Promise<string> {
  await api.agent("asker");
  const { id } = (await api.delegate("asker", { task: "Ask before you act" })).body;
  const [{ lease_id: lease }] = (await api.lease("asker")).body.leases;
  const { status, body } = await api.interrupt(lease, question);
  expect(status, JSON.stringify(body)).toBe(200);
  return id;
}

async function open(url: string, options: TabOptions = {}): Promise<{ page: Page; card: Locator }> {
  const { page } = await openTab(url, { movesClock: true, ...options });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  const card = page.locator(".needs .question");
  await card.locator(".request").first().waitFor();
  await pass(page, 1);
  return { page, card };
}

const SQL = "SELECT host\nFROM fleet\nWHERE zone = 'a'\n";
const ARGUMENTS = {
  database: "main",
  sql: SQL,
  hosts: 12,
  dry_run: true,
  tags: ["ops", "night"],
  limits: { cpu: 2, memory: 4 },
  note: null,
  matrix: [[1], [2]],
};
const ACTION = { text: "Run this?", action: { name: "sql.run", arguments: ARGUMENTS }, edit: true };

/** The text of the button, without the hint of its key. */
const approves = async (card: Locator): Promise<string | undefined> =>
  (await card.locator("button[name=approve]").textContent())?.trim();
const changes = (place: Locator): Promise<string[]> => place.locator(".changes > li").allInnerTexts();

describe.skipIf(SKIP)("in Chromium", () => {
  test("arguments are edited without JSON, and the approval says what it changes", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const id = await ask(api, ACTION);
    // So tall that Playwright need not scroll to a button: the console takes that for a button that came by itself.
    const { page, card } = await open(url, { viewport: { width: 1280, height: 1200 } });
    await showView(page, "#/needs");
    const button = (name: string) => card.getByRole("button", { name, exact: true });
    await card.locator("button[name=edit]").click();
    expect(await approves(card)).toBe("Approve");
    const hosts = card.getByLabel("hosts");
    await hosts.fill("");
    await card.getByText("A number is missing.").waitFor();
    await card.locator("button[name=approve]").click();
    // Nothing is approved while a field has no value.
    expect(await hosts.evaluate((field) => field === document.activeElement)).toBe(true);
    expect(await button("Undo").count()).toBe(0);
    await hosts.fill("3");
    await card.getByLabel("sql", { exact: true }).fill(SQL.replace("'a'", "'b'"));
    expect(await changes(card)).toEqual([
      expect.stringMatching(/^sql\s+SELECT host\s+FROM fleet\s+- WHERE zone = 'a'\s+\+ WHERE zone = 'b'\s*$/),
      "hosts 12 → 3",
    ]);
    expect(await approves(card)).toBe("Approve with 2 changes");

    // Two fields at once, as a program fills them.
    await page.evaluate(() => {
      for (const [field, text] of [
        ["cpu", "4"],
        ["memory", "8"],
      ]) {
        const label = [...document.querySelectorAll("label")].find((one) => one.textContent.trim() === field);
        const input = label?.querySelector("input");
        if (!input) throw new Error(`no field ${field}`);
        input.value = text ?? "";
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }
    });
    await button("Add to tags").click();
    await page.keyboard.type("late");
    await button("Move tags 3 up").click();
    // The focus goes with the item.
    expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe("Move tags 2 up");
    await button("Remove tags 1").click();
    await button("Set note").click();
    await card.getByLabel("note").fill("Once");
    await tick(card.getByLabel("dry_run"), false);
    // A letter in the form decides nothing.
    await page.keyboard.press("a");
    await page.keyboard.press("d");
    expect(await button("Undo").count()).toBe(0);
    await card.getByLabel("matrix, as JSON").fill("[[1], [3]]");

    // The whole as JSON has the edits, and gives them back; what is not JSON cannot be left.
    await button("As JSON").click();
    const whole = card.getByLabel("Arguments of sql.run");
    const edited = {
      database: "main",
      sql: SQL.replace("'a'", "'b'"),
      hosts: 3,
      dry_run: false,
      tags: ["late", "night"],
      limits: { cpu: 4, memory: 8 },
      note: "Once",
      matrix: [[1], [3]],
    };
    expect(JSON.parse(await whole.inputValue())).toEqual(edited);
    await whole.fill('{ "hosts": 9007199254740993 }');
    await card.getByText("hosts is a number that loses digits").waitFor();
    await button("As form").click();
    expect(await whole.isVisible()).toBe(true);
    await whole.fill(JSON.stringify({ ...edited, hosts: 5 }));
    await button("As form").click();
    expect(await hosts.inputValue()).toBe("5");
    await hosts.press("Enter");
    expect(await button("Undo").count()).toBe(0);
    await hosts.press("Control+Enter");
    await card.getByText("Approved with 8 changes, not sent yet.").waitFor();
    await pass(page, 5);
    await until(async () => (await api.get(id)).body.state === "submitted");
    expect((await api.get(id)).body.history.at(-1).parts).toEqual([{ data: { ...edited, hosts: 5 } }]);

    // So does the conversation.
    await showView(page, `#/live?open=${id}`);
    const said = page.locator(".said-block", { hasText: "approved with 8 changes" });
    await said.waitFor();
    expect(await changes(said)).toContain("hosts 12 → 5");
    await said.getByText("All arguments, as approved").click();
    await said.locator("pre", { hasText: '"Once"' }).waitFor();
  });

  test("of several requests, an approval that was edited afterwards is not sent as it was", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const of = (name: string) => ({
      request_id: name,
      message: { parts: [{ text: `${name}?` }] },
      action: { name, arguments: { hosts: 12 } },
      edit: true,
    });
    const when = {
      request_id: "when",
      message: { parts: [{ text: "When?" }] },
      schema: { type: "object", properties: { hour: { type: "integer" } } },
    };
    const id = await ask(api, {
      requests: [of("scale"), of("drain"), when],
    });
    const { page, card } = await open(url);
    await showView(page, "#/needs");
    const scale = card.locator("fieldset", { hasText: "scale" });
    const drain = card.locator("fieldset", { hasText: "drain" });
    await scale.getByRole("button", { name: "Edit" }).click();
    await scale.getByLabel("hosts").fill("13");
    await scale.locator("button[name=approve]").click();
    await drain.locator("button[name=approve]").click();
    const hour = card.getByLabel("hour");
    await hour.fill("7");
    await hour.press("Control+Enter");
    await card.getByRole("button", { name: "Send the answers" }).waitFor();
    // What was given is marked.
    const given = card.locator("button[aria-pressed=true]");
    expect(await given.evaluateAll((all) => all.map((one) => one.getAttribute("name")))).toEqual([
      "approve",
      "approve",
    ]);
    // At once: a busy page may take a press before its next frame.
    await stopClock(page);
    await scale.getByLabel("hosts").fill("14");
    await card.getByText("1 of 3 still to answer").waitFor();
    await scale.locator("button[name=approve]").click();
    await hour.fill("8");
    await card.getByText("1 of 3 still to answer").waitFor();
    await card.getByRole("button", { name: "Answer", exact: true }).click();
    await card.getByRole("button", { name: "Send the answers" }).click();
    const { history } = await until(async () => {
      await pass(page, 5);
      const { body } = await api.get(id);
      return body.state === "submitted" ? body : undefined;
    });
    expect(JSON.stringify(history)).toContain('{"hosts":14}');
    expect(JSON.stringify(history)).not.toContain('{"hosts":13}');
    expect(JSON.stringify(history)).toContain('{"hour":8}');
  });

  test("what was not typed into is approved as it was proposed, and a denial sends no edit", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const odd = {
      big: 1e21,
      empty: "",
      crlf: "a\r\nb\r\n",
      face: "💾",
      deep: [[["x"]]],
      none: null,
      bare: {},
    };
    const id = await ask(api, { ...ACTION, action: { name: "odd", arguments: odd } });
    const { page, card } = await open(url);
    await card.focus();
    await page.keyboard.press("e");
    await until(() => card.getByLabel("big").evaluate((field) => field === document.activeElement));
    const crlf = card.getByLabel("crlf");
    await crlf.fill("a\nc\n");
    expect(await approves(card)).toBe("Approve with 1 change");
    await crlf.fill("a\nb\n");
    expect(await approves(card)).toBe("Approve");
    // What cannot be seen is named.
    await card.getByLabel("face").fill("x\u202egpj");
    expect(await changes(card)).toEqual(["face 💾 → x\\u{202e}gpj"]);
    await card.getByLabel("face").fill("💾");
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByText("Approved, not sent yet.").waitFor();
    await card.getByRole("button", { name: "Undo" }).click();
    await crlf.fill("a\nc\n");
    // The key never drops an edit.
    await card.focus();
    await page.keyboard.press("e");
    expect(await crlf.inputValue()).toBe("a\nc\n");
    await card.getByRole("button", { name: "Deny" }).click();
    await pass(page, 5);
    await until(async () => (await api.get(id)).body.state === "submitted");
    expect((await api.get(id)).body.history.at(-1)).toMatchObject({
      parts: [],
      metadata: { decision: "deny" },
    });
  });

  test("a schema says what may be left out and chosen, and on a phone all of it can be reached", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const schema = {
      type: "object",
      required: ["zone"],
      properties: {
        zone: { enum: ["eu-1", "eu-2"], title: "Where it runs" },
        hosts: { type: "integer", minimum: 1, maximum: 9 },
        roles: { type: "array", items: { enum: ["web", "db"] } },
        owner: { type: "string" },
      },
    };
    const id = await ask(api, {
      text: "Start it?",
      action: {
        name: "start",
        arguments: {
          zone: "eu-1",
          hosts: 2,
          roles: ["db"],
          kept: [1, "a"],
          steps: [{ path: "/a", mode: 6 }],
        },
      },
      edit: true,
      schema,
    });
    const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true };
    const { page, card } = await open(url, phone);
    await card.getByRole("button", { name: "Edit" }).tap();
    await card.getByLabel("zone").selectOption("eu-2");
    const hosts = card.getByRole("textbox", { name: /^hosts/ });
    await hosts.fill("10");
    await card.getByText("At most 9.").waitFor();
    await hosts.fill("3");
    await card.getByRole("button", { name: "Leave out hosts" }).tap();
    expect(await hosts.inputValue()).toBe("");
    await tick(card.getByLabel("web"));
    const owner = card.getByRole("textbox", { name: /^owner/ });
    await owner.fill("ann");
    await owner.fill("");
    expect(await changes(card)).toEqual([
      "zone eu-1 → eu-2",
      "hosts removed 2",
      expect.stringContaining("+ web"),
    ]);
    expect(await widerThanWindow(page)).toEqual([]);
    await card.getByRole("group", { name: "steps 1" }).getByLabel("path").waitFor();
    const sticksOut = await card.locator(".edit").evaluate((form) => {
      const right = (one: Element) => one.getBoundingClientRect().right;
      return [...form.querySelectorAll("*")]
        .filter((one) => right(one) > right(form))
        .map((one) => one.outerHTML);
    });
    expect(sticksOut).toEqual([]);
    await card.getByRole("button", { name: "Approve with 3 changes" }).tap();
    await pass(page, 5);
    await until(async () => (await api.get(id)).body.state === "submitted");
    expect((await api.get(id)).body.history.at(-1).parts).toEqual([
      { data: { zone: "eu-2", roles: ["db", "web"], kept: [1, "a"], steps: [{ path: "/a", mode: 6 }] } },
    ]);
  });

  test("an answer by schema has lists and parts of its own; what stays empty is left out", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const schema = {
      type: "object",
      required: ["paths", "when"],
      properties: {
        paths: { type: "array", items: { type: "string" }, title: "Paths to read" },
        when: { type: "object", properties: { day: { type: "string", format: "date" } }, required: ["day"] },
        mail: { type: "string", format: "email" },
        extra: { oneOf: [{ type: "string" }, { type: "number" }] },
        depth: { type: "number", default: 3 },
      },
    };
    const id = await ask(api, { text: "What should I read?", schema });
    const { page, card } = await open(url);
    await card.getByRole("button", { name: "Add to Paths to read" }).click();
    await page.keyboard.type("/etc");
    await card.getByRole("button", { name: "Add to Paths to read" }).click();
    const second = card.getByLabel("Paths to read 2", { exact: true });
    await second.fill("/tmp");
    await second.fill("");
    expect(await second.evaluate(({ localName }) => localName)).toBe("input");
    await card.getByRole("button", { name: "Remove Paths to read 2" }).click();
    await card.getByLabel("day").fill("2026-03-01");
    await card.getByLabel("depth").fill("");
    await card.getByRole("button", { name: "Set extra" }).click();
    await card.getByLabel("extra, as JSON").fill('{ "broken"');
    await card.getByRole("button", { name: "Answer", exact: true }).click();
    expect(await card.getByRole("button", { name: "Undo" }).count()).toBe(0);
    await card.getByLabel("extra, as JSON").fill("7");
    await card.getByLabel("depth").press("Control+Enter");
    const undo = card.getByRole("button", { name: "Undo" });
    // It stands where the button is, as after a click.
    const [top, wanted] = await Promise.all(
      [undo, card.getByRole("button", { name: "Answer", exact: true, includeHidden: true })].map(
        async (one) => (await one.boundingBox())?.y,
      ),
    );
    expect(Math.abs((top ?? 0) - (wanted ?? 99))).toBeLessThan(3);
    await pass(page, 5);
    await until(async () => (await api.get(id)).body.state === "submitted");
    expect((await api.get(id)).body.history.at(-1).parts).toEqual([
      { data: { paths: ["/etc"], when: { day: "2026-03-01" }, extra: 7 } },
    ]);
  });
});
