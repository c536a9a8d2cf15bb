/** A bad link for a test, closed when the test is over. Limit: see bad-link.ts. */
import { onTestFinished } from "vitest";
import { type BadLink, type Fault, openBadLink } from "./bad-link.ts";

export type { Fault };
export type Proxy = BadLink;

/** Between 127.0.0.1 and the unix socket. */
export async function startProxy(socketPath: string): Promise<Proxy> {
  const link = await openBadLink(socketPath);
  onTestFinished(link.close);
  return link;
}
