/**
 * OpenAPI 3.1 from the route table: shapes from zod, errors from the error table. Limit: a rule that spans
 * several fields is told in words, those of its check.
 */
import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import type { z } from "zod";
import { ERRORS } from "../../schema/errors.ts";
import * as shapes from "../../schema/index.ts";
import type { RequestHeader, ResponseHeader, Route } from "../http/route.ts";
import { capital, SchemaRegistry } from "./schema-registry.ts";
import type {
  Document,
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
    "A delegation broker for agents that poll. JSON in UTF-8; an absent body is `{}`. An unknown field of a " +
    "request, in the body or in the query, is refused and named; unknown fields of an answer are to be ignored.",
};

/** A route belongs to the last segment of its path that is listed here. */
const TAGS: Named<{ segments: readonly string[]; description: string }> = {
  Delegating: { segments: ["delegations", "results"], description: "Hand work to an agent and follow it." },
  Working: { segments: ["leases", "replies"], description: "The agent's side: outbound HTTP only." },
  Watching: { segments: ["events"], description: "Events as a stream, or as pages for those who poll." },
  Agents: { segments: ["agents"], description: "Who can be delegated to." },
  Tokens: { segments: ["tokens"], description: "Who may call." },
  Audit: { segments: ["audit"], description: "Who changed what." },
  Status: { segments: ["status"], description: "How the broker is." },
};

const REQUEST_HEADERS: Record<RequestHeader, { description: string; schema: Schema }> = {
  "Idempotency-Key": {
    description:
      "The same key and body return the first delegation, for as long as its record is kept and at least 24 hours; 409 already_finished once the record is deleted.",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  Prefer: {
    description: "`wait=N` lets the answer wait up to N seconds, at most 60.",
    schema: { type: "string", examples: ["wait=30"] },
  },
  "If-Match": {
    description: "Change the agent only while it has this ETag (`*`: only if it exists); otherwise 412.",
    schema: { type: "string", examples: ['"1764000000000-3"'] },
  },
  "If-None-Match": {
    description: "`*`: create the agent only if it does not exist; otherwise 412.",
    schema: { type: "string", examples: ["*"] },
  },
  traceparent: {
    description: "W3C trace context; handed to the agent with the lease.",
    schema: { type: "string", pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$" },
  },
  "Last-Event-ID": {
    description: "The cursor to go on from, as a reconnecting EventSource sends it; `after` goes first.",
    schema: { type: "string" },
  },
};

const ANSWER_HEADERS: Record<ResponseHeader | "Retry-After" | "WWW-Authenticate" | "x-request-id", Header> = {
  ETag: {
    description: "Names this state of the agent's settings, for If-Match.",
    schema: { type: "string" },
  },
  Location: { description: "The path of the delegation.", schema: { type: "string" } },
  "Idempotency-Replayed": {
    description: "There when an earlier request with this key made the delegation.",
    schema: { type: "string", const: "true" },
  },
  "Retry-After": { description: "Seconds to wait before a retry.", schema: { type: "integer", minimum: 0 } },
  "WWW-Authenticate": { description: "The scheme to authenticate by.", schema: { type: "string" } },
  "x-request-id": { description: "Names this request in the log.", schema: { type: "string" } },
};

const headers = (...names: (keyof typeof ANSWER_HEADERS)[]): Named<Ref> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
const sorted = <T>(named: Named<T>): Named<T> =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)));
const takesBody = ({ method }: Route): boolean => method === "POST" || method === "PUT" || method === "PATCH";

/** Statuses that only some routes refuse with; the others are for all. */
const FITS: Readonly<Record<number, (route: Route) => boolean>> = {
  404: ({ schemas }) => Object.keys(schemas).length > 0,
  409: ({ method }) => method !== "GET",
  412: ({ notes }) => notes?.takes?.includes("If-Match") === true,
  413: takesBody,
  415: takesBody,
  422: takesBody,
};

const STATUSES = [...new Set(Object.values(ERRORS).flatMap(({ status }) => status ?? []))].sort();

