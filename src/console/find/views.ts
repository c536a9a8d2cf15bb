/**
 * Searches that the reader saved under a name, in this browser. Each principal has its own, and finds them again after the
 * next sign-in. Limits: 20 views of each of 10 principals; the principal that saved nothing for the longest time loses its.
 */
import { effect, signal } from "@preact/signals";
import * as z from "zod";
import { session } from "../session/session.ts";
import { FIELDS, type FieldName } from "./filter.ts";
import { MOMENTS, momentsAt } from "./moments.ts";

export type Search = Partial<Record<FieldName, string>>;

export interface View {
  readonly name: string;
  /** As in the URL, but with the words of moments. */
  readonly query: string;
}

const KEY = "errand-views";
export const MOST_VIEWS = 20;
const MOST_OWNERS = 10;
/** In characters. */
export const MAX_NAME = 40;
const MAX_QUERY = 2_000;

const storedSchema = z.array(
  z.object({
    owner: z.string(),
    views: z.array(z.object({ name: z.string(), query: z.string() })),
  }),
);

/** Of the reader, in the order in which they were saved. */
export const views = signal<readonly View[]>([]);

const owner = (): string | undefined => session.value?.principal;

function readAll(): z.infer<typeof storedSchema> {
  try {
    return storedSchema.parse(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
  } catch {
    return [];
  }
}

function load(): void {
  const principal = owner();
  const own = readAll().find((one) => one.owner === principal);
  views.value = (own?.views ?? []).slice(0, MOST_VIEWS);
}

effect(load);
addEventListener("storage", ({ key }) => key === KEY && load());

/** Another tab may have changed them: each change is made to what is stored now. */
function change(make: (before: readonly View[]) => readonly View[]): void {
  const principal = owner();
  if (principal === undefined) return;
  const all = readAll();
  const own = make(all.find((one) => one.owner === principal)?.views ?? []);
  const others = all.filter((one) => one.owner !== principal).slice(1 - MOST_OWNERS);
  const kept = own.length > 0 ? [...others, { owner: principal, views: [...own] }] : others;
  localStorage.setItem(KEY, JSON.stringify(kept));
  load();
}

/** Under a name that exists, in its place. Throws if the browser stores nothing more. */
export function saveView(name: string, query: string): void {
  const view = { name: name.trim().slice(0, MAX_NAME), query: query.slice(0, MAX_QUERY) };
  change((before) =>
    before.some((one) => one.name === view.name)
      ? before.map((one) => (one.name === view.name ? view : one))
      : [...before, view].slice(0, MOST_VIEWS),
  );
}

export const renameView = (from: string, to: string): void =>
  change((before) =>
    before.flatMap((one) => {
      if (one.name === from) return [{ ...one, name: to.trim().slice(0, MAX_NAME) }];
      // The renamed one takes the name of another.
      return one.name === to.trim() ? [] : [one];
    }),
  );

export const removeView = (name: string): void =>
  change((before) => before.filter((one) => one.name !== name));

const TIMES: readonly FieldName[] = ["since", "until", "ended_since"];

/** The filters of the address. A time that a frequent search names is kept as its word, so that it moves on. */
export function queryOf(search: Search, at: number): string {
  const moments = momentsAt(at);
  const given = FIELDS.flatMap((name) => {
    const value = search[name];
    if (!value) return [];
    const word = TIMES.includes(name) ? MOMENTS.find((moment) => moments[moment] === value) : undefined;
    return [[name, word ?? value]];
  });
  return new URLSearchParams(given).toString();
}

export function searchOf({ query }: View, at: number): Search {
  const params = new URLSearchParams(query);
  const moments = momentsAt(at);
  const given = FIELDS.flatMap((name) => {
    const value = params.get(name);
    if (!value) return [];
    const word = TIMES.includes(name) ? MOMENTS.find((moment) => moment === value) : undefined;
    return [[name, word === undefined ? value : moments[word]]];
  });
  return Object.fromEntries(given);
}
