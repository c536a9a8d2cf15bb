/** A bad link for a test, closed when the test ends. bad-link.ts lists the faults. */
import { onTestFinished } from "vitest";
import { type BadLink, type Fault, openBadLink } from "./bad-link.ts";

export type { Fault };
export type RedisLink = BadLink;

/** A link between 127.0.0.1 and the unix socket. */
export async function openRedisLink(socketPath: string): Promise<RedisLink> {
  const link = await openBadLink(socketPath);
  onTestFinished(link.close);
  return link;
}
