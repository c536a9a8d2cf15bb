/**
 * Does the jobs that people have with the console, in Chromium with a broker of its own; counts clicks, keys and fields,
 * prints them as a table, and fails if a job needs more than its aim, or does not do what it should. Not a test.
 * Usage: npm run build && node --import tsx test/console/jobs.ts
 */
import { type Browser, chromium, type Page } from "playwright-core";
import { CHROMIUM } from "../support/chromium.ts";
import { until } from "../support/until.ts";
import { Hand } from "./hand.ts";
import { type Api, propose, setJobs } from "./jobs-scene.ts";
import { signIn, withBroker } from "./own-broker.ts";

interface Job {
  readonly name: string;
  /** Clicks, keys and fields at most. */
  readonly aim: number;
  readonly view?: string;
  readonly isPhone?: boolean;
  /** Prepares the broker. */
  readonly before?: (api: Api) => Promise<void>;
  readonly run: (hand: Hand, page: Page, api: Api) => Promise<void>;
}

const stateIs = (api: Api, id: string, state: string) =>
  until(async () => (await api.get(id)).body.state === state);
const approved = async (api: Api, count: number) =>
  until(async () => (await api.call("GET", "/v1/answers?decision=approve")).body.answers.length === count);
const questionOf = (page: Page, task: string) => page.locator("article.question", { hasText: task });
const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });

let ids: string[] = [];
let answers = 0;
const ask = async (api: Api, tasks: readonly string[]) => {
  ids = [];
  for (const task of tasks) ids.push((await propose(api, task)).id);
  answers = (await api.call("GET", "/v1/answers?decision=approve")).body.answers.length;
};
const answerOf = async (api: Api, id: string) =>
  (await api.call("GET", "/v1/answers")).body.answers.find(
    (one: { delegation_id: string }) => one.delegation_id === id,
  );
/** What an earlier job left. */
const clear = async (api: Api) => {
  for (const state of ["submitted", "working", "input_required"]) {
    const { body } = await api.call("GET", `/v1/delegations?target=deployer&state=${state}`);
    for (const { id } of body.delegations) await api.cancel(id);
  }
};

