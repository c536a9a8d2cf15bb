/** The parts that the first view does not need, in one file that is loaded right after it. */
export { Agents } from "../agents/agents.tsx";
export { Delegate } from "../delegate/delegate.tsx";
export { DelegationPane } from "../delegation/delegation.tsx";
export { Find } from "../find/find.tsx";
export { announceNeeds } from "./announce.ts";
export { Help } from "./help.tsx";
