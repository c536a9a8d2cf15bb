/**
 * The words that a completion script offers from the broker: names and short ids, each with a description. They are
 * read at each Tab, so the script gives up soon on a slow broker. Every word is safe to insert into a command line,
 * whatever the broker sent.
 */
import { Admin } from "../../client/admin.ts";
import type { ConnectionOptions } from "../../client/http.ts";
import { Pages } from "../../client/pages.ts";
import type { Delegation } from "../../schema/delegation.ts";
import { shortIds } from "../input/short-id.ts";
import { mayAnswer, QUESTION_STATES } from "../rights.ts";
import { oneLine, stateText } from "../show/output.ts";
import { questionText } from "../show/questions.ts";
import { cutTo } from "../show/text.ts";
import { ageText } from "../show/time.ts";

export const LISTINGS = ["agents", "delegations", "questions"] as const;
export type Listing = (typeof LISTINGS)[number];

export interface Word {
  readonly word: string;
  readonly about: string;
}

const GIVE_UP_MS = 2000;
const MAX_AGENTS = 500;
/** The newest. */
const MAX_DELEGATIONS = 50;
const ABOUT_WIDTH = 60;
const SAFE = /^[a-z0-9][a-z0-9_-]*$/;

export async function listWords(listing: Listing, connection: ConnectionOptions): Promise<Word[]> {
  const quick = { ...connection, retryForMs: 0 };
  const words = await READ[listing](quick, AbortSignal.timeout(GIVE_UP_MS));
  return words.flatMap(({ word, about }) =>
    SAFE.test(word) ? [{ word, about: cutTo(oneLine(about), ABOUT_WIDTH) }] : [],
  );
}

type Read = (connection: ConnectionOptions, signal: AbortSignal) => Promise<Word[]>;

const READ: Readonly<Record<Listing, Read>> = {
  agents: async (connection, signal) => {
    const words: Word[] = [];
    for await (const { name, presence, description } of new Admin(connection).agents({ signal })) {
      words.push({ word: name, about: [presence.state, description].filter(Boolean).join(": ") });
      if (words.length >= MAX_AGENTS) break;
    }
    return words;
  },
  delegations: async (connection, signal) => {
    const { delegations } = await new Pages(connection).list({ limit: MAX_DELEGATIONS }, signal);
    return idWords(delegations, ({ task_preview }) => task_preview);
  },
  questions: async (connection, signal) => {
    const query = { state: QUESTION_STATES, limit: MAX_DELEGATIONS };
    const [{ principal }, { delegations }] = await Promise.all([
      new Admin(connection).status({ signal }),
      new Pages(connection).list(query, signal),
    ]);
    const open = delegations.filter((one) => mayAnswer(principal, one));
    return idWords(open, ({ interrupt, task_preview }) =>
      interrupt === null ? task_preview : questionText(interrupt),
    );
  },
};

function idWords(delegations: readonly Delegation[], text: (one: Delegation) => string): Word[] {
  const short = shortIds(delegations.map(({ id }) => id));
  return delegations.map((one) => ({
    word: short.get(one.id) ?? one.id,
    about: `${stateText(one.state)}, ${one.target}, ${ageText(one.created_at)}: ${text(one)}`,
  }));
}
