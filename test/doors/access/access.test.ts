/** Which principal may do what, request by request; matrix.test.ts tries every route. */
import { describe, expect, test } from "vitest";
import { as, client, startBroker } from "../../support/broker.ts";

const PRINCIPALS = [
  "operator",
  "caller:alice",
  "caller:bob",
  "agent:scout",
  "agent:other",
  "approver:ann",
  "viewer:eve",
] as const;

async function setup() {
  const broker = await startBroker();
  const admin = client(broker.url);
  await admin.agent("scout");
  await admin.agent("other");
  const who = new Map<string, ReturnType<typeof client>>([["operator", admin]]);
  for (const principal of PRINCIPALS.slice(1)) who.set(principal, await as(broker.url, principal));
  const of = (principal: string) => who.get(principal) ?? admin;
  const delegated = async () => String((await of("caller:alice").delegate("scout")).body.id);
  const leased = async () => {
    const id = await delegated();
    const { leases } = (await of("agent:scout").lease("scout")).body;
    return { id, lease: String(leases[0].lease_id) };
  };
  return { ...broker, admin, of, delegated, leased };
}

/** Alice delegates to scout; returns what each principal gets for each request. */
const MATRIX: Record<string, { expect: Record<(typeof PRINCIPALS)[number], number | string> }> = {
  delegate: {
    expect: {
      operator: 202,
      "caller:alice": 202,
      "caller:bob": 202,
      "agent:scout": "delegation_loop",
      "agent:other": 202,
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
  read: {
    expect: {
      operator: 200,
      "caller:alice": 200,
      "caller:bob": "delegation_not_found",
      "agent:scout": 200,
      "agent:other": "delegation_not_found",
      "approver:ann": 200,
      "viewer:eve": 200,
    },
  },
  cancel: {
    expect: {
      operator: 200,
      "caller:alice": 200,
      "caller:bob": "delegation_not_found",
      "agent:scout": "forbidden",
      "agent:other": "delegation_not_found",
      "approver:ann": 200,
      "viewer:eve": "forbidden",
    },
  },
  lease: {
    expect: {
      operator: 200,
      "caller:alice": "forbidden",
      "caller:bob": "forbidden",
      "agent:scout": 200,
      "agent:other": "forbidden",
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
  heartbeat: {
    expect: {
      operator: 200,
      "caller:alice": "forbidden",
      "caller:bob": "forbidden",
      "agent:scout": 200,
      "agent:other": "lease_unknown",
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
  "update agent": {
    expect: {
      operator: 200,
      "caller:alice": "forbidden",
      "caller:bob": "forbidden",
      "agent:scout": 200,
      "agent:other": "forbidden",
      "approver:ann": "forbidden",
      "viewer:eve": "forbidden",
    },
  },
};
const OPERATOR_ONLY = ["delete agent", "pause agent", "create token", "list tokens"] as const;

describe("who may do what", () => {
  test.each(PRINCIPALS)("%s", async (principal) => {
    const { of, delegated, leased } = await setup();
    const api = of(principal);
    const { lease } = await leased();
    const id = await delegated();
    const acts: Record<string, () => Promise<{ status: number; body: { code?: string } }>> = {
      delegate: () => api.delegate("scout"),
      read: () => api.get(id),
      heartbeat: () => api.heartbeat(lease),
      lease: () => api.lease("scout", { wait_seconds: 0 }),
      cancel: () => api.cancel(id),
      "update agent": () => api.agent("scout"),
      "delete agent": () => api.call("DELETE", "/v1/agents/other"),
      "pause agent": () => api.call("POST", "/v1/agents/scout/pause"),
      "create token": () => api.call("POST", "/v1/tokens", { principal: "caller:x" }),
      "list tokens": () => api.call("GET", "/v1/tokens"),
    };
    const rows = [
      ...Object.entries(MATRIX).map(([act, row]) => [act, row.expect[principal]] as const),
      ...OPERATOR_ONLY.map((act) => [act, principal === "operator" ? "ok" : "forbidden"] as const),
    ];
    for (const [act, expected] of rows) {
      const answer = await acts[act]?.();
      const got = answer && (answer.status < 300 ? answer.status : answer.body.code);
      expect([act, expected === "ok" && typeof got === "number" ? "ok" : got]).toEqual([act, expected]);
    }
  });

  test("a delegation of others is answered like one that does not exist", async () => {
    const { of, delegated } = await setup();
    const id = await delegated();
    const unknown = `${id.slice(0, -4)}zzzz`;
    const foreign = await of("caller:bob").get(id);
    const absent = await of("caller:bob").get(unknown);
    const shape = ({ status, body }: typeof foreign) => ({ status, ...body, request_id: "", detail: "" });
    expect(shape(foreign)).toEqual(shape(absent));
    expect(foreign.body.detail.replace(id, unknown)).toBe(absent.body.detail);
  });

  test("accepts_from decides who may delegate", async () => {
    const { admin, of } = await setup();
    await admin.agent("scout", { accepts_from: ["caller:alice", "agent:*"] });
    expect((await of("caller:alice").delegate("scout")).status).toBe(202);
    expect((await of("agent:other").delegate("scout")).status).toBe(202);
    expect(await of("caller:bob").delegate("scout")).toMatchObject({
      status: 403,
      body: { code: "not_accepted" },
    });
    expect(await admin.delegate("scout")).toMatchObject({ status: 403, body: { code: "not_accepted" } });
  });

  test("settings of an agent are visible to the agent and the operator only", async () => {
    const { of } = await setup();
    const shown = async (principal: string) => (await of(principal).call("GET", "/v1/agents/scout")).body;
    expect(await shown("agent:scout")).toHaveProperty("accepts_from");
    expect(await shown("operator")).toHaveProperty("limits");
    for (const principal of ["caller:alice", "agent:other", "viewer:eve"]) {
      expect(await shown(principal)).not.toHaveProperty("limits");
      expect(await shown(principal)).not.toHaveProperty("accepts_from");
    }
  });
});
