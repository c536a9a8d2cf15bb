/**
 * Loaded into a gateway before its own code: sets a wrong clock on demand, and ends the gateway with its supervisor.
 * Limit: it changes what Date returns; timers and the monotonic clock stay right, as on a machine with a wrong clock.
 */
import cluster from "node:cluster";

let offsetMs = Number(process.env.CHAOS_CLOCK_MS ?? 0);

const RealDate = Date;
const now = (): number => RealDate.now() + offsetMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given: unknown[], newTarget) =>
    Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});

process.on("message", (message) => {
  if (typeof message !== "string" || !message.startsWith("clock ")) return;
  offsetMs = Number(message.slice(6));
  // To the processes under this one, which load this file, too.
  for (const worker of Object.values(cluster.workers ?? {})) worker?.send(message);
});
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
// The listener must not keep the process alive. (Under a supervisor, the channel is needed for more.)
if (cluster.isPrimary) process.channel?.unref();
