/**
 * The API description as one HTML page without scripts or external resources: it works offline and under a strict content
 * security policy. Limit: only the parts of OpenAPI that document.ts uses.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ERRORS } from "../../schema/errors.ts";
import { discriminatorOf } from "./schema-registry.ts";
import type { Document, Operation, Parameter, Ref, ResponseSpec, Schema } from "./types.ts";

const CSS = readFileSync(new URL("./docs-page.css", import.meta.url), "utf8");
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(CSS).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export const docsPage = (document: Document): { text: string; headers: Record<string, string> } => ({
  text: page(document).text,
  headers: {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
  },
});

/** Markup; the `html` tag escapes every plain string in it. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
type Piece = string | number | undefined | Html | readonly Piece[];

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function textOf(piece: Piece): string {
  if (piece === undefined) return "";
  if (piece instanceof Html) return piece.text;
  if (typeof piece === "string") return piece.replaceAll(/[&<>"']/g, (char) => ESCAPES[char] ?? char);
  return typeof piece === "number" ? String(piece) : piece.map(textOf).join("");
}

const html = (strings: TemplateStringsArray, ...pieces: Piece[]): Html =>
  new Html(strings.map((text, index) => text + textOf(pieces[index])).join(""));
const joined = (pieces: readonly Piece[], between: string): Piece[] =>
  pieces.flatMap((piece, index) => (index === 0 ? [piece] : [between, piece]));
const code = (text: string): Html => html`<code>${text}</code>`;
/** Text, with the parts between backticks as code. */
const words = (text: string): Piece =>
  text.split("`").map((part, index) => (index % 2 === 0 ? part : code(part)));
const table = (head: readonly string[], rows: readonly (readonly Piece[])[]): Html =>
  html`<div class="wide"><table><thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody></table></div>`;

interface Listed extends Operation {
  readonly method: string;
  readonly path: string;
}