export function openapi(routes: readonly Route[], info: Info): Document {
  const answered = routes.flatMap(({ responses }) =>
    Object.values(responses).flatMap((answer) => answer ?? []),
  );
  const shelf = new SchemaRegistry(
    routes.flatMap(({ schemas }) => [schemas.params ?? [], schemas.body ?? []].flat()),
    [shapes.problemSchema, ...answered, ...routes.flatMap(({ schemas }) => schemas.query ?? [])],
  );
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: describe(route, shelf) };
  }
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: "/" }],
    security: [{ bearer: [] }],
    tags: Object.entries(TAGS).map(([name, { description }]) => ({ name, description })),
    paths: sorted(paths),
    components: {
      schemas: sorted(shelf.components()),
      parameters: Object.fromEntries(
        Object.entries(REQUEST_HEADERS).map(([name, rest]) => [
          name,
          { name, in: "header", required: false, ...rest },
        ]),
      ),
      headers: ANSWER_HEADERS,
      responses: Object.fromEntries(STATUSES.map((status) => [`Problem${status}`, refusal(status, shelf)])),
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "A token of a principal." } },
    },
  };
}

function describe(route: Route, shelf: SchemaRegistry): Operation {
  const { path, summary, schemas, responses, notes = {} } = route;
  const parameters = [
    ...pathParameters(schemas.params, shelf),
    ...queryParameters(schemas.query, shelf),
    ...(notes.takes ?? []).map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
  const done = Object.entries(responses).map(([status, answer]) => [
    status,
    {
      description: STATUS_CODES[status] ?? "Done",
      headers: headers(...(notes.gives ?? []), "x-request-id"),
      ...(answer && {
        content: {
          "application/json": { schema: shelf.show(answer, "output") },
          ...(notes.streams && status === "200" && { "text/event-stream": { schema: EVENT_STREAM } }),
        },
      }),
    },
  ]);
  const body = schemas.body && { schema: shelf.show(schemas.body, "input") };
  const refused = STATUSES.filter((status) => FITS[status]?.(route) ?? true).map((status) => [
    status,
    { $ref: `#/components/responses/Problem${status}` },
  ]);
  return {
    operationId: operationId(route),
    tags: [tagOf(path)],
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: schemas.body?.safeParse({}).success !== true,
        content: Object.fromEntries(
          (route.method === "PATCH" ? PATCH_TYPES : JSON_TYPE).map((type) => [type, body]),
        ),
      },
    }),
    responses: Object.fromEntries([...done, ...refused]),
  };
}

const JSON_TYPE = ["application/json"];
const PATCH_TYPES = ["application/merge-patch+json", ...JSON_TYPE];

const EVENT_STREAM: Schema = {
  type: "string",
  description:
    "Server-sent events, each with the cursor as its `id`, the type as its `event`, a StreamEvent as its `data`.",
};

function pathParameters(params: z.ZodType | undefined, shelf: SchemaRegistry): Parameter[] {
  const properties = params ? shelf.show(params, "input").properties : {};
  return Object.entries(properties ?? {}).flatMap(([name, schema]) =>
    typeof schema === "boolean" ? [] : [{ name, in: "path", required: true, schema }],
  );
}

/** As they are understood, not as text: a number is a number, a list is joined by commas. */
function queryParameters(query: z.ZodType | undefined, shelf: SchemaRegistry): Parameter[] {
  if (!query) return [];
  const required = shelf.show(query, "input").required ?? [];
  return Object.entries(shelf.show(query, "output").properties ?? {}).flatMap(([name, schema]) =>
    typeof schema === "boolean"
      ? []
      : [
          {
            name,
            in: "query",
            required: required.includes(name),
            schema,
            ...(schema.type === "array" && { style: "form", explode: false }),
          },
        ],
  );
}

function refusal(status: number, shelf: SchemaRegistry): ResponseSpec {
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
      "x-request-id",
    ),
    content: {
      "application/problem+json": {
        schema: { allOf: [shelf.show(shapes.problemSchema, "output"), codes] },
      },
    },
  };
}

const isParameter = (segment: string | undefined): boolean => segment?.startsWith("{") === true;
const segmentsOf = (path: string): string[] => path.split("/").filter((part) => part !== "" && part !== "v1");

/** `POST /v1/leases/{lease_id}/heartbeat` is `postLeaseHeartbeat`. */
function operationId({ method, path }: Route): string {
  const segments = segmentsOf(path);
  const words = segments.flatMap((segment, index) =>
    isParameter(segment)
      ? []
      : [capital(isParameter(segments[index + 1]) ? segment.replace(/s$/, "") : segment)],
  );
  return method.toLowerCase() + words.join("");
}

function tagOf(path: string): string {
  const tags = segmentsOf(path).flatMap((segment) =>
    Object.keys(TAGS).filter((name) => TAGS[name]?.segments.includes(segment)),
  );
  return tags.at(-1) ?? "Other";
}
