/** The table of events in docs/http.md, and what a broker's events have that is not in it. */
import { readFileSync } from "node:fs";
import * as z from "zod";
import { eventPageSchema, eventSchema } from "../../src/schema/event.ts";
import { OPERATOR } from "../support/broker.ts";

const COMMON =
  "id type delegation_id seq at state target delegator context_id status usage artifacts_dropped root_id";

const namesOf = (schema: z.ZodEnum | z.ZodLiteral<string>): readonly string[] =>
  schema instanceof z.ZodEnum ? schema.options.map(String) : [...schema.values];

/** The members of each kind in the schema, without the common ones. */
export function eventKinds(): (readonly [kind: string, members: readonly string[]])[] {
  return eventSchema.options.flatMap((option) =>
    (option instanceof z.ZodDiscriminatedUnion ? option.options : [option]).flatMap(({ shape }) => {
      const members = Object.keys(shape).filter((name) => !COMMON.split(" ").includes(name));
      const kinds = "status" in shape ? namesOf(shape.status) : namesOf(shape.type);
      return kinds.map((kind) => [kind, members] as const);
    }),
  );
}

/** The members of each kind of event, by its status, or by its type if it has none. */
export function documentedEvents(): Map<string, string[]> {
  const page = readFileSync(new URL("../../docs/http.md", import.meta.url), "utf8");
  const [, table = ""] = page.split("| event | further members");
  const [rows = ""] = table.split("\n\n");
  const names = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
  return new Map(
    [...rows.matchAll(/^\| (`.*?) \| (.*) \|$/gm)].flatMap(([, kinds = "", members = ""]) =>
      names(kinds).map((kind) => [kind, names(members)] as const),
    ),
  );
}

export async function undocumentedMembers(url: string): Promise<string[]> {
  const documented = documentedEvents();
  const headers = { accept: "application/json", authorization: `Bearer ${OPERATOR}` };
  const response = await fetch(`${url}/v1/events?after=0&limit=1000`, { headers });
  const { events } = eventPageSchema.parse(await response.json());
  if (events.length === 0) throw new Error("the broker has no events");
  const unknown = events.flatMap((event) => {
    const kind = "status" in event ? String(event.status) : event.type;
    const known = [...COMMON.split(" "), ...(documented.get(kind) ?? [])];
    return Object.keys(event).flatMap((name) => (known.includes(name) ? [] : [`${kind}: ${name}`]));
  });
  return [...new Set(unknown)];
}
