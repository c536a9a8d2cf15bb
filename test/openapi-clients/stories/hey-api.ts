/** The whole life of a delegation with the client of hey-api. */
import { client } from "./errand/client.gen.ts";
import {
  type DelegateRequest,
  delegate,
  getDelegation,
  heartbeat,
  leaseWork,
  listDelegationEvents,
  reply,
} from "./errand/index.ts";
import { checked, say, settings } from "./story.ts";

// @ts-expect-error Work needs a task or a message.
export const nothing: DelegateRequest = { target: "scout" };

const { baseUrl, token } = settings;
client.setConfig({ baseUrl, auth: token });

const delegated = await delegate({ body: { target: "scout", task: "count" } });
const { id } = checked(delegated.data);
const path = { id };
const waited = getDelegation({ path, query: { wait_seconds: 20 } });

const leased = await leaseWork({ path: { agent: "scout" }, body: {} });
const [lease] = checked(leased.data).leases;
const { lease_id } = checked(lease);
const beat = await heartbeat({ path: { lease_id }, body: { progress: { message: "half" } } });
say("state", checked(beat.data).state);
const replied = await reply({ path: { lease_id }, body: { state: "completed", text: "3" } });
say("outcome", checked(replied.data).outcome);
say("reply", checked((await waited).data).reply?.parts[0]?.text);

const page = await listDelegationEvents({ path, query: { after: "0" } });
for (const event of page.data ? page.data.events : []) {
  if (event.type === "DELEGATION_STATUS" && event.status === "progress")
    say("progress", event.progress.message);
  else if (event.type === "DELEGATION_COMPLETE") say("took", event.duration_ms >= 0);
  else say("event", event.type);
}
