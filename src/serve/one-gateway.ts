/** Runs one gateway in this process: the default. */
import { type Gateway, startGateway } from "../gateway/gateway.ts";
import { optionsOf, type Parts, type Running } from "./running.ts";
import { signInLine } from "./sign-in-link.ts";

export async function startOne(parts: Parts): Promise<Running> {
  const gateway = await startGateway(optionsOf(parts));
  return {
    port: gateway.port,
    ended: new Promise(() => {}),
    signIn: () => signInLine(gateway.broker),
    roll: async () =>
      parts.log.warn("there is one gateway, so nothing is replaced; restart the broker instead"),
    close: () => closeOne(gateway),
    kill: () => {},
  };
}

function closeOne(gateway: Gateway) {
  const busy = Promise.resolve(gateway.busy());
  return { busy, closed: gateway.close() };
}
