/** The whole life of a delegation with the client of orval, on axios. */
import axios from "axios";
import {
  type DelegateRequest,
  delegate,
  getDelegation,
  heartbeat,
  leaseWork,
  listDelegationEvents,
  reply,
} from "./errand.ts";
import { checked, say, settings } from "./story.ts";

// @ts-expect-error Work needs a task or a message.
export const nothing: DelegateRequest = { target: "scout" };

const { baseUrl, token } = settings;
axios.defaults.baseURL = baseUrl;
axios.defaults.headers.common.Authorization = `Bearer ${token}`;

const { data: delegated } = await delegate({ target: "scout", task: "count" });
const { id } = delegated;
const waited = getDelegation(id, { wait_seconds: 20 });

const { data: leased } = await leaseWork("scout", {});
const { lease_id } = checked(leased.leases[0]);
const { data: beat } = await heartbeat(lease_id, { progress: { message: "half" } });
say("state", beat.state);
const { data: replied } = await reply(lease_id, { state: "completed", text: "3" });
say("outcome", replied.outcome);
say("reply", (await waited).data.reply?.parts[0]?.text);

const { data: page } = await listDelegationEvents(id, { after: "0" });
for (const event of page ? page.events : []) {
  if (event.type === "DELEGATION_STATUS" && event.status === "progress")
    say("progress", event.progress.message);
  else if (event.type === "DELEGATION_COMPLETE") say("took", event.duration_ms >= 0);
  else say("event", event.type);
}
