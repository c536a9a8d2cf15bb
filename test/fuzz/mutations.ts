/** Ways to spoil a request: in a value, in the text of the body, in its bytes, its headers, its path. */
import * as fc from "fast-check";
import type { Ask } from "./requests.ts";

export interface Wire {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer | undefined;
}

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let n = 0; n < depth; n += 1) value = n % 2 === 0 ? [value] : { a: value };
  return value;
};

export const HOSTILE: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    -0,
    1.5,
    1e308,
    2 ** 31,
    2 ** 53 + 2,
    "",
    " ",
    "0",
    "\u0000",
    "\ud83d",
    "\udc00x",
  ],
  ...[
    "a\r\nset-cookie: x=1",
    "../../etc/passwd",
    "{errand:0}:d:x",
    "*",
    "constructor",
    "__proto__",
    "%00",
    "$1\n2",
  ],
  ...[
    "a".repeat(10_000),
    "é".repeat(200),
    "😀".repeat(64),
    "A".repeat(241),
    `${"AAAA".repeat(60)}!`,
    "9".repeat(400),
  ],
  ...[
    "2026-02-30T00:00:00Z",
    "+275760-09-13T00:00:00.001Z",
    `dlg_0_${"0".repeat(26)}`,
    `lse_0_${"0".repeat(26)}_1`,
  ],
  ...[
    [],
    [null],
    {},
    { a: {} },
    nested(60),
    nested(80),
    Array.from({ length: 2_000 }, () => 1),
    [[], {}, ""],
  ],
];

const HEADERS: readonly Readonly<Record<string, string>>[] = [
  { prefer: "wait=0" },
  { prefer: "wait=999999999999" },
  { prefer: `${"wait=1,".repeat(200)}` },
  { "idempotency-key": "same" },
  { "idempotency-key": "é" },
  { "idempotency-key": "k".repeat(300) },
  { "last-event-id": "0-0" },
  { "last-event-id": "1-1.9999999999999999999-1" },
  { "last-event-id": ".".repeat(2_000) },
  { traceparent: `00-${"0".repeat(32)}-${"0".repeat(16)}-00` },
  { accept: "text/event-stream;q=0.000, */*" },
  { accept: "application/json" },
  { accept: "application/a2a+json;q=x, application/a2a+json" },
  { "a2a-version": "9.9" },
  { "a2a-extensions": "urn:errand:a2a:v2,,urn:errand:a2a:v2" },
  { "x-a2a-extensions": "é, urn:errand:a2a:v2" },
  { "mcp-protocol-version": "1999-01-01" },
  { "content-type": "text/plain" },
  { "content-type": "application/json; charset=utf-16" },
  { authorization: "Bearer no" },
  { authorization: `Bearer${" ".repeat(2_000)}` },
  { origin: "https://evil.example" },
];

const QUERIES = [
  "after=x",
  "limit=-1",
  "state=a",
  "wait_seconds=0&wait_seconds=0",
  "%",
  "%ff=%fe",
  "__proto__=1",
  "after=%00",
];

const at = fc.nat({ max: 1_000 });
export type Mutation =
  | {
      readonly in: "value";
      readonly kind: "drop" | "put" | "add" | "rename";
      readonly at: number;
      readonly value: number;
    }
  | {
      readonly in: "text";
      readonly kind: "cut" | "twice" | "proto" | "half" | "tail" | "byte" | "bom" | "none";
      readonly at: number;
    }
  | { readonly in: "header"; readonly which: number }
  | { readonly in: "path"; readonly kind: "query" | "segment"; readonly at: number; readonly value: number };

export const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      in: fc.constant("value" as const),
      kind: fc.constantFrom("drop", "put", "put", "put", "add", "rename"),
      at,
      value: fc.nat({ max: HOSTILE.length - 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      in: fc.constant("text" as const),
      kind: fc.constantFrom("cut", "twice", "proto", "half", "tail", "byte", "bom", "none"),
      at,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ in: fc.constant("header" as const), which: fc.nat({ max: HEADERS.length - 1 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      in: fc.constant("path" as const),
      kind: fc.constantFrom("query", "segment"),
      at,
      value: fc.nat({ max: HOSTILE.length - 1 }),
    }),
  },
);

