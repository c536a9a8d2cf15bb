/**
 * The OpenAPI 3.1 document, generated from the route table: schemas from zod, errors from the error table. Limit: a rule
 * over several fields is described in words.
 */
import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import type * as z from "zod";
import { ERRORS } from "../../schema/errors.ts";
import * as shapes from "../../schema/index.ts";
import type { RequestHeader, ResponseHeader, Route } from "../http/route.ts";
import { DESCRIPTIONS, type Descriptions } from "./descriptions.ts";
import { type Placed, SchemaRegistry } from "./schema-registry.ts";
import type {
  Document,
  EventStreamSpec,
  Header,
  Info,
  Named,
  Operation,
  Parameter,
  Ref,
  ResponseSpec,
  Schema,
} from "./types.ts";

const manifest: { version: string } = JSON.parse(
  readFileSync(new URL("../../../package.json", import.meta.url), "utf8"),
);
export const API_INFO: Info = {
  title: "Errand",
  version: manifest.version,
  description:
    "A delegation broker for agents that poll. Bodies are JSON in UTF-8; an absent body is `{}`. Unknown fields in the " +
    "body or query of a request are refused by name; clients ignore unknown fields in a response.",
};

/** The last segment of a route's path that is listed here decides its tag. */
const TAGS: Named<{ segments: readonly string[]; description: string }> = {
  Delegating: {
    segments: ["delegations", "results", "answers"],
    description: "Delegate work to an agent and read its results.",
  },
  Schedules: { segments: ["schedules", "runs"], description: "What is delegated again and again, and when." },
  Rules: { segments: ["rules"], description: "Standing approvals and denials of proposed actions." },
  Notifications: {
    segments: ["subscriptions", "web-push-key", "test", "links", "question"],
    description: "Who is told of questions and ends outside the console, and how.",
  },
  Working: {
    segments: ["leases", "replies"],
    description: "The worker's side: it calls the broker, never the reverse.",
  },
  Files: {
    segments: ["files", "uploads"],
    description: "Files of any size, which parts of messages and artifacts name by their URLs.",
  },
  Watching: { segments: ["events"], description: "Events as a stream or as pages." },
  Agents: { segments: ["agents"], description: "The agents that work can be delegated to." },
  Tokens: { segments: ["tokens"], description: "The tokens of principals." },
  Sessions: {
    segments: ["sessions", "codes"],
    description: "The sessions of people, and the codes that open one.",
  },
  Audit: { segments: ["audit"], description: "The log of administrative actions." },
  Status: { segments: ["status", "stats"], description: "The state of the broker, and figures of its work." },
};

const REQUEST_HEADERS: Record<RequestHeader, { description: string; schema: Schema }> = {
  "Idempotency-Key": {
    description:
      "Chosen by the client; all retries of a request have the same. Delegating: a retry with the same key and body returns the first delegation, as long as its record is kept and for at least 24 hours; 409 already_finished once the record is deleted. Answering: a repeat of the answer is recognized; the answer to a question of kind auth only by this key.",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  Prefer: {
    description: "`wait=N` waits up to N seconds, at most 60, for the result.",
    schema: { type: "string", examples: ["wait=30"] },
  },
  "If-Match": {
    description:
      "Only if the agent's settings are those of this ETag, weak tags excluded (`*`: only if it exists); otherwise 412. Presence and counts may differ.",
    schema: { type: "string", examples: ['"1764000000000-3.x"'] },
  },
  "If-None-Match": {
    description:
      "Reading: 304 if the answer still has this ETag. Changing: only if the agent's settings are not those of this ETag (`*`: only if it does not exist); otherwise 412.",
    schema: { type: "string", examples: ["*"] },
  },
  traceparent: {
    description: "W3C trace context; the worker gets it with the lease.",
    schema: { type: "string", pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$" },
  },
  Range: {
    description: "A range of bytes; the answer is then 206.",
    schema: { type: "string", examples: ["bytes=1048576-"] },
  },
  "Upload-Length": {
    description: "How many bytes the upload will have in all.",
    schema: { type: "integer", minimum: 0 },
  },
  "Upload-Defer-Length": {
    description: "The number of bytes is not known yet: the last piece says it with `Upload-Length`.",
    schema: { type: "string", enum: ["1"] },
  },
  "Upload-Offset": {
    description: "Where the bytes of the body begin: how many the upload has so far.",
    schema: { type: "integer", minimum: 0 },
  },
  "Last-Event-ID": {
    description:
      "The cursor to continue from, as a reconnecting EventSource sends it; it takes precedence over `after`.",
    schema: { type: "string" },
  },
};

const RESPONSE_HEADERS: Record<
  ResponseHeader | "Errand-Broker" | "Retry-After" | "WWW-Authenticate" | "x-request-id",
  Header
> = {
  "Errand-Broker": {
    description:
      "The id of the broker, in every response. An answer without it is of something else: a proxy, for example.",
    schema: { type: "string", pattern: "^brk_" },
  },
  ETag: {
    description:
      "The version of the agent's settings, and a hash of the whole answer; for If-Match and If-None-Match.",
    schema: { type: "string" },
  },
  Location: { description: "The path of what was created.", schema: { type: "string" } },
  "Idempotency-Replayed": {
    description: "Present if an earlier request with this key created the delegation.",
    schema: { type: "string", const: "true" },
  },
  "Retry-After": {
    description: "Seconds to wait before a retry.",
    schema: { type: "integer", minimum: 0 },
  },
  "WWW-Authenticate": { description: "The authentication scheme.", schema: { type: "string" } },
  "x-request-id": { description: "The id of this request in the log.", schema: { type: "string" } },
};

const headers = (...names: (keyof typeof RESPONSE_HEADERS)[]): Named<Ref> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
const sorted = <T>(named: Named<T>): Named<T> =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)));
const takesBody = ({ method }: Route): boolean => method === "POST" || method === "PUT" || method === "PATCH";

