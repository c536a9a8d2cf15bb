/**
 * Questions around a pointer that rests. A witness in the page, apart from the page's own guard, notes what was under the
 * pointer at each press and since when; the broker's record says which question got an answer.
 */
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { z } from "zod";
import { as, client, OPERATOR, startBroker, type TestBroker } from "../support/broker.ts";
import { openTab, pass, showView, type TabOptions } from "../support/browser.ts";
import { passes } from "../support/outage.ts";
import { until } from "../support/until.ts";

/** What a browser says of a broker that is away. */
const LOST = /Failed to load resource|net::ERR_/;

type Api = ReturnType<typeof client>;

export interface Asked {
  readonly id: string;
  readonly interrupt: string;
  /** It stands in the text of the question and nowhere else: `Q7.` */
  readonly token: string;
}

interface Question {
  readonly seconds?: number;
  readonly agent?: string;
  /** The argument of the action: questions of one agent with the same are equal. */
  readonly what?: string;
  readonly by?: Api;
  /** After the token. */
  readonly text?: string;
}

/** An answer as the broker has it. */
export interface Given {
  readonly token: string;
  readonly decision: string;
}

/** Agents that ask, and what became of their questions. */
export class Asking {
  readonly #broker: TestBroker;
  readonly #api: Api;
  readonly url: string;
  /** Answers in other places than the page under test. */
  readonly colleague: Api;
  readonly #all: Asked[] = [];
  open: Asked[] = [];

  private constructor(broker: TestBroker, colleague: Api) {
    this.#broker = broker;
    this.#api = client(broker.url);
    this.url = broker.url;
    this.colleague = colleague;
  }

  static async start(agents: readonly string[] = ["bot"]): Promise<Asking> {
    const broker = await startBroker();
    const asking = new Asking(broker, await as(broker.url, "approver:colleague"));
    for (const agent of agents) await asking.#api.agent(agent);
    return asking;
  }

  as(principal: string) {
    return as(this.url, principal);
  }