function page(document: Document): Html {
  const { info, tags, paths, components } = document;
  const all: Listed[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  );
  const listed = new Set(tags.map(({ name }) => name));
  const rest = all.filter((operation) => !operation.tags.some((tag) => listed.has(tag)));
  const groups = [
    ...tags.map((tag) => ({ ...tag, operations: all.filter(({ tags: own }) => own.includes(tag.name)) })),
    { name: "Other", description: "", operations: rest },
  ].filter(({ operations }) => operations.length > 0);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<style>${new Html(CSS)}</style>
</head>
<body>
<nav aria-label="Contents">
<p class="title"><a href="#top">${info.title} API</a> <small>${info.version}</small></p>
${groups.map(({ name, operations }) => html`<h2>${name}</h2><ul>${operations.map(entry)}</ul>`)}
<h2>Reference</h2><ul><li><a href="#errors">Errors</a></li><li><a href="#schemas">Schemas</a></li></ul>
</nav>
<main id="top">
<h1>${info.title} API</h1>
<p>${words(info.description)}</p>
<p>Every request needs <code>Authorization: Bearer &lt;token&gt;</code>. This page is generated from
<a href="openapi.json">openapi.json</a>.</p>
${groups.map(
  ({ name, description, operations }) =>
    html`<section><h2>${name}</h2><p>${description}</p>${operations.map((one) => article(one, document))}</section>`,
)}
<section id="errors"><h2>Errors</h2>
<p>Every error is <code>application/problem+json</code>: a ${link("Problem")}.</p>
${errorTable()}</section>
<section id="schemas"><h2>Schemas</h2>
${Object.entries(components.schemas).map(
  ([name, schema]) => html`<article id="schema-${name}"><h3>${name}</h3>${shape(schema)}</article>\n`,
)}</section>
</main>
</body>
</html>
`;
}

const method = (name: string): Html => html`<b class="method ${name.toLowerCase()}">${name}</b>`;

const entry = (operation: Listed): Html =>
  html`<li><a href="#${operation.operationId}">${method(operation.method)} ${operation.summary}</a></li>\n`;

function article(operation: Listed, document: Document): Html {
  const { operationId, path, summary, description, parameters = [], requestBody, responses } = operation;
  const stream = operation["x-event-stream"];
  const { components } = document;
  const body = requestBody?.content["application/json"]?.schema;
  const rows = parameters.flatMap((one) =>
    parameterRow(isRef(one) ? components.parameters[lastOf(one)] : one),
  );
  const answers = Object.entries(responses);
  const done = answers.flatMap(([status, answer]) => (isRef(answer) ? [] : [[status, answer] as const]));
  const refused = answers.flatMap(([status, answer]) =>
    isRef(answer) ? [[status, components.responses[lastOf(answer)]] as const] : [],
  );
  return html`<article id="${operationId}">
<h3>${summary} <small><code>${operationId}</code></small></h3>
<p class="request">${method(operation.method)} <code>${path}</code></p>
<p>${words(description)}</p>
${rows.length > 0 ? html`<h4>Parameters</h4>${table(["name", "in", "type", ""], rows)}` : ""}
${body && html`<h4>Body</h4><p>${typeOf(body)}${requestBody?.required ? "" : ", or nothing"}</p>`}
<h4>Responses</h4>
${table(["status", "", "body", "headers"], done.map(answerRow))}
${stream && html`<p>${words(stream.description)} Events: ${link(lastOf(stream.schema))}.</p>`}
<p class="refusals">Errors: ${joined(
    refused.map(([status, answer]) => html`<b>${status}</b> ${joined(codesOf(answer).map(errorLink), ", ")}`),
    "; ",
  )}.</p>
</article>
`;
}

function parameterRow(parameter: Parameter | undefined): (readonly Piece[])[] {
  if (!parameter) return [];
  const { name, in: where, required, description, schema } = parameter;
  const list = parameter.explode === false ? ["separated by commas"] : [];
  return [[named(name, required), where, typeOf(schema), remarks(schema, description, list)]];
}

function answerRow([status, { description, headers = {}, content = {} }]: readonly [
  string,
  ResponseSpec,
]): Piece[] {
  const bodies = Object.values(content).map(({ schema }) => typeOf(schema));
  return [status, words(description), bodies, joined(Object.keys(headers).map(code), ", ")];
}

const isRef = (value: object): value is Ref => "$ref" in value;
const lastOf = ({ $ref }: Ref): string => $ref.slice($ref.lastIndexOf("/") + 1);
const link = (name: string): Html => html`<a href="#schema-${name}">${name}</a>`;
const errorLink = (name: string): Html => html`<a href="#error-${name}"><code>${name}</code></a>`;
const named = (name: string, required: boolean): Html =>
  html`<code>${name}</code>${required ? html` <small>required</small>` : ""}`;

/** The error codes in the schema of an error response. */
function codesOf(answer: ResponseSpec | undefined): string[] {
  const schema = answer?.content?.["application/problem+json"]?.schema;
  return (schema?.allOf ?? []).flatMap((part) => {
    const { code: listed } = part.properties ?? {};
    return (listed === undefined ? [] : (schemaOf(listed).enum ?? [])).map(String);
  });
}

function errorTable(): Html {
  return table(
    ["code", "HTTP", "category", "retry", "meaning", "recovery"],
    Object.entries(ERRORS).map(([name, error]) => [
      html`<code id="error-${name}">${name}</code>`,
      error.status ?? "on a delegation",
      error.category,
      error.retryable ? "yes" : "no",
      error.title,
      error.recovery,
    ]),
  );
}

const schemaOf = (schema: Schema | boolean | Schema["items"]): Schema =>
  typeof schema === "object" && !Array.isArray(schema) ? schema : {};

function shape(schema: Schema): Piece {
  const base = (schema.allOf ?? []).find((part) => part.$ref !== undefined);
  if (base !== undefined) {
    const more = (schema.allOf ?? []).filter((part) => part !== base);
    return html`<p>All of ${typeOf(base)}, and:</p>${more.map(shape)}`;
  }
  const text = remarks(schema, undefined, []);
  if (schema.properties === undefined) {
    const member = discriminatorOf(schema);
    return html`<p>${text}</p><p>${typeOf(schema)}${member && html`, told apart by ${code(member)}`}.</p>`;
  }
  return html`<p>${text}</p>${rules(schema)}${table(["field", "type", ""], fields(schema, ""))}`;
}

/** Which members exclude each other, or must be there. */
function rules({ oneOf = [], anyOf = [], not }: Schema): Piece {
  const names = (parts: readonly Schema[], between: string): Piece =>
    joined(
      parts.flatMap(({ required = [] }) => required.map(code)),
      between,
    );
  const apart = not === undefined ? [] : (schemaOf(not).anyOf ?? [schemaOf(not)]);
  return [
    oneOf.length > 0 && html`<p>Exactly one of ${names(oneOf, ", ")} is required.</p>`,
    anyOf.length > 0 && html`<p>At least one of ${names(anyOf, ", ")} is required.</p>`,
    apart.length > 0 &&
      html`<p>Not together: ${joined(
        apart.map((pair) => names([pair], " and ")),
        "; ",
      )}.</p>`,
  ].filter((one) => one !== false);
}

/** A row per field; nested fields are prefixed: `limits.max_attempts`, `requests[].message`. */
function fields(schema: Schema, prefix: string): (readonly Piece[])[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
    const field = schemaOf(value);
    const path = `${prefix}${name}`;
    const row = [
      named(path, schema.required?.includes(name) === true),
      typeOf(field),
      remarks(field, undefined, []),
    ];
    return [row, ...within(field, path)];
  });
}

function within(schema: Schema, path: string): (readonly Piece[])[] {
  if (schema.properties) return fields(schema, `${path}.`);
  if (schema.items !== undefined) return within(schemaOf(schema.items), `${path}[]`);
  return [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((part) => within(part, path));
}

function typeOf(schema: Schema): Piece {
  if (schema.$ref !== undefined) return link(lastOf({ $ref: schema.$ref }));
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum)
    return joined(
      schema.enum.map((value) => code(String(value))),
      " | ",
    );
  const choices = schema.anyOf ?? (schema.properties ? undefined : schema.oneOf);
  if (choices && !schema.properties) return joined(choices.map(typeOf), " | ");
  if (schema.type === "array") return ["list of ", typeOf(schemaOf(schema.items))];
  return Array.isArray(schema.type) ? schema.type.join(" | ") : (schema.type ?? "anything");
}

function remarks(schema: Schema, description: string | undefined, more: readonly string[]): Piece {
  const range = (low: number | undefined, high: number | undefined, unit: string): string[] => {
    if (low === undefined && high === undefined) return [];
    if (low === undefined) return [`at most ${high}${unit}`];
    if (low === 1 && high === undefined && unit !== "") return ["not empty"];
    return [high === undefined ? `at least ${low}${unit}` : `${low} to ${high}${unit}`];
  };
  const limits: Piece[] = [
    ...(schema.exclusiveMinimum === undefined ? [] : [`more than ${schema.exclusiveMinimum}`]),
    ...range(schema.minimum, schema.maximum, ""),
    ...range(schema.minLength, schema.maxLength, " characters"),
    ...range(schema.minItems, schema.maxItems, " entries"),
    // The format of a date says more than its pattern.
    ...(schema.format ? [schema.format] : schema.pattern ? [code(schema.pattern)] : []),
    ...(schema.default === undefined ? [] : [html`default ${code(JSON.stringify(schema.default))}`]),
    ...more,
  ];
  const text = description ?? schema.description;
  return [text === undefined ? "" : [words(text), " "], joined(limits, ", ")];
}