type Place = readonly [holder: Record<string, unknown> | unknown[], key: string];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function placesOf(value: unknown, found: Place[] = []): Place[] {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      found.push([value, String(index)]);
      placesOf(item, found);
    }
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      found.push([value, name]);
      placesOf(member, found);
    }
  }
  return found;
}

function put(holder: Place[0], key: string, value: unknown): void {
  if (Array.isArray(holder)) holder[Number(key)] = value;
  else Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

function spoilValue(body: unknown, { kind, at: nth, value }: Extract<Mutation, { in: "value" }>): unknown {
  const root: Record<string, unknown> = { body: structuredClone(body) };
  const places = placesOf(root);
  const [holder, key] = places[nth % places.length] ?? [root, "body"];
  const hostile = HOSTILE[value];
  if (kind === "put") put(holder, key, hostile);
  else if (kind === "drop" && !Array.isArray(holder)) Reflect.deleteProperty(holder, key);
  else if (kind === "add" && isObject(holder)) put(holder, `${key}x`, hostile);
  else if (kind === "rename" && isObject(holder)) {
    const old = holder[key];
    Reflect.deleteProperty(holder, key);
    put(holder, typeof hostile === "string" ? hostile : "renamed", old);
  }
  return root.body;
}

function spoilText(text: string, { kind, at: nth }: Extract<Mutation, { in: "text" }>): Buffer {
  const open = text.indexOf("{") + 1;
  const inside = (piece: string) => Buffer.from(`${text.slice(0, open)}${piece}${text.slice(open)}`);
  switch (kind) {
    case "cut":
      return Buffer.from(text.slice(0, nth % (text.length + 1)));
    case "twice":
      return inside(`${/"(?:[^"\\]|\\.)*":/.exec(text)?.[0] ?? '"a":'}null,`);
    case "proto":
      return inside('"__proto__":{"admin":true},');
    case "half":
      return Buffer.from(text.replace(/:"/, ':"\\ud83d'));
    case "tail":
      return Buffer.from(`${text}}`);
    case "byte": {
      const bytes = Buffer.from(text);
      if (bytes.length > 0) bytes[nth % bytes.length] = 0xff;
      return bytes;
    }
    case "bom":
      return Buffer.from(`\ufeff${text}`);
    case "none":
      return Buffer.alloc(0);
  }
}

const asPath = (value: unknown): string =>
  encodeURIComponent(
    (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).toWellFormed(),
  ).slice(0, 4_000);

function spoilPath(path: string, { kind, at: nth, value }: Extract<Mutation, { in: "path" }>): string {
  if (kind === "query") return `${path}${path.includes("?") ? "&" : "?"}${QUERIES[nth % QUERIES.length]}`;
  const segments = path.split("/");
  segments[1 + (nth % (segments.length - 1))] = asPath(HOSTILE[value]);
  return segments.join("/");
}

/** `fill` replaces placeholders by ids that exist. */
export function toWire(ask: Ask, mutations: readonly Mutation[], fill: (text: string) => string): Wire {
  let { path, body } = ask;
  let headers: Record<string, string> = { ...ask.headers };
  let bytes: Buffer | undefined;
  for (const one of mutations) {
    if (one.in === "value" && body !== undefined) body = spoilValue(body, one);
    else if (one.in === "path") path = spoilPath(path, one);
    else if (one.in === "header") headers = { ...headers, ...HEADERS[one.which] };
  }
  const json = body === undefined ? undefined : fill(JSON.stringify(body) ?? "");
  if (json !== undefined) {
    bytes = Buffer.from(json);
    for (const one of mutations) if (one.in === "text") bytes = spoilText(bytes.toString("utf8"), one);
    headers = { "content-type": "application/json", ...headers };
  }
  const filled = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value)]));
  return { method: ask.method, path: fill(path), headers: filled, bytes };
}