const JOBS: readonly Job[] = [
  {
    name: "see what this is, and what needs me",
    aim: 0,
    before: (api) => ask(api, ["Deploy search"]),
    run: async (_, page) => {
      await page.getByText("Agents do the work, and ask people here.").waitFor();
      await page.getByRole("link", { name: "Needs you 1" }).waitFor();
      await questionOf(page, "Deploy search")
        .getByRole("button", { name: /^Approve/ })
        .waitFor();
    },
  },
  {
    name: "approve three actions, one by one",
    aim: 3,
    before: (api) => ask(api, ["Deploy one", "Deploy two", "Deploy three"]),
    run: async (hand, page, api) => {
      for (const task of ["Deploy one", "Deploy two", "Deploy three"])
        await hand.click(questionOf(page, task).getByRole("button", { name: /^Approve/ }));
      await approved(api, answers + 3);
    },
  },
  {
    name: "approve three equal actions in the inbox",
    aim: 3,
    view: "#/needs",
    before: (api) => ask(api, ["Deploy it", "Deploy it", "Deploy it"]),
    run: async (hand, page, api) => {
      await hand.click(button(page, /^Approve all 3|^Approve 3/).first());
      await approved(api, answers + 3);
    },
  },
  {
    name: "approve three actions with the keyboard",
    aim: 6,
    before: (api) => ask(api, ["Deploy one", "Deploy two", "Deploy three"]),
    run: async (hand, page, api) => {
      await questionOf(page, "Deploy three").waitFor();
      // The first one shows which question the keys reach.
      await hand.press("a");
      await hand.press("a");
      for (const _ of [1, 2]) {
        await hand.press("j");
        await hand.press("a");
      }
      await approved(api, answers + 3);
    },
  },
  {
    name: "deny with a reason",
    aim: 3,
    before: (api) => ask(api, ["Deploy search"]),
    run: async (hand, page, api) => {
      const card = questionOf(page, "Deploy search");
      await hand.click(card.getByText("Comment…"));
      await hand.type(card.locator("textarea"), "Not on a Friday.");
      await hand.click(card.getByRole("button", { name: /^Deny/ }));
      await until(async () => (await answerOf(api, ids[0] ?? ""))?.requests[0].decision === "deny");
    },
  },
  {
    name: "change two arguments and approve, without JSON",
    aim: 4,
    before: (api) => ask(api, ["Deploy search"]),
    run: async (hand, page, api) => {
      const card = questionOf(page, "Deploy search");
      await hand.click(card.getByRole("button", { name: /^Edit/ }));
      await hand.type(card.getByLabel("hosts"), "3");
      await hand.type(card.getByLabel("strategy"), "canary");
      await hand.click(card.getByRole("button", { name: /^Approve with 2 changes/ }));
      await until(async () => {
        const text = JSON.stringify((await answerOf(api, ids[0] ?? ""))?.requests[0].changes ?? null);
        return text.includes("canary") && text.includes("hosts");
      });
    },
  },
  {
    name: "take an answer back",
    aim: 2,
    before: (api) => ask(api, ["Deploy search"]),
    run: async (hand, page, api) => {
      await hand.click(questionOf(page, "Deploy search").getByRole("button", { name: /^Approve/ }));
      await hand.click(button(page, "Undo").first());
      await questionOf(page, "Deploy search")
        .getByRole("button", { name: /^Approve/ })
        .waitFor();
      await stateIs(api, ids[0] ?? "", "input_required");
    },
  },
  {
    name: "change an argument and approve, on a phone",
    aim: 3,
    view: "#/needs",
    isPhone: true,
    before: (api) => ask(api, ["Deploy search"]),
    run: async (hand, page, api) => {
      const card = questionOf(page, "Deploy search");
      await hand.tap(card.getByRole("button", { name: /^Edit/ }));
      await hand.type(card.getByLabel("hosts"), "3");
      await hand.tap(card.getByRole("button", { name: /^Approve with 1 change/ }));
      await until(async () => (await answerOf(api, ids[0] ?? "")) !== undefined);
    },
  },
  {
    name: "see why work is stuck: no worker",
    aim: 0,
    run: async (_, page) => {
      await page.locator(".alarm-line", { hasText: /archivist:? ?: no worker, 4 wait/ }).waitFor();
    },
  },
  {
    name: "see why an agent is overloaded",
    aim: 0,
    run: async (_, page) => {
      await page.locator(".alarm-line", { hasText: /researcher: all busy, 14 wait/ }).waitFor();
      await page.locator(".agent-row[data-row=researcher]", { hasText: "all busy (1 working)" }).waitFor();
    },
  },
  {
    name: "see how to start the worker that is missing",
    aim: 1,
    run: async (hand, page) => {
      await hand.click(button(page, "How to start one for archivist"));
      await page.getByText("work --agent archivist -- COMMAND").waitFor();
    },
  },
  {
    name: "find what failed of one agent since yesterday",
    aim: 2,
    run: async (hand, page) => {
      await hand.click(page.getByRole("link", { name: "The page of nightly" }));
      await hand.click(page.getByRole("link", { name: "Failed since yesterday" }));
      await page.getByText("3 delegations").waitFor();
      await page.locator(".found", { hasText: "No space left on device" }).first().waitFor();
    },
  },
  {
    name: "try it again, from its list",
    aim: 2,
    view: "#/find?state=failed&target=nightly",
    run: async (hand, page, api) => {
      await hand.click(page.locator(".found", { hasText: "Nightly check 0" }));
      await page.getByText("No space left on device").nth(1).waitFor();
      await hand.click(button(page, "Try again"));
      await until(async () =>
        (await api.call("GET", "/v1/delegations?target=nightly&state=submitted")).body.delegations.some(
          (one: { redrive_of: string | null }) => one.redrive_of !== null,
        ),
      );
    },
  },
  {
    name: "delegate with a file",
    aim: 5,
    run: async (hand, page, api) => {
      await hand.click(page.getByRole("link", { name: "Delegate", exact: true }));
      await hand.type(page.getByLabel("Agent", { exact: true }), "coder");
      await hand.type(page.getByLabel("Task"), "Read the log");
      hand.clicks += 1;
      await page
        .getByLabel("Files")
        .setInputFiles({ name: "log.txt", mimeType: "text/plain", buffer: Buffer.from("Timeout") });
      await page.getByLabel("Task").focus();
      await hand.press("Control+Enter");
      await until(async () => {
        const [one] = (await api.call("GET", "/v1/delegations?target=coder")).body.delegations;
        return one?.message.parts.length === 2;
      });
    },
  },
  {
    name: "pause an agent",
    aim: 3,
    run: async (hand, page, api) => {
      await hand.click(page.getByRole("link", { name: "The page of nightly" }));
      await hand.click(button(page, "Pause"));
      await hand.click(page.getByRole("dialog").getByRole("button", { name: "Pause" }));
      await until(async () => (await api.call("GET", "/v1/agents/nightly")).body.paused === true);
    },
  },
  {
    name: "make a token",
    aim: 4,
    run: async (hand, page) => {
      await hand.click(page.getByRole("link", { name: "Agents", exact: true }));
      await hand.click(page.getByRole("link", { name: "Tokens" }));
      await hand.type(page.getByLabel("Name"), "ann");
      await hand.click(button(page, "Create token"));
      await page.getByText("It is shown only now").waitFor();
    },
  },
  {
    name: "notice a question from another window",
    aim: 0,
    before: (api) => ask(api, ["Deploy search"]),
    run: async (_, page) => {
      await until(async () => (await page.title()) === "(1) Errand");
    },
  },
];

async function doJob(browser: Browser, job: Job, url: string, token: string, api: Api): Promise<Hand> {
  await clear(api);
  await job.before?.(api);
  const context = await browser.newContext(
    job.isPhone
      ? { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
      : { viewport: { width: 1280, height: 720 } },
  );
  await signIn(context, token);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  await page.goto(`${url}/${job.view ?? "#/live"}`);
  await page.locator("h1:visible").first().waitFor();
  // A hand is slower: a control that has just come ignores a click.
  await page.waitForTimeout(1_000);
  const hand = new Hand(page);
  try {
    await job.run(hand, page, api);
  } finally {
    await context.close();
  }
  return hand;
}

let missed = 0;
await withBroker(async (url, token) => {
  const api = await setJobs(url, token);
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", chromiumSandbox: false });
  console.log("| job | takes | aim |\n| --- | --- | --- |");
  for (const job of JOBS) {
    try {
      const hand = await doJob(browser, job, url, token, api);
      const isMissed = hand.actions > job.aim;
      missed += isMissed ? 1 : 0;
      console.log(`| ${job.name} | ${hand.done} | ${job.aim}${isMissed ? ", missed" : ""} |`);
    } catch (error) {
      missed += 1;
      console.log(
        `| ${job.name} | ${error instanceof Error ? error.message.split("\n").slice(0, 4).join(" ") : error} | ${job.aim} |`,
      );
    }
  }
  await browser.close();
});
process.exitCode = missed > 0 ? 1 : 0;
