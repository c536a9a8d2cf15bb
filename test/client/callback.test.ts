/** The receiver of callbacks accepts the calls of a real broker and refuses all others. */
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { CallbackError, Delegator, verifyCallback } from "../../src/index.ts";
import { as, startBroker } from "../support/broker.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { eventLike } from "./stub-broker.ts";

const secretOf = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`;
const [OLD, NEW, OTHER] = [secretOf(1), secretOf(2), secretOf(3)];

/** Signs as the broker does, at `at`. */
function signed(body: string, at = new Date(), secrets = [OLD]) {
  const signatures = secrets.map((secret) => new Webhook(secret).sign("evt_1", at, body));
  return {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": signatures.join(" "),
  };
}

const BODY = JSON.stringify(eventLike(3, "DELEGATION_COMPLETE", { response_preview: "Grüße" }));
const ago = (seconds: number) => new Date(Date.now() - seconds * 1000);

/** The code of the refusal. */
function faultOf(verify: () => unknown): string {
  try {
    verify();
  } catch (error) {
    if (error instanceof CallbackError) return error.code;
    throw error;
  }
  return "none";
}

test("accepts a broker's calls for a question and the end, also while the secret is rotated", async () => {
  const { url } = await startBroker({ callbackAllow: ["127.0.0.1"], callbackRetryMs: () => 20 });
  const scout = await as(url, "agent:scout");
  await scout.agent("scout");
  const delegator = new Delegator({ url, token: (await as(url, "caller:alice")).token });
  // The first call is refused, so it is repeated.
  const receiver = await startReceiver((count) => (count === 1 ? 500 : 204));
  const callback = { url: receiver.url, secret: [OLD, NEW], token: "let-me-in" };
  const { id } = await delegator.delegate({ target: "scout", task: "x" }, { callback });
  const next = async () => String((await scout.lease("scout")).body.leases[0].lease_id);
  await scout.interrupt(await next(), { text: "Go on?" });
  await until(() => receiver.received.length === 2);
  await delegator.approve(id);
  await scout.reply(await next());
  await until(() => receiver.received.length === 3);

  for (const secrets of [[OLD], [NEW], [OTHER, NEW]]) {
    const events = receiver.received.map(({ body, headers }) => verifyCallback(body, headers, secrets));
    expect(events.map(({ seq, state, status }) => [seq, state, status])).toEqual([
      [3, "input_required", "interrupted"],
      [3, "input_required", "interrupted"],
      [6, "completed", undefined],
    ]);
    expect(new Set(events.map(({ delegation_id }) => delegation_id))).toEqual(new Set([id]));
  }
  for (const { body, headers } of receiver.received) {
    expect(faultOf(() => verifyCallback(body, headers, [OTHER]))).toBe("forged");
  }
});

describe("a callback is accepted", () => {
  test("as text or bytes, with headers of a Request or of Node", () => {
    const headers = signed(BODY);
    const bytes = new TextEncoder().encode(BODY);
    for (const body of [BODY, bytes, Buffer.from(bytes)]) {
      for (const given of [headers, new Headers(headers), { "Webhook-ID": ["evt_1"], ...headers }]) {
        expect(verifyCallback(body, given, [OLD])).toMatchObject({ seq: 3, response_preview: "Grüße" });
      }
    }
  });

  test("with any of several signatures, by any of several secrets", () => {
    const headers = signed(BODY, new Date(), [OLD, NEW]);
    expect(verifyCallback(BODY, headers, [OTHER, NEW]).seq).toBe(3);
    const more = { ...headers, "webhook-signature": `v1a,xyz ${headers["webhook-signature"]} v2,q` };
    expect(verifyCallback(BODY, more, [NEW]).seq).toBe(3);
  });

  test("from a later version of the broker with additional fields", () => {
    const more = JSON.stringify({ ...JSON.parse(BODY), mood: "good" });
    expect(verifyCallback(more, signed(more), [OLD]).seq).toBe(3);
    const moved = JSON.stringify({ ...JSON.parse(BODY), type: "DELEGATION_MOVED" });
    expect(verifyCallback(moved, signed(moved), [OLD])).toMatchObject({ type: "UNKNOWN", seq: 3 });
  });
});

describe("a callback is refused", () => {
  test("when a header is missing", () => {
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
      const headers = Object.fromEntries(Object.entries(signed(BODY)).filter(([key]) => key !== name));
      expect(() => verifyCallback(BODY, headers, [OLD])).toThrow(`no ${name} header`);
      expect(faultOf(() => verifyCallback(BODY, headers, [OLD]))).toBe("missing");
      expect(faultOf(() => verifyCallback(BODY, new Headers(headers), [OLD]))).toBe("missing");
    }
    const headers = { ...signed(BODY), "webhook-timestamp": "now" };
    expect(faultOf(() => verifyCallback(BODY, headers, [OLD]))).toBe("missing");
  });

  test("when it was signed too long ago, or in the future; the receiver sets the tolerance", () => {
    const fault = (seconds: number, toleranceSeconds?: number) =>
      faultOf(() => verifyCallback(BODY, signed(BODY, ago(seconds)), [OLD], { toleranceSeconds }));
    expect([fault(200), fault(-200), fault(400), fault(-400)]).toEqual(["none", "none", "old", "old"]);
    expect([fault(200, 60), fault(400, 600), fault(0, Number.NaN)]).toEqual(["old", "none", "old"]);
    // A new time with an old signature is an alteration.
    const replayed = { ...signed(BODY, ago(4000)), "webhook-timestamp": signed(BODY)["webhook-timestamp"] };
    expect(faultOf(() => verifyCallback(BODY, replayed, [OLD]))).toBe("forged");
  });

  test("when any part of it was altered, or the signature is another secret's, or malformed", () => {
    const headers = signed(BODY);
    const fault = (body: string | Uint8Array, more: Record<string, string> = {}, secret = OLD) =>
      faultOf(() => verifyCallback(body, { ...headers, ...more }, [secret]));
    const signature = headers["webhook-signature"];
    expect(fault(BODY)).toBe("none");
    expect(fault(BODY.replace("completed", "failed"))).toBe("forged");
    expect(fault(`${BODY} `)).toBe("forged");
    expect(fault(Uint8Array.of(0xff, 0xfe))).toBe("forged");
    expect(fault(BODY, { "webhook-id": "evt_2" })).toBe("forged");
    expect(fault(BODY, {}, NEW)).toBe("forged");
    for (const made of ["v1,", "v1", ",", `v2,${signature.slice(3)}`, signature.slice(0, -1), "undefined"]) {
      expect(fault(BODY, { "webhook-signature": made })).toBe("forged");
    }
  });

  test("when it is genuine but not an event", () => {
    for (const body of ["", "7", "{}", JSON.stringify({ ...JSON.parse(BODY), delegation_id: "7" })]) {
      expect(faultOf(() => verifyCallback(body, signed(body), [OLD]))).toBe("invalid");
    }
  });

  test("when no secret is valid; the error does not contain the secrets", () => {
    for (const secrets of [[], [""], ["whsec_"], ["hunter2-hunter2-hunter2-hunter2-hunter2"], [OLD, "x"]]) {
      const verify = () => verifyCallback(BODY, signed(BODY), secrets);
      expect(verify).toThrow(TypeError);
      expect(verify).not.toThrow("hunter2");
    }
  });
});