  async ask(question: Question = {}): Promise<Asked> {
    const { seconds = 7200, agent = "bot", by = this.#api } = question;
    const n = this.#all.length + 1;
    const { id } = (await by.delegate(agent, { task: `Task ${n}` })).body;
    return this.#raise(id, agent, n, { what: `file-${n}`, text: "", seconds, ...question });
  }

  /** The agent asks `n`. What was answered before it is in the queue, too, and ends here. */
  async #raise(
    id: string,
    agent: string,
    n: number,
    { what, text, seconds }: Required<Pick<Question, "what" | "text" | "seconds">>,
  ): Promise<Asked> {
    for (;;) {
      const [lease] = (await this.#api.lease(agent)).body.leases;
      if (lease.delegation.id !== id) {
        await this.#api.reply(lease.lease_id);
        continue;
      }
      const action = { name: "do", arguments: { what } };
      const question = { text: `May I, Q${n}. ${text}`, action, expires_in_seconds: seconds };
      const { body } = await this.#api.interrupt(lease.lease_id, question);
      const asked = { id, interrupt: String(body.interrupt_id), token: `Q${n}.` };
      this.#all.push(asked);
      this.open.push(asked);
      return asked;
    }
  }

  take(asked: Asked): void {
    this.open = this.open.filter((one) => one !== asked);
  }

  /** A colleague answers it. The page may have answered it before. */
  async answer(asked: Asked, decision = "deny"): Promise<void> {
    await this.colleague.answer(asked.id, asked.interrupt, { decision });
    this.take(asked);
  }

  async cancel(asked: Asked): Promise<void> {
    await this.#api.cancel(asked.id);
    this.take(asked);
  }

  /** A colleague answers it, and its agent asks something that equals what others ask. */
  async regroup(asked: Asked, what: string): Promise<void> {
    await this.answer(asked, "approve");
    const { state, target } = (await this.#api.get(asked.id)).body;
    if (state === "submitted")
      await this.#raise(asked.id, target, this.#all.length + 1, { what, text: "", seconds: 7200 });
  }

  /** This time passes, and questions expire. */
  async pass(seconds: number): Promise<void> {
    await passes(this.#broker, seconds);
    await this.look();
  }

  /** Which are still open, by the broker's record. */
  async look(): Promise<void> {
    const states = await Promise.all(
      this.open.map(async ({ id }) => (await this.#api.get(id)).body.interrupt?.id),
    );
    this.open = this.open.filter(({ interrupt }, at) => states[at] === interrupt);
  }

  /** The answers that somebody gave, by the broker's record. */
  async givenBy(principal: string): Promise<Given[]> {
    const ids = [...new Set(this.#all.map(({ id }) => id))];
    const histories = await Promise.all(ids.map(async (id) => (await this.#api.get(id)).body.history));
    const answers = histories
      .flat()
      .map(({ metadata }) => answerSchema.safeParse(metadata).data)
      .filter((one) => one?.by === principal);
    return answers.flatMap((answer) => {
      const asked = this.#all.find(({ interrupt }) => interrupt === answer?.interrupt_id);
      return answer && asked ? [{ token: asked.token, decision: answer.decision }] : [];
    });
  }
}

const answerSchema = z.object({ interrupt_id: z.string(), by: z.string(), decision: z.string() });

/** What the witness saw at one press. */
const pressSchema = z.object({
  /** The first word of the control. */
  control: z.string(),
  /** The questions whose text the reader saw with it. */
  tokens: z.array(z.string()),
  /** For how long the same control of the same questions was there. */
  forMs: z.number(),
});
export type Press = z.infer<typeof pressSchema>;

/** Runs in every page before its own code. */
function watchPointer(): void {
  const GRAIN_MS = 20;
  const point = { x: -1, y: -1 };
  let seen = "";
  let since = 0;
  const read = () => {
    const found = document.elementFromPoint(point.x, point.y);
    const control = found?.closest("button, summary, a");
    const shown = found?.closest<HTMLElement>(".equal, .question, .ask-row");
    const [word = ""] = (control?.textContent ?? "").trim().split(" ");
    return JSON.stringify([word, shown?.textContent.match(/Q\d+\./g) ?? []]);
  };
  const look = () => {
    const now = read();
    if (now !== seen) since = performance.now();
    seen = now;
  };
  setInterval(look, GRAIN_MS);
  const follow = ({ clientX, clientY }: PointerEvent) => {
    point.x = clientX;
    point.y = clientY;
    look();
  };
  addEventListener("pointermove", follow, { capture: true });
  addEventListener(
    "pointerdown",
    (event) => {
      follow(event);
      const [control, tokens] = JSON.parse(seen);
      const { presses = "[]" } = document.documentElement.dataset;
      const press = { control, tokens, forMs: performance.now() - since };
      document.documentElement.dataset.presses = JSON.stringify([...JSON.parse(presses), press]);
    },
    { capture: true },
  );
}

export async function pressesOf(page: Page): Promise<Press[]> {
  const text = await page.evaluate("document.documentElement.dataset.presses ?? '[]'");
  return z.array(pressSchema).parse(JSON.parse(String(text)));
}

/** A page with the witness, signed in, on a view; its timers are moved by `pass`. */
export async function openWatched(
  url: string,
  hash: string,
  { token = OPERATOR, ...options }: TabOptions & { readonly token?: string } = {},
): Promise<Page> {
  const { page, context } = await openTab("about:blank", {
    ...{ pressesOnce: true, movesClock: true, expected: LOST },
    ...options,
  });
  await context.addInitScript(watchPointer);
  await page.goto(url);
  const agents = page.waitForResponse((response) => /\/v1\/agents\b/.test(response.url()) && response.ok());
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("h1:visible").first().waitFor();
  await showView(page, hash);
  await page.locator(".needs .question .request:visible").first().waitFor();
  // What can be offered depends on the agents.
  await agents;
  // What came while the page was loading is noticed in the first second, and has been seen after the next one.
  for (const _ of [1, 2]) await pass(page, 1);
  await calm(page);
  return page;
}

/** No button has moved for longer than the page ignores presses after a move, by the page's own clock. */
function calm(page: Page): Promise<void> {
  return page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        let places = "";
        let since = 0;
        const look = () => {
          const boxes = [...document.querySelectorAll("button")].map((one) => one.getBoundingClientRect());
          const now = boxes.map(({ x, y }) => `${x} ${y}`).join();
          if (now !== places) since = performance.now();
          places = now;
          if (performance.now() - since > 700) resolve();
          else requestAnimationFrame(look);
        };
        look();
      }),
  );
}

export const WIDE: BrowserContextOptions = { viewport: { width: 1280, height: 900 } };
export const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 780 },
  hasTouch: true,
  isMobile: true,
};

/** The page knows of all that is open. */
export async function settled(page: Page, { open }: Asking): Promise<void> {
  const badge = page.locator(".needs h1 .badge");
  const shown = async () => ((await badge.count()) === 0 ? "0" : await badge.first().textContent());
  await until(async () => (await shown()) === String(open.length), {
    what: `${open.length} open in the page`,
  });
}

export interface Rest {
  readonly press: () => Promise<void>;
}

/** The mouse rests on the control for longer than a person needs to see it. */
export async function restOn(page: Page, control: Locator): Promise<Rest> {
  const box = await control.boundingBox();
  if (!box) throw new Error("not in view");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await pass(page, 1);
  return { press: () => page.mouse.click(x, y) };
}

/** What waits is sent, and the page has the outcome. */
export async function send(page: Page): Promise<void> {
  await until(async () => {
    await pass(page, 5);
    return (await page.getByText(/not sent yet|sending …/).count()) === 0;
  });
}
