/** The entry point of every process except gateways and Redis. The supervisor starts it with the path of its setup. */
import { readFileSync } from "node:fs";
import { type Role, setupSchema } from "../setup.ts";
import { runA2a } from "./a2a.ts";
import { runAgent } from "./agent.ts";
import { runAgui } from "./agui.ts";
import { runDelegator } from "./delegator.ts";
import { runLibrary } from "./library.ts";
import { runMcp } from "./mcp.ts";
import { Part } from "./part.ts";
import { runPerson } from "./person.ts";
import { runReceiver } from "./receiver.ts";
import { runServer } from "./server.ts";
import { runSubscriber } from "./subscriber.ts";

const RUN: Record<Role, (part: Part) => Promise<void>> = {
  a2a: runA2a,
  agent: runAgent,
  agui: runAgui,
  delegator: runDelegator,
  library: runLibrary,
  mcp: runMcp,
  person: runPerson,
  receiver: runReceiver,
  server: runServer,
  subscriber: runSubscriber,
};

const part = new Part(setupSchema.parse(JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"))));
await RUN[part.setup.role](part);
process.exit(0);
