/**
 * The world of the access matrix: one broker, a caller for each column, and a delegation (the subject) from alice to the
 * agent scout in the state that a row needs. Limit: one subject at a time; preparing the next one cancels the last.
 */
import { keys } from "../../../src/redis/keys.ts";
import { strictFetch } from "../../support/a2a-schema/check.ts";
import { as, client, OPERATOR } from "../../support/broker.ts";
import { fileCalls, startFileBroker } from "../../support/files.ts";
import { ownEvents } from "../../support/own-events.ts";
import { fieldsOf } from "../../support/record.ts";
import { until } from "../../support/until.ts";

/** The callers. Alice delegated the subject to scout; `nobody` has no token, an expired one or a revoked one. */
export const COLUMNS = [
  "alice",
  "scout",
  "other",
  "bob",
  "approver",
  "viewer",
  "operator",
  "nobody",
] as const;
export type Column = (typeof COLUMNS)[number];
/** They may not see the subject: for them it must not exist. */
export const STRANGERS: readonly Column[] = ["other", "bob"];

/**
 * The meaning of a cell:
 * ok: it is done · sees, blind: the list in the answer contains the subject or does not · 401: no valid token ·
 * 403: forbidden · 404|401: 404 without a token, 401 with one that is not valid · 404: it does not exist, for this caller · loop: an agent may not delegate to itself
 */
export const WORDS = ["ok", "sees", "blind", "401", "403", "404", "404|401", "loop"] as const;
export type Word = (typeof WORDS)[number];

export type Row = Readonly<Record<Column, string>>;
export type Rows = Readonly<Record<string, Row>>;

/** A table: the columns in its first line, then a line for each row, its name first. */
export function rowsOf(table: string): Rows {
  const [head = "", ...lines] = table.split("\n").filter((line) => line.trim() !== "");
  const columns = head.trim().split(/\s+/);
  if (columns.join() !== COLUMNS.join()) throw new TypeError(`the columns are ${COLUMNS.join(", ")}`);
  return Object.fromEntries(
    lines.map((line) => {
      const words = line.trim().split(/\s+/);
      const cells = words.slice(-COLUMNS.length);
      if (!cells.every(isWord)) throw new TypeError(`no words of the table: ${line}`);
      return [words.slice(0, -COLUMNS.length).join(" "), toRow(cells)];
    }),
  );
}

export function toRow([
  alice,
  scout,
  other,
  bob,
  approver,
  viewer,
  operator,
  nobody,
]: readonly string[]): Row {
  const cell = (text: string | undefined) => text ?? "?";
  return {
    alice: cell(alice),
    scout: cell(scout),
    other: cell(other),
    bob: cell(bob),
    approver: cell(approver),
    viewer: cell(viewer),
    operator: cell(operator),
    nobody: cell(nobody),
  };
}

const isWord = (text: string): boolean => WORDS.some((word) => word === text);

const WORD_OF_CODE: Readonly<Record<string, Word>> = {
  unauthenticated: "401",
  forbidden: "403",
  delegation_not_found: "404",
  lease_unknown: "404",
  reply_unknown: "404",
  file_not_found: "404",
  upload_not_found: "404",
  not_found: "404",
  TASK_NOT_FOUND: "404",
  delegation_loop: "loop",
};

/**
 * The state of the subject; `spare` adds an agent of that name, and a token and a session that nobody uses; `filed`:
 * alice has uploaded a file that the subject names, and has begun an upload; `scheduled`: alice has a schedule;
 * `ruled`: she has a rule; `subscribed`: she has a subscription.
 */
export type Stage =
  | "spare"
  | "submitted"
  | "watched"
  | "working"
  | "asking"
  | "answered"
  | "leading"
  | "failed"
  | "filed"
  | "scheduled"
  | "ruled"
  | "subscribed";

export interface Subject {
  readonly id: string;
  readonly context: string;
  readonly lease: string;
  readonly interrupt: string;
  readonly request: string;
  readonly child: string;
  readonly spareToken: string;
  readonly spareSession: string;
  readonly file: string;
  readonly upload: string;
  readonly schedule: string;
  readonly rule: string;
  readonly subscription: string;
}

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Received {
  readonly status: number;
  // The test speaks the wire format directly.
  readonly body: ReturnType<typeof JSON.parse>;
  readonly text: string;
}

