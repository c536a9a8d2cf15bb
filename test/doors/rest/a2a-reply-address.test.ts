/** Which lease or delegation a body in A2A's form answers. */
import { describe, expect, test } from "vitest";
import { parseA2aReply } from "../../../src/doors/rest/a2a-reply.ts";
import { DELEGATION, issuesOf, LEASE, OTHER, refused, TAIL } from "./a2a-bodies.ts";

describe("the address of a reply", () => {
  const lease = { by: "lease", lease_id: LEASE };
  const delegation = { by: "delegation", delegation_id: DELEGATION };
  const addressOf = (body: unknown) => parseA2aReply(body).address;
  const message = (metadata: unknown) => ({ messageId: "m", role: "agent", parts: [], metadata });
  /** Every place of metadata. */
  const inEveryPlace = (metadata: unknown): unknown[] => [
    message(metadata),
    { message: message(metadata) },
    { id: "t", status: { state: "working" }, metadata },
    { kind: "task", id: "t", status: { state: "completed", message: message(metadata) } },
    { statusUpdate: { taskId: "t", status: { state: 2 }, metadata } },
    { statusUpdate: { taskId: "t", status: { state: 2, message: message(metadata) } } },
    { kind: "artifact-update", taskId: "t", artifact: { artifactId: "a" }, metadata },
  ];
  const enveloped = (id: unknown, result: unknown) => ({ jsonrpc: "2.0", id, result });

  test("is null when no id names one", () => {
    for (const metadata of [undefined, null, {}, { lease_id: null }, { other: 1 }]) {
      for (const body of inEveryPlace(metadata)) {
        expect(addressOf(body)).toBeNull();
        for (const id of [undefined, null, 0, "", "req-1", "lse_", `x${LEASE}`]) {
          expect(addressOf(enveloped(id, body))).toBeNull();
        }
      }
    }
  });

  test("is the lease that the envelope or any metadata names", () => {
    for (const body of inEveryPlace({ delegation_id: DELEGATION })) {
      expect(addressOf(enveloped(LEASE, body))).toEqual(lease);
    }
    for (const body of inEveryPlace({ lease_id: LEASE, delegation_id: DELEGATION, foreign: true })) {
      expect(addressOf(body)).toEqual(lease);
      expect(addressOf(enveloped("req-1", body))).toEqual(lease);
      expect(addressOf(enveloped(DELEGATION, body))).toEqual(lease);
    }
  });

  test("can be in the status message of a task alone", () => {
    const status = { state: "working", message: message({ lease_id: LEASE }) };
    expect(addressOf({ status, metadata: { delegation_id: DELEGATION } })).toEqual(lease);
  });

  test("is the delegation when no lease is named", () => {
    for (const body of inEveryPlace({ delegation_id: DELEGATION }))
      expect(addressOf(body)).toEqual(delegation);
    for (const body of inEveryPlace({})) expect(addressOf(enveloped(DELEGATION, body))).toEqual(delegation);
  });

  test("with contradicting ids is refused", () => {
    const other = { lease_id: `lse_${OTHER}_1`, delegation_id: `dlg_${OTHER}` };
    for (const one of [{ lease_id: other.lease_id }, { delegation_id: other.delegation_id }]) {
      for (const id of [LEASE, DELEGATION]) {
        for (const body of inEveryPlace(one))
          expect(refused(enveloped(id, body)).code).toBe("invalid_request");
      }
    }
    for (const body of [
      ...inEveryPlace({ lease_id: LEASE, delegation_id: other.delegation_id }),
      { metadata: { lease_id: LEASE }, status: { state: 2, message: message(other) } },
      // Another lease of the same delegation is still a different one.
      ...inEveryPlace({ lease_id: LEASE }).map((body) => enveloped(`lse_${TAIL}_3`, body)),
      {
        metadata: { lease_id: LEASE },
        status: { state: 2, message: message({ lease_id: `lse_${TAIL}_1` }) },
      },
    ]) {
      expect(refused(body).code).toBe("invalid_request");
    }
  });

  test("with a malformed id is refused, never ignored", () => {
    for (const bad of [
      { lease_id: "lse_1" },
      { lease_id: 5 },
      { delegation_id: "" },
      { delegation_id: [] },
    ]) {
      for (const body of inEveryPlace({ ...bad })) {
        const [issue] = issuesOf(refused(body));
        expect(issue?.path).toMatch(new RegExp(`metadata\\.${Object.keys(bad)[0]}$`));
        expect(issue?.reason).toBeTruthy();
      }
    }
  });
});
