/** The whole life of a delegation with the types of openapi-typescript, and openapi-fetch. */
import createClient from "openapi-fetch";
import type { components, operations, paths } from "./errand.ts";
import { checked, say, settings } from "./story.ts";

type DelegateRequest = components["schemas"]["DelegateRequest"];
/** The operations have the names of the verbs. */
type Accepted = operations["delegate"]["responses"][202]["content"]["application/json"];

// @ts-expect-error Work needs a task or a message.
export const nothing: DelegateRequest = { target: "scout" };

const { baseUrl, token } = settings;
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

const delegated = await client.POST("/v1/delegations", { body: { target: "scout", task: "count" } });
const { id }: Accepted = checked(delegated.data);
const path = { id };
const waited = client.GET("/v1/delegations/{id}", { params: { path, query: { wait_seconds: 20 } } });

const leased = await client.POST("/v1/agents/{agent}/leases", {
  params: { path: { agent: "scout" } },
  body: {},
});
const [lease] = checked(leased.data).leases;
const { lease_id } = checked(lease);
const holder = { params: { path: { lease_id } } };
const beat = await client.POST("/v1/leases/{lease_id}/heartbeat", {
  ...holder,
  body: { progress: { message: "half" } },
});
say("state", checked(beat.data).state);
const replied = await client.POST("/v1/leases/{lease_id}/reply", {
  ...holder,
  body: { state: "completed", text: "3" },
});
say("outcome", checked(replied.data).outcome);
say("reply", checked((await waited).data).reply?.parts[0]?.text);

const page = await client.GET("/v1/delegations/{id}/events", { params: { path, query: { after: "0" } } });
for (const event of checked(page.data).events) {
  if (event.type === "DELEGATION_STATUS" && event.status === "progress")
    say("progress", event.progress.message);
  else if (event.type === "DELEGATION_COMPLETE") say("took", event.duration_ms >= 0);
  else say("event", event.type);
}