const isAboutFiles = ({ path }: Route): boolean => tagOf(path) === "Files";

/** Error statuses that only some routes return; all routes return the others. */
const APPLIES: Readonly<Record<number, (route: Route) => boolean>> = {
  404: ({ schemas }) => Object.keys(schemas).length > 0,
  409: ({ method }) => method !== "GET",
  412: ({ notes }) => notes?.requestHeaders?.includes("If-Match") === true,
  413: takesBody,
  415: takesBody,
  422: takesBody,
  416: ({ notes }) => notes?.sendsBytes === true,
  501: isAboutFiles,
  507: isAboutFiles,
};

/** Without 405: an operation that is described exists. */
const STATUSES = [...new Set(Object.values(ERRORS).flatMap(({ status }) => status ?? []))]
  .filter((status) => status !== 405)
  .sort();

const bodyOf = ({ schemas, notes }: Route): z.ZodType | undefined => notes?.describedBody ?? schemas.body;

/** Query parameters have their types after parsing. */
function registryOf(routes: readonly Route[], texts: Descriptions): SchemaRegistry {
  const placed = (what: string, { id }: Route, schema: z.ZodType | null | undefined): Placed[] =>
    schema ? [[`${id} ${what}`, schema]] : [];
  return new SchemaRegistry(
    routes.flatMap((route) => [
      ...placed("path", route, route.schemas.params),
      ...placed("body", route, bodyOf(route)),
    ]),
    [
      ["problem", shapes.problemSchema],
      ...routes.flatMap((route) => [
        ...Object.values(route.responses).flatMap((answer) => placed("answer", route, answer)),
        ...placed("query", route, route.schemas.query),
      ]),
    ],
    texts,
  );
}

/** The texts that the schemas have by themselves, in the bundle of scripts/descriptions.mjs. */
export const textsOf = (routes: readonly Route[]): Descriptions => registryOf(routes, {}).texts();

/** `base`: the path of the API's root. */
export function openapi(
  routes: readonly Route[],
  info: Info,
  { base = "/", texts = DESCRIPTIONS }: { readonly base?: string; readonly texts?: Descriptions } = {},
): Document {
  const registry = registryOf(routes, texts);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: describe(route, registry) };
  }
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: base }],
    security: [{ bearer: [] }],
    tags: Object.entries(TAGS).map(([name, { description }]) => ({ name, description })),
    paths: sorted(paths),
    components: {
      schemas: sorted(registry.components()),
      parameters: Object.fromEntries(
        Object.entries(REQUEST_HEADERS).map(([name, rest]) => [
          name,
          { name, in: "header", required: false, ...rest },
        ]),
      ),
      headers: RESPONSE_HEADERS,
      responses: Object.fromEntries(
        STATUSES.map((status) => [`Problem${status}`, problemSpec(status, registry)]),
      ),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A token of a principal, or a session." },
      },
    },
  };
}

