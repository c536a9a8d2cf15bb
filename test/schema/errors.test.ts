/** What a recovery names is in the error. The types of `ErrandError` and `failure` then hold every place to it. */
import { expect, test } from "vitest";
import { toFailure } from "../../src/doors/a2a/errors.ts";
import { toToolError } from "../../src/doors/mcp/errors.ts";
import { RECOVERIES } from "../../src/doors/mcp/recoveries.ts";
import { ERRORS, ErrandError, isErrorCode, NAMED_DETAILS } from "../../src/schema/errors.ts";
import { createLog } from "../../src/telemetry/log.ts";

const NAMED: Readonly<Record<string, string>> = NAMED_DETAILS;
/** A condition on a detail is none: `If details.quota is …`. */
const detailsIn = (text: string) =>
  [...text.replaceAll(/If details\.\w+/g, "").matchAll(/details\.(\w+)/g)].map(([, name]) => name);

test("the details that a recovery names are listed, for HTTP, the CLI and MCP", () => {
  const found = Object.entries(ERRORS).flatMap(([code, row]) =>
    "recovery" in row && detailsIn(row.recovery).length > 0 ? [[code, detailsIn(row.recovery).join()]] : [],
  );
  expect(Object.fromEntries(found)).toEqual(NAMED_DETAILS);
  for (const [code, text] of Object.entries(RECOVERIES))
    for (const name of detailsIn(text)) expect([code, name]).toEqual([code, NAMED[code]]);
});

test("an MCP error has the time to wait that its recovery names, also if nobody set one", () => {
  const naming = Object.entries(RECOVERIES).filter(([, text]) => text.includes("retry_after_seconds"));
  expect(naming.length).toBeGreaterThan(3);
  for (const [code] of naming) {
    if (!isErrorCode(code) || code in NAMED) throw new Error(`${code} needs details`);
    const retryable = ERRORS[code].retryable;
    expect([code, retryable]).toEqual([code, true]);
  }
  expect(toToolError(new ErrandError("queue_full", "full"))).toMatchObject({ retry_after_seconds: 1 });
  const later = new ErrandError("queue_full", "full", { retry_after_seconds: 9 });
  expect(toToolError(later)).toMatchObject({ retry_after_seconds: 9 });
});

test("an error cannot be made without what its recovery names", () => {
  // @ts-expect-error without details
  new ErrandError("invalid_request", "x");
  // @ts-expect-error without this one
  new ErrandError("lease_lost", "x", { details: { limit: 1 } });
  const passedOn = new ErrandError(
    new ErrandError("lease_lost", "x", { details: { reason: "expired" } }),
    "y",
    {},
  );
  expect(passedOn.code).toBe("lease_lost");
});

test("an A2A error has the detail in the metadata of its ErrorInfo, where its recovery points", () => {
  const refused = new ErrandError("limit_reached", "full", { details: { limit: "messages" } });
  const { details } = toFailure(
    refused,
    createLog("silent", () => undefined),
    "r",
  );
  expect(details[0]).toMatchObject({
    metadata: { limit: "messages", recovery: expect.stringContaining("metadata.limit names the limit") },
  });
});
