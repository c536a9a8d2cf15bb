/** The words of the API description: everything has some, taken from the comments on the schemas and not from errors. */
import { expect, test } from "vitest";
import * as z from "zod";
import { withDescriptions } from "../../../scripts/descriptions.mjs";
import { ROUTES } from "../../../src/doors/http/app.ts";
import { placesIn } from "../../../src/doors/openapi/descriptions.ts";
import { API_INFO, openapi } from "../../../src/doors/openapi/document.ts";
import type { Schema } from "../../../src/doors/openapi/types.ts";

const document = openapi(ROUTES, API_INFO);
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** Every schema, with its place; those in components first. */
const places: [string, Schema][] = [
  ...Object.entries(document.components.schemas).flatMap(([name, schema]) => placesIn(name, schema)),
  ...operations.flatMap(({ operationId, parameters = [], requestBody, responses }) => [
    ...parameters.flatMap((one) =>
      "schema" in one ? placesIn(`${operationId} ${one.name}`, one.schema) : [],
    ),
    ...contentsOf(`${operationId} body`, requestBody),
    ...Object.entries(responses).flatMap(([status, one]) => contentsOf(`${operationId} ${status}`, one)),
  ]),
];

function contentsOf(place: string, body: object | undefined): [string, Schema][] {
  if (body === undefined || !("content" in body) || !isObject(body.content)) return [];
  return Object.values(body.content).flatMap(({ schema }) => placesIn(place, schema));
}

test("every schema, member, parameter, operation, header and response is described", () => {
  const described: [string, { description?: string | undefined }][] = [
    ...Object.entries(document.components.schemas).filter(([, { allOf }]) => allOf === undefined),
    ...places.filter(([place]) => /\.\w+$/.test(place)),
    ...Object.entries(document.components.parameters),
    ...Object.entries(document.components.headers),
    ...Object.entries(document.components.responses),
    ...operations.flatMap(({ operationId, parameters = [], responses }) => [
      ...parameters.flatMap((one) => ("name" in one ? [[`${operationId} ${one.name}`, one] as const] : [])),
      ...Object.entries(responses).flatMap(([status, one]) =>
        "description" in one ? [[`${operationId} ${status}`, one] as const] : [],
      ),
    ]),
    ...operations.map((one) => [one.operationId, one] as const),
  ].map(([place, one]) => [place, one]);
  expect(described.length).toBeGreaterThan(700);
  const faults = described.filter(([, { description = "" }]) => !/^\S(?:.*\S)?$/s.test(description));
  expect(faults.map(([place]) => place)).toEqual([]);
  for (const { summary, description } of operations) {
    expect(summary).toMatch(/^[A-Z].{3,60}[^.]$/);
    expect(description).toMatch(/^[A-Z].*\.$/s);
  }
});

/** What a schema says about a value that it refuses, and the schemas in it. */
function errorTexts(schema: unknown, seen: Set<unknown>): string[] {
  if (!(schema instanceof z.ZodType) || seen.has(schema)) return [];
  seen.add(schema);
  const { def } = schema;
  const own = [def, ...(def.checks ?? []).map((check) => check._zod.def)].flatMap(({ error }) => {
    if (error === undefined) return [];
    const text: unknown = Reflect.apply(error, undefined, [{ code: "custom", path: [] }]);
    return typeof text === "string" ? [text] : [];
  });
  const inner = Object.values(def).flatMap((one) =>
    isObject(one) && !(one instanceof z.ZodType) ? Object.values(one) : [one],
  );
  return [...own, ...inner.flatMap((one) => errorTexts(one, seen))];
}

test("no description is the text of an error", () => {
  const seen = new Set<unknown>();
  const texts = ROUTES.flatMap(({ schemas }) =>
    Object.values(schemas).flatMap((one) => errorTexts(one, seen)),
  );
  expect(texts.length).toBeGreaterThan(30);
  const errors = new Set(texts.map((text) => text.toLowerCase().replace(/\.$/, "")));
  const faults = places.filter(([, { description = "" }]) =>
    errors.has(description.toLowerCase().replace(/\.$/, "")),
  );
  expect(faults).toEqual([]);
});

/** Members whose values may be anything, and why. */
const ANYTHING: readonly [RegExp, string][] = [
  [
    /^(?:Part|Answer|AnswerRequest|GivenAnswer|QuestionVotes\.answers\{\})(?:\|\d)?\.data$/,
    "any JSON value of the agent or the caller",
  ],
  [/^(?:ArgumentConstraint|RuleRequest\.arguments\[\])\.equals$/, "any JSON value, which an argument may be"],
  [/^Change\.(?:from|to)$/, "a value among the arguments of an action"],
  [/\.options\[\]$/, "a choice may be any JSON value"],
  [/^JsonObject\{\}$/, "the members of an object that the broker does not read"],
  [/\{\}$/, "further members of an A2A object, which pass through, and members that a later version adds"],
  [/(?:^|\.)(?:JsonSchema|schema|result_schema)$/, "a JSON Schema"],
];

test("no value is unknown but those that may be anything", () => {
  const unknown = places.filter(([, schema]) => {
    const { description: _text, ...rest } = schema;
    return Object.keys(rest).length === 0;
  });
  const names = unknown.map(([place]) => place);
  expect(names.filter((place) => !ANYTHING.some(([pattern]) => pattern.test(place)))).toEqual([]);
  for (const [pattern] of ANYTHING)
    expect([pattern, names.some((one) => pattern.test(one))]).toEqual([pattern, true]);
});

test("a default is in the words of a request, because generators take a member with one for required", () => {
  expect(places.filter(([place, schema]) => "default" in schema && !/ \w+$/.test(place))).toEqual([]);
  const { DelegateRequest, LeaseRequest } = document.components.schemas;
  const texts = [DelegateRequest?.properties?.priority, LeaseRequest?.properties?.wait_seconds];
  expect(texts).toEqual([
    expect.objectContaining({ description: expect.stringMatching(/Default 5\.$/) }),
    expect.objectContaining({ description: expect.stringMatching(/Default: `20`\.$/) }),
  ]);
  expect(DelegateRequest?.required).toEqual(["target"]);
});

test("comments become descriptions wherever zod takes the schema from", () => {
  const source = `/** The head. */
import * as z from "zod";
const more = { /** One. */ one: z.string() };
/** For people who maintain it. */
const hidden = z.string();
/** An example, see {@link more}. */
export const exampleSchema = z.object({
  ...more,
  /**
   * Two lines
   * are one.
   */
  two: hidden.optional(),
  /** Three. */
  hidden,
  // Not this.
  four: z.string(),
});
/**
 * The type.
 * @example none
 */
export type Example = z.infer<typeof exampleSchema>;
`;
  const described = withDescriptions("example.ts", source);
  expect(described).toContain('one: describedMember(z.string(), "One.")');
  expect(described).toContain('two: describedMember(hidden.optional(), "Two lines are one.")');
  expect(described).toContain('hidden: describedMember(hidden, "Three.")');
  expect(described).toContain("four: z.string()");
  expect(described).toContain('describeConstant(exampleSchema, "The type. An example, see `more`.");');
  expect(described).not.toContain("describeConstant(hidden");
});