export async function openWorld() {
  // No client here answers MCP pings.
  const broker = await startFileBroker({}, { callbackAllow: ["127.0.0.1"], mcpPingMs: 50 });
  const { url } = broker;
  const admin = client(url);
  await admin.agent("scout");
  await admin.agent("other");
  const make = async (principal: string, more: Record<string, unknown> = {}) =>
    (await admin.call("POST", "/v1/tokens", { principal, ...more })).body;
  const token = async (principal: string) => String((await make(principal)).token);
  const [alice, scout] = [await as(url, "caller:alice"), await as(url, "agent:scout")];
  const revoked = await make("agent:scout");
  await admin.call("DELETE", `/v1/tokens/${revoked.id}`);
  const known: Readonly<Record<Exclude<Column, "nobody">, readonly (string | null)[]>> = {
    alice: [alice.token],
    scout: [scout.token],
    other: [await token("agent:other")],
    bob: [await token("caller:bob")],
    approver: [await token("approver:ann")],
    viewer: [await token("viewer:eve")],
    operator: [OPERATOR],
  };
  // Created last: creating a token deletes expired ones.
  const expired = await make("agent:scout", { expires_in_seconds: 0.05 });
  await until(() => Date.parse(expired.expires_at) < Date.now(), { what: "the token's end" });
  const tokens: Readonly<Record<Column, readonly (string | null)[]>> = {
    ...known,
    nobody: [null, String(expired.token), String(revoked.token)],
  };

  /** Leases the subject; leftovers of earlier subjects may come before it. */
  async function leaseOf(id: string): Promise<string> {
    const { leases } = (await scout.lease("scout", { max: 32 })).body;
    const found = leases.find((one: { delegation: { id: string } }) => one.delegation.id === id);
    return found ? found.lease_id : leaseOf(id);
  }

  async function prepare(stage: Stage): Promise<Subject> {
    const isLeased = ["working", "asking", "answered", "leading", "failed"].includes(stage);
    // The high priority puts it before work left over by other rows.
    const files = fileCalls(url, alice.token);
    const file = stage === "filed" ? (await files.upload("content")).body : undefined;
    const naming = file && { message: { parts: [{ url: file.url }] } };
    const { id, context_id: context } = (
      await alice.delegate("scout", { priority: isLeased ? 9 : 0, ...naming })
    ).body;
    const made: Subject = {
      id,
      context,
      lease: "",
      interrupt: "",
      request: "",
      child: "",
      spareToken: "",
      spareSession: "",
      file: file?.id ?? "",
      upload: file ? (await files.begin(3)).body.id : "",
      schedule: "",
      rule: "",
      subscription: "",
    };
    if (stage === "scheduled") {
      const delegation = { target: "scout", task: "do it", context_id: context };
      const schedule = { every_seconds: 3600, paused: true, delegation };
      return { ...made, schedule: (await alice.call("POST", "/v1/schedules", schedule)).body.id };
    }
    if (stage === "ruled") {
      const rule = { agent: "scout", action: "write", decision: "approve", note: context };
      return { ...made, rule: (await alice.call("POST", "/v1/rules", rule)).body.id };
    }
    if (stage === "subscribed") {
      const subscription = {
        events: ["ended"],
        deliver: [{ kind: "webhook", url: "https://example.com/hook" }],
      };
      return { ...made, subscription: (await alice.call("POST", "/v1/subscriptions", subscription)).body.id };
    }
    if (stage === "spare") {
      await admin.agent("spare");
      const spare = await as(url, "caller:spare");
      const session = await spare.call("POST", "/v1/sessions");
      return { ...made, spareToken: spare.tokenId, spareSession: session.body.id };
    }
    // A push config of alice's.
    if (stage === "watched")
      await alice.call("POST", "/a2a/scout/rpc", pushConfig(id), { "a2a-version": "1.0" });
    if (!isLeased) return made;
    const lease = await leaseOf(id);
    if (stage === "leading") {
      const child = (await alice.delegate("other", { parent_id: id })).body.id;
      return { ...made, lease, child };
    }
    if (stage === "failed") {
      await scout.reply(lease, { state: "failed", error: { code: "no", message: "no" } });
    } else if (stage === "asking" || stage === "answered") {
      await scout.interrupt(lease, { text: "may I?", request_id: "r1", hold: stage === "answered" });
      const { interrupt } = (await alice.get(id)).body;
      if (stage === "answered")
        await alice.call("POST", `/v1/delegations/${id}/answer`, { interrupt_id: interrupt.id, text: "yes" });
      return { ...made, lease, interrupt: interrupt.id, request: "r1" };
    }
    return { ...made, lease };
  }

  /** Everything that the broker stores about it. */
  const kept = async (subject: Subject) => ({
    ...(await fieldsOf(broker.redis, `{errand:0}:d:${subject.id}`)),
    events: (await ownEvents(broker.redis, subject.id)).length,
    schedule: await broker.redis.hgetall(keys.schedule(subject.schedule)),
    subscription: await broker.redis.hgetall(keys.subscription(subject.subscription)),
  });

  return { ...broker, tokens, prepare, kept };
}
export type World = Awaited<ReturnType<typeof openWorld>>;

