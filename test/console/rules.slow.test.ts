/** Rules in the console: "Yes, for 20 min" under Approve, the list with uses, and Revoke. Needs a build. */
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";

const question = (path: string) => ({
  text: "Shall I?",
  action: { name: "fs.write", arguments: { path, lines: [1] } },
});

describe.skipIf(SKIP)("in Chromium", () => {
  test("approves the same again for a while, once the answer is sent, and lists and revokes the rule", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const ask = async (path: string) => {
      const { id } = (await api.delegate("scout", { task: `Write ${path}` })).body;
      for (;;) {
        const [{ lease_id, delegation }] = (await api.lease("scout")).body.leases;
        if (delegation.id === id) {
          await api.interrupt(lease_id, question(path));
          return async () => (await api.get(id)).body.state;
        }
        await api.reply(lease_id);
      }
    };
    const rules = async () => (await api.call("GET", "/v1/rules")).body.rules;
    const first = await ask("/srv/a");
    const { page } = await openTab(url, { viewport: { width: 1280, height: 800 }, movesClock: true });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    const same = page.getByRole("button", { name: "Yes, for 20 min the same: fs.write" });
    await same.click();
    await page.getByText("Approved, and the same that comes in the next 20 min, not sent yet.").waitFor();
    // Taken back, neither is done.
    await page.getByRole("button", { name: "Undo" }).click();
    await pass(page, 6);
    expect([await first(), await rules()]).toEqual(["input_required", []]);
    await same.click();
    await page.getByRole("button", { name: "Undo" }).waitFor();
    await pass(page, 6);
    await until(async () => (await rules()).length === 1, { what: "the rule" });
    expect(await first()).toBe("submitted");
    const [rule] = await rules();
    expect(rule).toMatchObject({ agent: "scout", action: "fs.write", by: "operator", decision: "approve" });
    expect(rule.arguments).toEqual([
      { name: "path", equals: "/srv/a" },
      { name: "lines", equals: [1] },
    ]);
    expect(Date.parse(rule.expires_at) - Date.parse(rule.created_at)).toBe(20 * 60_000);
    expect(await (await ask("/srv/a"))()).toBe("submitted");
    expect(await (await ask("/srv/b"))()).toBe("input_required");

    // What is open already is not answered by the rule.
    for (const _ of ["c", "c", "c"]) await ask("/srv/c");
    await until(async () => (await page.title()) === "(4) Errand");
    await page.getByRole("button", { name: /^\d new questions?$/ }).click();
    await page
      .locator(".question", { hasText: "/srv/c" })
      .first()
      .getByRole("button", { name: "Yes, for 20 min" })
      .click();
    await page
      .getByText("Approved, and the same that comes in the next 20 min; 2 equal ones wait, not sent yet.")
      .waitFor();
    await page.getByRole("button", { name: "Undo" }).click();

    await showView(page, "#/agents?part=rules");
    const row = page.locator(".schedule");
    await row.waitFor();
    const text = (await row.textContent()) ?? "";
    for (const part of ["approve fs.write", "operator → scout", 'path is "/srv/a"', "active", "used 1"])
      expect(text).toContain(part);
    await page.getByRole("button", { name: "Revoke approve fs.write of scout" }).click();
    await row.getByText("revoked").waitFor();
    expect((await rules())[0].state).toBe("revoked");
    await showView(page, "#/answered");
    await page.getByText("by rule").waitFor();
  });

  test("a rule that the broker refuses is not said to be there", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout")).body;
    await api.interrupt((await api.lease("scout")).body.leases[0].lease_id, question("/srv/a"));
    const { page } = await openTab(url, { movesClock: true, expected: /Failed to load resource/ });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Yes, for 20 min the same: fs.write" }).click();
    await page.getByRole("button", { name: "Undo" }).waitFor();
    await api.call("PATCH", "/v1/agents/scout", { approvals: "person" });
    await pass(page, 6);
    await page.getByText(/^Approved, but no rule was made\. Agent 'scout' takes answers only/).waitFor();
    expect(await page.getByText("and the same").count()).toBe(0);
    expect((await api.get(id)).body.state).toBe("submitted");
  });

  test("does not offer what the broker would refuse", async () => {
    const { url } = await startBroker();
    const api = client(url);
    for (const [agent, approvals, path] of [
      ["strict", "person", "/srv/a"],
      ["long", "any", "x".repeat(4_000)],
      ["plain", "any", "/srv/a"],
    ] as const) {
      await api.agent(agent, { approvals });
      await api.delegate(agent);
      const [{ lease_id }] = (await api.lease(agent)).body.leases;
      await api.interrupt(lease_id, question(path));
    }
    const alice = await as(url, "approver:ann");
    const { page } = await openTab(url, { viewport: { width: 1280, height: 800 } });
    await page.getByLabel("Token").fill(alice.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".question button[name=approve]").nth(2).waitFor();
    await until(async () => (await page.getByRole("button", { name: "Yes, for 20 min" }).count()) === 1);
    await page
      .locator(".question", { hasText: "plain" })
      .getByRole("button", { name: "Yes, for 20 min" })
      .waitFor();
  });
});