function describe(route: Route, registry: SchemaRegistry): Operation {
  const { id, path, summary, description, schemas, responses, notes = {} } = route;
  const parameters = [
    ...pathParameters(schemas.params, registry),
    ...queryParameters(schemas.query, registry),
    ...(notes.requestHeaders ?? []).map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
  const done = Object.entries(responses).map(([status, answer]) => [
    status,
    {
      description: answer ? registry.meaning(answer, "output") : (STATUS_CODES[status] ?? "Done"),
      headers: headers(...(notes.responseHeaders ?? []), "Errand-Broker", "x-request-id"),
      ...(answer && { content: { "application/json": { schema: registry.show(answer, "output") } } }),
      ...(notes.sendsBytes && { content: BYTES }),
    },
  ]);
  const shown = bodyOf(route);
  const body = shown && { schema: registry.show(shown, "input") };
  const refused = STATUSES.filter((status) => APPLIES[status]?.(route) ?? true).map((status) => [
    status,
    { $ref: `#/components/responses/Problem${status}` },
  ]);
  return {
    operationId: id,
    tags: [tagOf(path)],
    summary,
    description,
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: schemas.body?.safeParse({}).success !== true,
        content: Object.fromEntries(
          (route.method === "PATCH" ? PATCH_TYPES : JSON_TYPE).map((type) => [type, body]),
        ),
      },
    }),
    ...(notes.receivesBytes && { requestBody: { required: true, content: BYTES } }),
    responses: Object.fromEntries([...done, ...refused]),
    ...(notes.streams && { "x-event-stream": EVENT_STREAM }),
    ...(notes.allowsAnonymous && { security: [{ bearer: [] }, {}] }),
  };
}

const BYTES = { "application/octet-stream": { schema: { type: "string", format: "binary" } } } as const;
const JSON_TYPE = ["application/json"];
const PATCH_TYPES = ["application/merge-patch+json", ...JSON_TYPE];

/**
 * With `Accept: text/event-stream`. It is no second media type of the answer: a generated client would then type a page as
 * "page or text".
 */
const EVENT_STREAM: EventStreamSpec = {
  description:
    "With `Accept: text/event-stream` the answer is a stream of server-sent events: `id` is the cursor, `event` the type, `data` a StreamEvent. The type `CURSOR` reports only a position: resume from its `id`.",
  schema: { $ref: "#/components/schemas/StreamEvent" },
};

/** Generators read the description of a parameter, not that of its schema. */
function withoutDescription({ description = "", ...schema }: Schema): {
  description: string;
  schema: Schema;
} {
  return { description, schema };
}

function pathParameters(params: z.ZodType | undefined, registry: SchemaRegistry): Parameter[] {
  const properties = params ? registry.show(params, "input").properties : {};
  return Object.entries(properties ?? {}).flatMap(([name, schema]) =>
    typeof schema === "boolean" ? [] : [{ name, in: "path", required: true, ...withoutDescription(schema) }],
  );
}

/** Query parameters have their types after parsing: numbers, and lists joined by commas. */
function queryParameters(query: z.ZodType | undefined, registry: SchemaRegistry): Parameter[] {
  if (!query) return [];
  const required = registry.show(query, "input").required ?? [];
  return Object.entries(registry.show(query, "output").properties ?? {}).flatMap(([name, schema]) =>
    typeof schema === "boolean"
      ? []
      : [
          {
            name,
            in: "query",
            required: required.includes(name),
            ...withoutDescription(schema),
            ...(schema.type === "array" && { style: "form", explode: false }),
          },
        ],
  );
}

function problemSpec(status: number, registry: SchemaRegistry): ResponseSpec {
  const rows = Object.entries(ERRORS).filter(([, row]) => row.status === status);
  const codes: Schema = {
    type: "object",
    properties: { status: { const: status }, code: { enum: rows.map(([code]) => code) } },
  };
  return {
    description: rows.map(([code, { title }]) => `\`${code}\`: ${title}.`).join(" "),
    headers: headers(
      ...(status === 401 ? (["WWW-Authenticate"] as const) : []),
      ...(rows.some(([, { retryable }]) => retryable) ? (["Retry-After"] as const) : []),
      "Errand-Broker",
      "x-request-id",
    ),
    content: {
      "application/problem+json": {
        schema: { allOf: [registry.show(shapes.problemSchema, "output"), codes] },
      },
    },
  };
}

const segmentsOf = (path: string): string[] => path.split("/").filter((part) => part !== "" && part !== "v1");

function tagOf(path: string): string {
  const tags = segmentsOf(path).flatMap((segment) =>
    Object.keys(TAGS).filter((name) => TAGS[name]?.segments.includes(segment)),
  );
  return tags.at(-1) ?? "Other";
}