const pushConfig = (taskId: string) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "CreateTaskPushNotificationConfig",
  params: { taskId, id: "mine", url: NOBODY_LISTENS },
});

/** Pushes to this URL fail. */
export const NOBODY_LISTENS = "http://127.0.0.1:9/hook";

/** Sends one request; reads a stream up to the first message. */
export async function send(url: string, token: string | null, ask: Ask): Promise<Received> {
  const gone = new AbortController();
  const fetchIt = ask.path.startsWith("/a2a/") ? strictFetch : fetch;
  const response = await fetchIt(`${url}${ask.path}`, {
    method: ask.method,
    headers: {
      accept: "application/json, text/event-stream",
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(ask.body !== undefined && { "content-type": "application/json" }),
      ...ask.headers,
    },
    ...(ask.body !== undefined && { body: JSON.stringify(ask.body) }),
    signal: gone.signal,
  });
  const isStream = response.headers.get("content-type")?.includes("event-stream") === true;
  const text = isStream ? await firstData(response) : await response.text();
  gone.abort();
  return { status: response.status, body: parsed(text), text };
}

/** The first message of a stream, without MCP pings before it. */
async function firstData(response: Response): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const found = /^data: (?!.*"method":"(?:ping|notifications\/cancelled)")(.+)\n\n/m.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  return text;
}

function parsed(text: string): ReturnType<typeof JSON.parse> {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The code of an error in the format of each API; undefined if it is not an error. */
function codeOf({ body, status }: Received): string | undefined {
  const isRpc = body?.jsonrpc !== undefined && (body.error || body.result);
  if (isRpc && body.result) return body.result.isError ? body.result.structuredContent.error.code : undefined;
  if (status < 400 && !isRpc)
    return body?.results?.[0]?.status >= 400 ? body.results[0].error.code : undefined;
  const info = body?.error?.details?.[0] ?? body?.error?.data?.[0] ?? body?.data?.[0];
  return body?.error?.data?.code ?? info?.metadata?.code ?? info?.reason ?? body?.code ?? `status ${status}`;
}

/** A response as a word of the table; a code without a word stands for itself. */
export function wordOf(received: Received, subject: Subject, isList: boolean): string {
  const code = codeOf(received);
  if (code !== undefined) return WORD_OF_CODE[code] ?? code;
  if (!isList) return "ok";
  return received.text.includes(subject.id) ? "sees" : "blind";
}

const core = ({ id }: Subject): string => id.slice("dlg_".length);
const other = (subject: Subject): string => core(subject).replace(/.{4}$/, "zzzz");

/** The same subject with ids that are well-formed and unknown. */
export const unknownOf = (subject: Subject): Subject => ({
  ...subject,
  id: subject.id.replace(core(subject), other(subject)),
  lease: subject.lease.replace(core(subject), other(subject)),
  file: subject.file.replace(/.{4}$/, "0000"),
  upload: subject.upload.replace(/.{4}$/, "zzzz"),
  schedule: subject.schedule.replace(/.{4}$/, "zzzz"),
  rule: subject.rule.replace(/.{4}$/, "zzzz"),
  subscription: subject.subscription.replace(/.{4}$/, "zzzz"),
});

/** Without values that always differ: the ids of the subject and of requests. */
export const shapeOf = ({ status, text }: Received, subject: Subject): { status: number; text: string } => ({
  status,
  text: text
    .replaceAll(core(subject), "<id>")
    .replaceAll(/fil_[0-9a-f_]+/g, "<file>")
    .replaceAll(/upl_[0-9a-z]+/g, "<upload>")
    .replaceAll(/sch_[0-9a-z]+/g, "<schedule>")
    .replaceAll(/rul_[0-9a-z]+/g, "<rule>")
    .replaceAll(/sub_[0-9a-z]+/g, "<subscription>")
    .replaceAll(/req_[0-9a-z]+/g, "<request>")
    .replaceAll(/"id":\d+/g, '"id":"<call>"'),
});
