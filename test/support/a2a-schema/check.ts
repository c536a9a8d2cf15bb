/**
 * Checks what an A2A server sends against the closed schemas: cards, results, events, errors and push notifications.
 * Tests call A2A by {@link strictFetch}, so that every response of theirs is checked. Limit: of HTTP+JSON 0.3 only the
 * errors, and not the combined card, which belongs to no version.
 */
import { closed } from "./closed.ts";
import { RESULTS_V1, V1 } from "./v1.ts";
import { RESULTS_V03, V03 } from "./v03.ts";

type Version = "1.0" | "0.3";
const SCHEMAS = { "1.0": closed(V1), "0.3": closed(V03) } as const;
const ENVELOPE = closed({
  Result: { fields: { jsonrpc: "'2.0'!", id: "id!", result: "value!" } },
  Failure: { fields: { jsonrpc: "'2.0'!", id: "id!", error: "value!" } },
});

const MAX_SHOWN = 2_000;
let checks = 0;
/** How many values were checked so far. */
export const checkCount = (): number => checks;

/** Throws if the value is not exactly a `type` of the version. */
export function requireValid(version: Version, type: string, value: unknown): void {
  checks += 1;
  requireBy(SCHEMAS[version](type), `${type} of A2A ${version}`, value);
}

function requireBy(validate: ReturnType<(typeof SCHEMAS)[Version]>, what: string, value: unknown): void {
  if (validate(value)) return;
  const problems = (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`,
  );
  throw new Error(`not a ${what}:\n${problems.join("\n")}\n${JSON.stringify(value)?.slice(0, MAX_SHOWN)}`);
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** A response to JSON-RPC, or an event of its stream. `method` is undefined if the request named none. */
function requireRpc(version: Version, method: string | undefined, body: unknown): void {
  const error = memberOf(body, "error");
  if (error !== undefined) {
    requireBy(ENVELOPE("Failure"), "JSON-RPC error", body);
    requireValid(version, "RpcError", error);
    return;
  }
  requireBy(ENVELOPE("Result"), "JSON-RPC response", body);
  const type = (version === "1.0" ? RESULTS_V1 : RESULTS_V03)[method ?? ""];
  if (type === undefined) throw new Error(`a result for the method ${method}`);
  requireValid(version, type, memberOf(body, "result"));
}

const CONFIGS = "TaskPushNotificationConfig";
/** The operation of an HTTP+JSON request of 1.0. */
const OPERATIONS: readonly (readonly [request: RegExp, name: string])[] = [
  [/^POST message:send$/, "SendMessage"],
  [/^POST message:stream$/, "SendStreamingMessage"],
  [/^GET extendedAgentCard$/, "GetExtendedAgentCard"],
  [/^GET tasks$/, "ListTasks"],
  [/^GET tasks\/[^/:]+$/, "GetTask"],
  [/^POST tasks\/[^/:]+:cancel$/, "CancelTask"],
  [/^(?:GET|POST) tasks\/[^/:]+:subscribe$/, "SubscribeToTask"],
  [/^POST tasks\/[^/]+\/pushNotificationConfigs$/, `Create${CONFIGS}`],
  [/^GET tasks\/[^/]+\/pushNotificationConfigs$/, `List${CONFIGS}s`],
  [/^GET tasks\/[^/]+\/pushNotificationConfigs\/[^/]+$/, `Get${CONFIGS}`],
];

function resultOf(request: string): string {
  const [, name = ""] = OPERATIONS.find(([pattern]) => pattern.test(request)) ?? [];
  const type = RESULTS_V1[name];
  if (type === undefined) throw new Error(`a result for ${request}`);
  return type;
}

/** A response to HTTP+JSON, or an event of its stream. */
function requireRest(version: Version, request: string, isError: boolean, body: unknown): void {
  if (isError) requireValid(version, version === "1.0" ? "HttpError" : "RpcError", body);
  else if (version === "1.0") requireValid(version, resultOf(request), body);
}

/** The form of a response: errors are in 1.0's if the version is not supported. */
function versionOf(url: URL, headers: Headers): Version {
  const asked = (headers.get("a2a-version") || url.searchParams.get("A2A-Version") || "").trim();
  return asked === "" || /^0\.3(?:\.|$)/.test(asked) ? "0.3" : "1.0";
}

interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: unknown;
}

type Check = (event: { readonly name: string; readonly text: string }) => void;

/** Checks a body, or each event of a stream; null for what is not A2A. */
function checkOf({ method, url, headers, body }: Asked, status: number): Check | null {
  const [, api = "", path = ""] =
    /^\/a2a\/[^/]+\/(rpc|rest|cards|\.well-known\/agent-card\.json)(?:\/(.*))?$/.exec(url.pathname) ?? [];
  const version = versionOf(url, headers);
  switch (api) {
    case "":
      return null;
    case "rpc": {
      const named = memberOf(parse(String(body)), "method");
      return ({ text }) => requireRpc(version, typeof named === "string" ? named : undefined, parse(text));
    }
    case "rest": {
      const verb = `${method} ${path.replace(/\/$/, "")}`;
      return ({ name, text }) => requireRest(version, verb, status >= 400 || name === "error", parse(text));
    }
    default: {
      // An unknown agent has no A2A server that could answer.
      if (status !== 200) return null;
      const asked = (headers.get("a2a-version") || url.searchParams.get("A2A-Version") || "").trim();
      const form =
        api === "cards"
          ? path.replace(/\.json$/, "")
          : /^(?:1\.0|0\.3)(?:\.\d+)*$/.exec(asked)?.[0].slice(0, 3);
      if (form !== "1.0" && form !== "0.3") return null;
      return ({ text }) => requireValid(form, form === "1.0" ? "AgentCard" : "Card", parse(text));
    }
  }
}

const failures: unknown[] = [];

/** Throws the first error of a stream since the last call: its reader may have taken it for the end. */
export function requireValidStreams(): void {
  const [first] = failures.splice(0);
  if (first !== undefined) throw first;
}

/** Passes a stream on, and breaks it at the first event that is not valid. */
function checkedStream(check: Check): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let rest = "";
  let name = "";
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("event: ")) name = line.slice("event: ".length);
        try {
          if (line.startsWith("data: ")) check({ name, text: line.slice("data: ".length) });
        } catch (error) {
          failures.push(error);
          throw error;
        }
        if (line === "") name = "";
      }
      controller.enqueue(chunk);
    },
  });
}

/** Like fetch; the response of an A2A server must be valid, and each event of its stream. */
export const strictFetch: typeof fetch = async (input, init = {}) => {
  const response = await fetch(input, init);
  const asked = input instanceof Request ? input : new Request(input, { method: init.method ?? "GET" });
  const headers = new Headers(init.headers ?? asked.headers);
  const check = checkOf(
    { method: asked.method, url: new URL(asked.url), headers, body: init.body },
    response.status,
  );
  const { status, statusText, body } = response;
  if (!check || !body) return response;
  const again = { status, statusText, headers: response.headers };
  if (/^text\/event-stream/.test(response.headers.get("content-type") ?? ""))
    return new Response(body.pipeThrough(checkedStream(check)), again);
  const text = await response.text();
  // An empty body is a response without content.
  if (text !== "") check({ name: "", text });
  return new Response(text, again);
};

/** A push notification: 1.0 has a media type of its own. */
export function requireValidPush(contentType: string | undefined, body: string): void {
  const isCurrent = contentType?.startsWith("application/a2a+json") ?? false;
  requireValid(isCurrent ? "1.0" : "0.3", isCurrent ? "StreamResponse" : "Task", parse(body));
}
