/** What tests replace in a gateway. No setting leads here: the program starts every gateway without seams. */
import type { LookupFunction } from "node:net";
import type { ArrivalTimeouts } from "../doors/http/listener.ts";
import type { McpTestExtension } from "../doors/mcp/server.ts";
import type { Clock } from "../lifecycle/command.ts";

export interface Seams {
  /** An offset to Redis' clock, so that a test moves time. */
  readonly clock: Clock;
  /** The interval of the sweep; 0: only on `sweep.tick()`. */
  readonly sweepEveryMs: number;
  /** After how long without a sign of life of any gateway there was an outage. A test's sweeps may be far apart. */
  readonly outageMs: number;
  /** Resolves the hosts of callbacks instead of the system, for names that lead to an address that a test chooses. */
  readonly callbackLookup: LookupFunction;
  /** The retry delay of a callback that has been failing for `triedForMs`. */
  readonly callbackRetryMs: (triedForMs: number) => number;
  /** How long the loop of a push agent waits for more work, s. */
  readonly pushAgentWaitSeconds: number;
  /** How long a request may take to arrive. */
  readonly arrival: ArrivalTimeouts;
  /** How long an MCP client may take to answer a ping. */
  readonly mcpPingMs: number;
  /** Tools that the MCP server has besides its own, such as one that never answers. */
  readonly mcpExtension: McpTestExtension;
}
