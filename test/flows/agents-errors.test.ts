/** Errors that agents report with codes of the broker. */
import { expect, test } from "vitest";
import { ERRORS } from "../../src/schema/errors.ts";
import { client, startBroker } from "../support/broker.ts";

test.each(["rate_limited", "attempts_exhausted", "my_own"])(
  "an agent's own %s gets no recovery of the broker's error of that name",
  async (code) => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout", { limits: { max_attempts: 1 } });
    for (const state of ["failed", "rejected"] as const) {
      const { id } = (await api.delegate("scout")).body;
      const [lease] = (await api.lease("scout")).body.leases;
      await api.reply(lease.lease_id, { state, text: undefined, error: { code, message: "disk full" } });
      const { recovery } = ERRORS[state === "failed" ? "agent_error" : "rejected"];
      expect((await api.get(id)).body.error).toMatchObject({ code, message: "disk full", recovery });
    }
  },
);
